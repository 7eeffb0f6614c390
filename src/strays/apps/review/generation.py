"""A ranking, and what follows from it: one for every fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from strays.apps.review.asking import Ask, questions
from strays.apps.review.learner import Ranking

# Questions made with every ranking.
ASKED_AHEAD = 100


@dataclass(frozen=True)
class Generation:
    """A ranking, places from the oddest on, the rank of each (1: the oddest), and the questions to ask."""

    number: int
    ranking: Ranking
    order: np.ndarray
    rank: np.ndarray
    asks: list[Ask] = field(default_factory=list)
    why: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, ranking: Ranking, number: int) -> Self:
        """Without questions yet."""
        order = np.argsort(-ranking.anomaly_score, kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(1, len(order) + 1)
        return cls(number, ranking, order, rank)

    def with_questions(
        self,
        X: np.ndarray,
        y: np.ndarray,
        open_: np.ndarray,
        answers: Sequence[tuple[str, bool]],
        rng: np.random.Generator,
    ) -> Self:
        """The same ranking with new questions; see asking.questions."""
        asks = questions(self.ranking.anomaly_score, X, y, open_, ASKED_AHEAD, answers=answers, rng=rng)
        return replace(self, asks=asks, why={ask.row: ask.why for ask in asks})
