"""The state of the desk at one moment: verdicts, ranking, and how far the model is behind. It never changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from strays.apps.review.estimate import NoEstimate, RemainingAnomalies, estimate_remaining
from strays.apps.review.generation import Generation
from strays.apps.review.history import Event
from strays.apps.review.learner import Learner
from strays.apps.review.project import Project
from strays.apps.review.verdicts import Verdicts
from strays.errors import DataError
from strays.model.labels import LABELS

# More questions are made where fewer than this are left.
FEWEST_AHEAD = 20


@dataclass(frozen=True)
class Snapshot:
    """What a reader takes once and works on, whatever is written meanwhile. Only the desk publishes new ones."""

    verdicts: Verdicts
    generation: Generation
    tried: np.ndarray  # the labels of the last fit, also of one that is running or has failed
    unlearn: bool = False  # the model knows a verdict that was undone
    refitting: bool = False
    trouble: str | None = None
    remaining: RemainingAnomalies | NoEstimate | None = None

    @classmethod
    def first(cls, verdicts: Verdicts, learner: Learner) -> Self:
        """Fit on the verdicts there are; where they cannot be learnt from, on the labels the texts came with."""
        learnt, trouble = verdicts, None
        try:
            ranking = learner.learn(learnt.labels, learnt.searched)
        except DataError as error:
            if not verdicts.standing:
                raise
            learnt, trouble = Verdicts.none(verdicts.project), f"the model has not learnt from the verdicts: {error}"
            ranking = learner.learn(learnt.labels, learnt.searched)
        generation = Generation.of(ranking, 0, learnt.y).with_questions(verdicts, learner)
        made = cls(verdicts, generation, tried=verdicts.y, trouble=trouble)
        return replace(made, remaining=made.estimate())

    def add(self, events: Sequence[Event]) -> Self:
        """The state after the next events."""
        verdicts = self.verdicts.add(events)
        undone = (e for e in events if e.undoes is not None)
        places = self.project.places(id_ for event in undone for id_ in verdicts.history.texts(event))
        unlearn = self.unlearn or bool((verdicts.y != self.tried)[places].any())
        return replace(self, verdicts=verdicts, unlearn=unlearn)

    @property
    def project(self) -> Project:
        """The texts that all this is about."""
        return self.verdicts.project

    @property
    def n_fresh(self) -> int:
        """How many labels have changed since the last fit began."""
        return int(np.count_nonzero(self.verdicts.y != self.tried))

    @property
    def is_fit_due(self) -> bool:
        """Whether the model should learn now; what it should forget does not wait for more verdicts."""
        return self.n_fresh >= self.project.every or self.unlearn

    @property
    def runs_short(self) -> bool:
        """Whether more questions should be made."""
        is_open = self.verdicts.is_open
        left = sum(bool(is_open[question.place]) for question in self.generation.questions)
        return left < FEWEST_AHEAD < int(is_open.sum())

    def estimate(self) -> RemainingAnomalies | NoEstimate:
        """How many anomalies are still to be found, or why that cannot be told."""
        answers = self.verdicts.answers
        p = np.array([judgement.p_value for judgement, _ in answers])
        y = np.array([LABELS[verdict] for _, verdict in answers])
        return estimate_remaining(p, y, self.generation.ranking.p_value[self.verdicts.y == 0])

    def why(self, place: int) -> str | None:
        """Why a text was asked about when it was judged, or else why it is to be."""
        event = self.verdicts.standing.get(place)
        return event.judgements[self.project.ids[place]].why if event else self.generation.why.get(place)
