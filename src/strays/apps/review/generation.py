"""A ranking, and what follows from it: one for every fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from strays.apps.review.learner import Learner, Ranking
from strays.apps.review.questions import Question, choose_questions, near_copies
from strays.apps.review.verdicts import Verdicts

# Questions made with every ranking.
ASKED_AHEAD = 100


@dataclass(frozen=True)
class Generation:
    """A ranking, the labels y it was learnt from, places from the oddest on, the rank of each (1: the oddest), and the
    questions to ask.
    """

    number: int
    ranking: Ranking
    y: np.ndarray
    order: np.ndarray
    rank: np.ndarray
    questions: Sequence[Question] = ()
    why: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, ranking: Ranking, number: int, y: np.ndarray) -> Self:
        """Without questions yet."""
        order = np.argsort(-ranking.anomaly_score, kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(1, len(order) + 1)
        return cls(number, ranking, y, order, rank)

    def with_questions(self, verdicts: Verdicts, learner: Learner) -> Self:
        """The same ranking with new questions about what is open."""
        score, copies_tie = self.ranking.anomaly_score, self.ranking.model.detector_.copies_tie
        questions = choose_questions(
            score,
            learner.X,
            verdicts.y,
            verdicts.is_open,
            ASKED_AHEAD,
            answers=[(judgement.why or "", verdict == "anomaly") for judgement, verdict in verdicts.answers],
            rng=np.random.default_rng([learner.random_state, verdicts.history.last]),
            later=near_copies(score, verdicts.is_open, verdicts.y != self.y) if copies_tie else None,
            form=self.ranking.unusual_form,
        )
        return replace(self, questions=questions, why={question.place: question.why for question in questions})
