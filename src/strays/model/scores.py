"""What a model says of texts: raw scores, and scores with p-values and flags."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RawScores:
    """Anomaly scores that are not flagged yet, one entry for each text."""

    anomaly_score: np.ndarray
    # Which scores are the full model's, where the others are a cascade's estimates.
    by_full: np.ndarray | None = None


@dataclass(frozen=True)
class Scores:
    """Anomaly scores, p-values and flags of texts scored together, one entry for each text."""

    anomaly_score: np.ndarray
    p_value: np.ndarray
    flagged: np.ndarray
    by_full: np.ndarray | None = None

    def __getitem__(self, some: slice) -> Scores:
        """The scores of some of the texts."""
        by_full = None if self.by_full is None else self.by_full[some]
        return Scores(self.anomaly_score[some], self.p_value[some], self.flagged[some], by_full)
