"""What people say of a project's texts at one moment: made of events alone, and never changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from strays.apps.review.history import Event, History, Judgement
from strays.apps.review.project import Project
from strays.apps.review.questions import WHY
from strays.model.labels import LABELS, WORD


@dataclass(frozen=True)
class Verdicts:
    """The verdicts that stand, by place. `add` copies: whoever holds this sees what was said at one moment.

    >>> from strays.apps.review.store import Entry
    >>> project = Project("pile.strays", {}, {7: Entry("a hen", 1, (1,)), 9: Entry("a quark", 1, (2,))})
    >>> before = Verdicts.none(project)
    >>> after = before.add([Event(1, "anomaly", "ada", "tab", "2026-01-01", None, {9: Judgement()})])
    >>> before.labels, after.labels
    ([None, None], [None, 'anomaly'])
    """

    project: Project
    y: np.ndarray  # +1 normal, -1 anomaly, 0 none: what people say, or else the label that the text came with
    history: History = field(default_factory=History)
    standing: Mapping[int, Event] = field(default_factory=dict)
    skipped: Mapping[int, int] = field(default_factory=dict)  # places without a label -> the event that skipped them
    n_judged: Mapping[str, int] = field(default_factory=Counter)  # texts by standing verdict
    n_by: Mapping[str, int] = field(default_factory=Counter)  # texts by the person whose verdict stands

    @classmethod
    def none(cls, project: Project) -> Self:
        """Before anybody has said anything."""
        return cls(project, _frozen(project.given.copy()))

    def add(self, events: Sequence[Event]) -> Self:
        """What holds after the next events, the caller's own and other processes' alike."""
        history = self.history.add(events)
        y, standing, skipped = self.y.copy(), dict(self.standing), dict(self.skipped)
        n_judged, n_by = Counter(self.n_judged), Counter(self.n_by)
        n_by.update({event.who: 0 for event in events if event.undoes is None})  # in the order of their first verdicts
        texts = dict.fromkeys(id_ for event in events for id_ in history.texts(event))
        events_now = history.standing(texts)
        for place in self.project.places(texts):
            before, event = standing.pop(place, None), events_now.get(self.project.ids[place])
            for found, step in ((before, -1), (event, 1)):
                if found:
                    n_judged[found.verdict] += step
                    n_by[found.who] += step
            y[place] = self.project.given[place] if event is None or event.verdict == "skip" else LABELS[event.verdict]
            skipped.pop(place, None)
            if event:
                standing[place] = event
                if event.verdict == "skip" and not y[place]:
                    skipped[place] = event.id
        return type(self)(self.project, _frozen(y), history, standing, skipped, n_judged, n_by)

    def is_judged(self, place: int) -> bool:
        """Whether somebody calls a text normal or an anomaly."""
        return place in self.standing and self.standing[place].verdict != "skip"

    @property
    def labels(self) -> list[str | None]:
        """A word, or None, for each place."""
        return [WORD[label] for label in self.y.tolist()]

    @property
    def searched(self) -> np.ndarray:
        """Which places have a label that people gave here, and did not come with."""
        return self.y != self.project.given

    @cached_property
    def is_open(self) -> np.ndarray:
        """Which places may be asked about: those with no label that nobody has skipped."""
        mask = self.y == 0
        mask[list(self.skipped)] = False
        return _frozen(mask)

    @cached_property
    def skipped_first(self) -> list[int]:
        """The skipped places, the one skipped longest ago first."""
        return sorted(self.skipped, key=lambda place: self.skipped[place])

    @cached_property
    def answers(self) -> list[tuple[Judgement, str]]:
        """The standing answers to our questions but for skips, with what the model had said, the oldest first.

        Texts that a person went looking for are not among them: they are not like others of their p-value.
        """
        standing = sorted(self.standing.items(), key=lambda item: (item[1].id, item[0]))
        judged = [(e.judgements[self.project.ids[place]], e.verdict) for place, e in standing if e.verdict != "skip"]
        return [(judgement, verdict) for judgement, verdict in judged if judgement.why in WHY]


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
