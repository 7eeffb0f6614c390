"""What a model says of texts: raw scores, and scores with p-values and flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RawScores:
    """Anomaly scores that are not flagged yet, one entry for each text.

    >>> scores = RawScores(np.array([0.5, 2.0]), by_full=np.array([False, True]))
    >>> RawScores.from_bytes(scores.to_bytes(), 2).by_full
    array([False,  True])
    """

    anomaly_score: np.ndarray
    # Which scores are the full model's, where the others are a cascade's estimates.
    by_full: np.ndarray | None = None

    @classmethod
    def joined(cls, parts: Sequence[RawScores]) -> RawScores:
        """The scores of several lots of texts, one lot after another."""
        by_full = [part.by_full for part in parts if part.by_full is not None]
        return cls(np.concatenate([part.anomaly_score for part in parts]), np.concatenate(by_full) if by_full else None)

    def to_bytes(self) -> bytes:
        """The scores as float64, then, of a cascade, a byte for each text that is 1 if the full model scored it."""
        scores = np.ascontiguousarray(self.anomaly_score, "<f8").tobytes()
        return scores if self.by_full is None else scores + self.by_full.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, n: int) -> RawScores:
        """From what to_bytes gave for n texts."""
        by_full = np.frombuffer(data, bool, offset=8 * n) if len(data) > 8 * n else None
        return cls(np.frombuffer(data, "<f8", count=n), by_full)


@dataclass(frozen=True)
class Scores:
    """Anomaly scores, p-values and flags of texts scored together, one entry for each text.

    >>> scores = Scores(np.array([0.5, 2.0]), np.array([0.4, 0.01]), np.array([False, True]))
    >>> scores[1:].p_value
    array([0.01])
    """

    anomaly_score: np.ndarray
    p_value: np.ndarray
    flagged: np.ndarray
    by_full: np.ndarray | None = None

    def __getitem__(self, some: slice) -> Scores:
        """The scores of some of the texts."""
        by_full = None if self.by_full is None else self.by_full[some]
        return Scores(self.anomaly_score[some], self.p_value[some], self.flagged[some], by_full)
