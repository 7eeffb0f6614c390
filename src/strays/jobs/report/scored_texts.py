"""The texts of a file with what a model says of them, as every part of a report takes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strays.jobs.scan import Scan
from strays.model.labels import parse_labels


@dataclass(frozen=True)
class ScoredTexts:
    """The texts of a scanned file in its order, one entry for each row that has one.

    >>> rows = np.arange(3)
    >>> texts = ScoredTexts(["a", "b", "c"], rows, y=np.array([0, -1, 0]), score=np.array([1.0, 3.0, 2.0]),
    ...                     p_value=np.array([0.9, 0.1, 0.5]), flagged=np.array([False, True, False]))
    >>> texts.oddest(2).tolist()
    [1, 2]
    >>> texts.oddest(2, known=False).tolist()
    [2, 0]
    """

    texts: list[str]
    rows: np.ndarray
    y: np.ndarray
    score: np.ndarray
    p_value: np.ndarray
    flagged: np.ndarray
    ids: list[str | None] | None = None

    @classmethod
    def of(cls, found: Scan) -> ScoredTexts:
        """What a scan found, without the rows that have no text."""
        rows = np.array(found.corpus.rows, dtype=int)
        scores = found.scores
        return cls(
            found.corpus.texts[: len(rows)],
            rows,
            parse_labels(found.corpus.labels[: len(rows)], len(rows)),
            scores.anomaly_score[rows],
            scores.p_value[rows],
            scores.flagged[rows].astype(bool),
            found.corpus.ids,
        )

    def oddest(self, top: int, *, known: bool = True) -> np.ndarray:
        """Which texts score highest, the oddest first; with or without those labelled anomaly."""
        order = np.argsort(-self.score, kind="stable")
        return order[known | (self.y[order] >= 0)][:top]
