"""The texts of a file with what a model says of them, as every part of a report takes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strays.jobs.scan import Scan
from strays.model.labels import parse_labels


@dataclass(frozen=True)
class ScoredTexts:
    """The texts of a scanned file in its order, one entry for each row that has one."""

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
