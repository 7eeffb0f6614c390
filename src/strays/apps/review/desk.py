"""The desk: the one writer of what people say of a corpus and of what the model has learnt from it. No HTTP in it.

Every change goes through a method of `Desk`, which holds the lock for as long as it writes, and then publishes a new
snapshot by assigning one reference. Whoever only reads takes the present snapshot once and needs no lock. What takes
long, such as a fit, is worked out elsewhere from a snapshot and brought here when it is done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from strays.apps.review.estimate import NoEstimate, RemainingAnomalies
from strays.apps.review.generation import Generation
from strays.apps.review.history import Judgement
from strays.apps.review.learner import Learner
from strays.apps.review.project import Project
from strays.apps.review.queue import ClientQueues
from strays.apps.review.snapshot import Snapshot
from strays.apps.review.store import Entry, LabelStore
from strays.apps.review.verdicts import Verdicts
from strays.apps.review.views import SHOWN_CHARACTERS
from strays.errors import UsageError


class Desk:
    """Writes verdicts and publishes snapshots. `texts` are the project's, in the order of the learner's.

    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> class Lengths:
    ...     def encode(self, texts):
    ...         return np.array([[len(text), len(text.split())] for text in texts], dtype=np.float32)
    >>> folder = TemporaryDirectory()
    >>> store = LabelStore(f"{folder.name}/pile.strays")
    >>> texts = [*(f"hen {i}" for i in range(20)), "a quark in the barn"]
    >>> store.put_texts(Entry(text, 1, (row,)) for row, text in enumerate(texts, 1))
    >>> desk = Desk(store, store.texts(), Learner(texts, Lengths().encode(texts), Lengths(), "centroid"))
    >>> before = desk.snapshot
    >>> desk.judge([21], "anomaly", who="ada", client="tab")  # on the disk when it returns
    {'event': 1, 'n': 1, 'kept': []}
    >>> before.verdicts.labels[20], desk.snapshot.verdicts.labels[20]
    (None, 'anomaly')
    >>> store.close()
    >>> folder.cleanup()
    """

    def __init__(
        self,
        store: LabelStore,
        texts: Mapping[int, Entry],
        learner: Learner,
        *,
        every: int = 5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self.learner = learner
        self.project = Project(store.path, store.settings(), texts, every=every)
        self.queues = ClientQueues(clock)
        self.work_due = threading.Event()  # set by new verdicts; see refit.py
        self._writing = threading.Lock()
        self._snapshot = Snapshot.first(Verdicts.none(self.project).add(store.events()), learner)

    # ---- reading -----------------------------------------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """The state as it was last published."""
        return self._snapshot

    def refresh(self) -> Snapshot:
        """The state, with what other processes have written until now."""
        if self.store.last_event() > self._snapshot.verdicts.history.last:
            with self._writing:
                self._read_events()
        return self._snapshot

    # ---- what people say ---------------------------------------------------------------------------------------------

    def judge(self, ids: Iterable[int], verdict: str, who: str, client: str, *, too: bool = True) -> dict[str, Any]:
        """Put a verdict on texts; when this returns, it is on the disk.

        Unless `too`, those that somebody has called normal or an anomaly keep that: `kept` names them.
        """
        places = {id_: self.project.place(id_) for id_ in ids}
        if not places:
            raise UsageError("{ids} is empty; expected the id of at least one text", param="ids")
        with self._writing:
            now = self._snapshot if too else self._read_events()
            kept = [] if too else [id_ for id_, place in places.items() if now.verdicts.is_judged(place)]
            for id_ in kept:
                del places[id_]
            ranking, asked = now.generation.ranking, self.queues.asked(client)
            judgements = {
                id_: Judgement(float(ranking.p_value[i]), float(ranking.anomaly_score[i]), asked.get(i))
                for id_, i in places.items()
            }
            event = self.store.commit_verdict(judgements, verdict, who, client) if judgements else None
            self._read_events()
        return {"event": event, "n": len(places), "kept": kept}

    def undo(self, who: str, client: str) -> dict[str, Any] | None:
        """Take back the caller's last action that is not undone; what it was, or None where there is none."""
        with self._writing:
            number = self.store.commit_undo(who, client)
            if number is None:
                return None
            event = self._read_events().verdicts.history.event(number)
        places = self.project.places(event.judgements)
        if len(places) == 1:  # what was undone is most likely to be judged again
            self.queues.put_first(client, places[0], event.judgements[self.project.ids[places[0]]].why)
        text = self.project.entries[places[0]].text[:SHOWN_CHARACTERS] if places else ""
        return {"ids": list(event.judgements), "verdict": event.verdict, "text": text}

    # ---- what was learnt ---------------------------------------------------------------------------------------------

    def start_fit(self) -> Snapshot:
        """The state to fit on: from here on, verdicts count for the next fit."""
        with self._writing:
            now = self._snapshot
            return self._publish(replace(now, tried=now.verdicts.y, unlearn=False, refitting=True))

    def finish_fit(self, generation: Generation) -> None:
        """Rank by a new model from now on."""
        with self._writing:
            self._publish(replace(self._snapshot, generation=generation, refitting=False, trouble=None))

    def report_failure(self, trouble: str) -> None:
        """Keep the ranking and say what went wrong, until a fit succeeds."""
        with self._writing:
            self._publish(replace(self._snapshot, refitting=False, trouble=trouble))

    def replace_questions(self, generation: Generation) -> None:
        """Ask other questions about the same ranking."""
        with self._writing:
            self._publish(replace(self._snapshot, generation=generation))

    def set_remaining(self, remaining: RemainingAnomalies | NoEstimate) -> None:
        """Show a new estimate of how many anomalies are still to be found, or why there is none."""
        with self._writing:
            self._publish(replace(self._snapshot, remaining=remaining))

    # ---- inside; the caller holds the lock ---------------------------------------------------------------------------

    def _read_events(self) -> Snapshot:
        """Take in what was committed since, here or by another process: memory is made of the project file alone."""
        events = self.store.events(self._snapshot.verdicts.history.last)
        if events:
            self._publish(self._snapshot.add(events))
            self.work_due.set()
        return self._snapshot

    def _publish(self, snapshot: Snapshot) -> Snapshot:
        self._snapshot = snapshot
        return snapshot
