"""What follows from a text's anomaly score: its p-value, its flag, and scikit-learn's names for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np

from strays.encoders import Progress
from strays.model.calibration import DEFAULT_THRESHOLD, Calibration, Threshold
from strays.model.calibration import threshold as make_threshold
from strays.model.fitting import FitSummary
from strays.model.scores import Scores


class Calibrated(ABC):
    """Scores texts, and knows how normal texts score (`calibration_`) and what to flag (`threshold_`).

    >>> class Longer(Calibrated):
    ...     calibration_, threshold_ = Calibration.from_scores(range(1, 100), range(1, 100)), DEFAULT_THRESHOLD
    ...     def anomaly_score(self, texts, *, progress=None):
    ...         return np.array([len(text) for text in texts])
    ...     def _require_fitted(self):
    ...         pass
    >>> Longer().set_threshold(max_false_alarms=0.1).predict(["short", "long " * 19])
    array([ 1, -1])
    """

    calibration_: Calibration
    threshold_: Threshold
    summary_: FitSummary

    @abstractmethod
    def anomaly_score(self, texts: Sequence[str], *, progress: Progress | None = None) -> np.ndarray:
        """One float for each text; higher is odder."""

    @abstractmethod
    def _require_fitted(self) -> None:
        """Raise where there is nothing to score with yet."""

    def score(self, texts: Sequence[str], *, progress: Progress | None = None) -> Scores:
        """Anomaly scores, p-values and flags in one go; the texts are encoded once."""
        return self.flag(self.anomaly_score(texts, progress=progress))

    def flag(self, scores: np.ndarray) -> Scores:
        """The p-values and flags of texts whose anomaly scores are known."""
        self._require_fitted()
        flagged = self.calibration_.flagged(self.threshold_, scores)
        self.calibration_.warn_if_none_flagged(self.threshold_, scores)
        return Scores(scores, self.calibration_.p_value(scores), flagged)

    def p_value(self, texts: Sequence[str]) -> np.ndarray:
        """The share of fresh normal texts expected to score at least as high as each text."""
        return self.score(texts).p_value

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        """+1 for normal texts, -1 for flagged ones."""
        return np.where(self.score(texts).flagged, -1, 1)

    def score_samples(self, texts: Sequence[str]) -> np.ndarray:
        """The negated anomaly score; lower is odder, as in scikit-learn."""
        return -self.anomaly_score(texts)

    def decision_function(self, texts: Sequence[str]) -> np.ndarray:
        """The threshold minus the anomaly score; negative is flagged."""
        scores = self.anomaly_score(texts)
        return self.calibration_.offset(self.threshold_, scores) - scores

    def set_threshold(
        self,
        *,
        max_false_alarms: float | None = None,
        max_false_share: float | None = None,
        flag_rate: float | None = None,
        top: int | None = None,
    ) -> Self:
        """Choose what is flagged, without fitting again. Give one of:

        max_false_alarms
            The highest share of normal texts that may be flagged.
        max_false_share
            The highest share of the flagged texts that may be normal, in expectation, among texts scored together.
        flag_rate
            The share of texts to flag, were they all like the corpus the model was fitted on.
        top
            How many of the texts scored together to flag, the highest-scoring ones.
        """
        self._require_fitted()
        self.threshold_ = make_threshold(
            max_false_alarms=max_false_alarms, max_false_share=max_false_share, flag_rate=flag_rate, top=top
        )
        self.calibration_.warn_if_too_fine(self.threshold_)
        return self

    def warn_if_too_few(self) -> None:
        """Warn where the texts that the model was fitted on are too few for any of them to be flagged."""
        if self.threshold_ == DEFAULT_THRESHOLD:
            self.calibration_.warn_if_too_few(self.summary_.n_presumed_normal, own=True)
