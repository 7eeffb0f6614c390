"""The desk: what people say of a corpus, the model that learns from it, and what to ask next. No HTTP in it.

A place is where a text stands in the corpus: what the arrays go by. People and pages know texts by their ids in the
project. Requests only look things up and write verdicts; what takes long is done by `work`, in a thread of its own.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from strays.apps.review.asking import WHY
from strays.apps.review.clients import KEPT_AHEAD, Clients
from strays.apps.review.generation import Generation
from strays.apps.review.hidden import Hidden, still_hidden
from strays.apps.review.history import History
from strays.apps.review.learner import Learner
from strays.apps.review.store import Entry, Event, Judgement, LabelStore
from strays.errors import DataError, StraysError, UsageError, first_line
from strays.model.labels import LABELS, parse_labels

# How few questions may be left before more are made.
FEWEST_AHEAD = 20
SHOWN_CHARACTERS = 20_000


class UnknownTextError(DataError):
    """A text was asked for that the corpus does not have."""


class Desk:
    """All that the page asks for. `texts` are the project's, in the order of the learner's."""

    def __init__(self, store: LabelStore, texts: dict[int, Entry], learner: Learner, *, every: int = 5) -> None:
        self.store = store
        self.learner = learner
        self.every = every
        self.ids = list(texts)
        self.entries = list(texts.values())
        self.history = History()
        self.settings = store.settings()
        self.lock = threading.RLock()
        self.due = threading.Event()  # there may be work to do
        self.refitting = False
        self.trouble: str | None = None
        self.hidden: Hidden | None = None
        self.clients = Clients()
        self._n_rows = sum(entry.n_rows for entry in self.entries)
        given = Counter(entry.given for entry in self.entries)
        self._given = {kind: given[kind] for kind in ("normal", "anomaly")}
        self._place = {id_: place for place, id_ in enumerate(self.ids)}
        self.labels = [entry.given for entry in self.entries]
        self._standing: dict[int, Event] = {}
        self._open = np.array([label is None for label in self.labels], dtype=bool)  # may be asked: no label, no skip
        self._skipped: dict[int, int] = {}  # place -> event, the skipped longest ago first
        self._verdicts: Counter[str] = Counter()
        self._people: Counter[str] = Counter()
        self._tried: list[str | None] = [*self.labels]  # the labels of the last fit, also of one that failed
        self._changed: set[int] = set()  # places whose label is another since
        self._hurry = self._short = False
        self._take_in()
        self.generation = self._first_generation()

    # ---- what people say ---------------------------------------------------------------------------------------------

    def judge(self, ids: Iterable[int], verdict: str, who: str, client: str, *, too: bool = True) -> dict[str, Any]:
        """Put a verdict on texts; when this returns, it is on the disk.

        Unless `too`, those that somebody has called normal or an anomaly keep that: `kept` names them.
        """
        places = {id_: self.place(id_) for id_ in ids}
        if not places:
            raise UsageError("there are no texts to judge; expected at least one id")
        kept: list[int] = []
        with self.lock:  # until it is written, so that no verdict comes between looking and writing
            if not too:
                self.take_in()
                stand = {i for i in places.values() if i in self._standing and self._standing[i].verdict != "skip"}
                kept = [id_ for id_, i in places.items() if i in stand]
                places = {id_: i for id_, i in places.items() if i not in stand}
            ranking, asked = self.generation.ranking, self.clients.asked(client)
            judgements = {
                id_: Judgement(float(ranking.p_value[i]), float(ranking.anomaly_score[i]), asked.get(i))
                for id_, i in places.items()
            }
            event = self.store.judge(judgements, verdict, who, client) if judgements else None
            self.take_in()
        return {"event": event, "n": len(places), "kept": kept}

    def undo(self, who: str, client: str) -> dict[str, Any] | None:
        """Take back the caller's last action that is not undone; what it was, or None where there is none."""
        number = self.store.undo(who, client)
        if number is None:
            return None
        with self.lock:
            self.take_in()
            event = self.history.events[number]
            places = [self._place[id_] for id_ in event.judgements if id_ in self._place]
            if len(places) == 1:  # what was undone is most likely to be judged again
                self.clients.put_first(client, places[0], event.judgements[self.ids[places[0]]].why)
            text = self.entries[places[0]].text[:SHOWN_CHARACTERS] if places else ""
            return {"ids": list(event.judgements), "verdict": event.verdict, "text": text}

    def place(self, id_: int) -> int:
        """Where a text stands in the corpus."""
        if id_ not in self._place:
            raise UnknownTextError(f"no text has the id {id_}; expected one of this project's")
        return self._place[id_]

    def has(self, id_: int) -> bool:
        """Whether a text is in the corpus as it is now."""
        return id_ in self._place

    def take_in(self) -> None:
        """Read what was said since, here or by another process; have the model fitted again where it is time."""
        with self.lock:
            if self._take_in():
                self.due.set()

    def _take_in(self) -> int:
        events = self.store.events(self.history.last)
        for event in events:
            places = [self._place[id_] for id_ in self.history.add(event) if id_ in self._place]
            for place in places:
                self._settle(place)
            # What the model has learnt and should not have is not left until more verdicts come.
            self._hurry |= event.undoes is not None and any(place in self._changed for place in places)
        return len(events)

    def _settle(self, place: int) -> None:
        """Bring all that depends on a text's standing verdict in line with it."""
        before, event = self._standing.pop(place, None), self.history.standing(self.ids[place])
        for step, found in ((-1, before), (1, event)):
            if found:
                self._verdicts[found.verdict] += step
                self._people[found.who] += step
        label = event.verdict if event and event.verdict != "skip" else self.entries[place].given
        self.labels[place] = label
        self._skipped.pop(place, None)
        if event:
            self._standing[place] = event
            if event.verdict == "skip" and label is None:
                self._skipped[place] = event.id
        self._open[place] = label is None and place not in self._skipped
        (self._changed.discard if label == self._tried[place] else self._changed.add)(place)

    # ---- what to ask next --------------------------------------------------------------------------------------------

    def queue(self, client: str, n: int) -> dict[str, Any]:
        """The next n questions for a client. Its first ones stay as they were, whatever was learnt meanwhile."""
        with self.lock:
            self.take_in()
            asked = self._next(client, n)
            self.clients.give(client, asked)
            left = int(self._open.sum()) + len(self._skipped)
            items = [self.item(place, why) for place, why in asked.items()]
            return {"generation": self.generation.number, "items": items, "left": left}

    def _next(self, client: str, n: int) -> dict[int, str | None]:
        taken, before = self.clients.of_others(client), self.clients.asked(client)
        found: dict[int, str | None] = {}

        def add(places: Iterable[tuple[int, str | None]], most: int) -> None:
            for place, why in places:
                if len(found) >= most:
                    return
                if self._open[place] and place not in taken:
                    found.setdefault(place, why)

        add(before.items(), min(n, KEPT_AHEAD))
        asks = [(ask.row, ask.why) for ask in self.generation.asks if self._open[ask.row]]
        add(asks, n)
        self._short = len(asks) < FEWEST_AHEAD < int(self._open.sum())
        if self._short:
            self.due.set()
        if len(found) < n:
            order = self.generation.order
            rest = order[self._open[order]][: n + len(taken) + len(found)]
            add(((int(place), "odd") for place in rest), n)
        for place in self._skipped:
            if len(found) < n and place not in taken:
                found[place] = None
        return found

    # ---- what the page shows -----------------------------------------------------------------------------------------

    def standing(self) -> dict[int, Event]:
        """The events that hold, by the places of their texts."""
        with self.lock:
            self.take_in()
            return dict(self._standing)

    def why(self, place: int) -> str | None:
        """Why a text was asked about when it was judged, or else why it is to be."""
        event = self._standing.get(place)
        return event.judgements[self.ids[place]].why if event else self.generation.why.get(place)

    def item(self, place: int, why: str | None = None) -> dict[str, Any]:
        """A text and what is known of it."""
        entry, event, ranking = self.entries[place], self._standing.get(place), self.generation.ranking
        kind = why or self.why(place)
        return {
            "id": self.ids[place],
            "text": entry.text[:SHOWN_CHARACTERS],
            "length": len(entry.text),
            "n_rows": entry.n_rows,
            "rows": list(entry.rows),
            "anomaly_score": float(ranking.anomaly_score[place]),
            "p_value": float(ranking.p_value[place]),
            "flagged": bool(ranking.flagged[place]),
            "rank": int(self.generation.rank[place]),
            "label": event.verdict if event else None,
            "given": entry.given,
            "why": {"kind": kind, "words": WHY.get(kind, kind)} if kind else None,
        }

    def state(self) -> dict[str, Any]:
        """How far the work is."""
        with self.lock:
            self.take_in()
            ranking = self.generation.ranking
            return {
                "file": self.settings.get("file"),
                "project": str(self.store.path),
                "n_texts": len(self.ids),
                "n_rows": self._n_rows,
                "judged": {name: self._verdicts[kind] for name, kind in _COUNTED.items()},
                "given": self._given,
                "found": self.labels.count("anomaly"),
                "hidden": vars(self.hidden) if self.hidden else None,
                "generation": self.generation.number,
                "refitting": self.refitting,
                "trouble": self.trouble,
                "fresh": len(self._changed),
                "every": self.every,
                "learnt": {
                    "n_labels": ranking.n_labels,
                    "seconds": round(ranking.seconds, 3),
                    "says": ranking.model.detector_.describe(),
                },
                "threshold": str(ranking.model.threshold_),
                "n_flagged": int(ranking.flagged.sum()),
                "encoder": self.settings["encoder"]["name"],
                "detector": self.settings["detector"],
                "last_event": self.history.last,
                "people": [{"who": who, "n": n} for who, n in self._people.most_common() if n > 0],
            }

    # ---- what takes long ---------------------------------------------------------------------------------------------

    def work(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Fit again as long as it is time to, make new questions where they run short, count what is hidden."""
        while self._due() and not stopped():
            self._refit()
        if self._short and not stopped():
            with self.lock:
                generation, self._short = self.generation, False
            asked = self._with_questions(generation)
            with self.lock:
                self.generation = asked
        self._count_hidden()
        self.store.checkpoint()

    def _due(self) -> bool:
        return len(self._changed) >= self.every or self._hurry

    def _refit(self) -> None:
        with self.lock:
            labels = [*self.labels]
            self._start_fit(labels)
            self.refitting = True
        try:
            found = self._with_questions(Generation.of(self.learner.learn(labels), self.generation.number + 1))
        except Exception as error:  # whatever it is, people can go on judging
            self.tell(f"the model has not learnt from the last verdicts: {in_words(error)}")
        else:
            with self.lock:
                self.generation, self.trouble = found, None
        finally:
            self.refitting = False

    def tell(self, trouble: str) -> None:
        """Say what went wrong, until a fit succeeds."""
        with self.lock:
            self.trouble = trouble

    def _start_fit(self, labels: list[str | None]) -> None:
        self._tried, self._hurry = labels, False
        self._changed.clear()

    def _first_generation(self) -> Generation:
        labels = [*self.labels]
        self._start_fit(labels)
        try:
            ranking = self.learner.learn(labels)
        except DataError as error:
            if not self._standing:
                raise
            ranking = self.learner.learn([entry.given for entry in self.entries])
            self.trouble = f"the model has not learnt from the verdicts: {error}"
        generation = self._with_questions(Generation.of(ranking, 0))
        self._count_hidden(generation)
        return generation

    def _with_questions(self, generation: Generation) -> Generation:
        with self.lock:
            y, open_ = parse_labels(self.labels, len(self.labels)), self._open.copy()
            asked, rng = self._asked(), np.random.default_rng([self.learner.random_state, self.history.last])
        answers = [(judgement.why or "", verdict == "anomaly") for judgement, verdict in asked]
        return generation.with_questions(self.learner.X, y, open_, answers, rng)

    def _asked(self) -> list[tuple[Judgement, str]]:
        """The standing answers to our questions but for skips, each with what the model had said, the oldest first.

        Texts that a person went looking for are not among them: they are not like others of their p-value.
        """
        standing = sorted(self._standing.items(), key=lambda item: (item[1].id, item[0]))
        judged = [(e.judgements[self.ids[place]], e.verdict) for place, e in standing if e.verdict != "skip"]
        return [(judgement, verdict) for judgement, verdict in judged if judgement.why in WHY]

    def _count_hidden(self, generation: Generation | None = None) -> None:
        p_value = (generation or self.generation).ranking.p_value
        with self.lock:
            asked = self._asked()
            p_open = p_value[[label is None for label in self.labels]]
        p = np.array([judgement.p_value for judgement, _ in asked])
        y = np.array([LABELS[verdict] for _, verdict in asked])
        self.hidden = still_hidden(p, y, p_open)


def in_words(error: Exception) -> str:
    """What went wrong, for the page."""
    return str(error) if isinstance(error, StraysError) else f"{type(error).__name__}: {first_line(error)}"


_COUNTED = {"normal": "normal", "anomaly": "anomaly", "skipped": "skip"}
