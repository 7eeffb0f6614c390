"""Scoring in two steps: a cheap head looks at every text, the full model only at those it could flag.

A text that is not sent gets the score that ranks among normal texts as the head ranks it, never one past the threshold.
Such an estimate is rounded to float32 and a full score never is, so that scores, wherever they are kept, tell where
they came from.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np

from strays.encoders import Progress
from strays.encoders.base import check_texts
from strays.errors import ModelError, StraysWarning, UsageError
from strays.model import Scores, TextOutlierDetector
from strays.model.calibration import Threshold
from strays.model.cascade import RECALL, Cascade, Cut

# A larger share of texts than this is not worth a cascade.
MUCH = 0.5


class CascadeScorer:
    """Scores texts like the model it is made of, at a fraction of the cost and with a promised recall of its flags.

    Parameters
    ----------
    model
        A model fitted with cascade=True. Its threshold decides what is sent; set it first.
    recall
        The share of the texts the model would flag that it gets to see.
    """

    def __init__(self, model: TextOutlierDetector, recall: float = RECALL) -> None:
        cascade = getattr(model, "cascade_", None)
        if cascade is None:
            raise ModelError("this model was fitted without a cascade; fit it again with cascade=True (--cascade)")
        if model.threshold_.together:
            raise UsageError(
                f"{model.threshold_.rule} looks at the scores of all texts, which a cascade does not have; expected "
                "max_false_alarms or flag_rate, or scoring without a cascade"
            )
        self.model = model
        self.recall = recall
        self._threshold = model.threshold_
        self._cascade: Cascade = cascade
        warn_of_share(self.cut.share)

    @property
    def threshold_(self) -> Threshold:
        """What is flagged, as it was when the cascade was made."""
        return self._threshold

    @property
    def estimates(self) -> bool:
        """Yes: texts that are not sent get an estimate."""
        return True

    @property
    def fingerprint(self) -> str:
        """Hash of all that a score depends on."""
        return hashlib.sha256(f"{self.model.fingerprint} {self.recall}".encode()).hexdigest()

    @cached_property
    def _offset(self) -> float:
        return self.model.calibration_.offset(self.threshold_, np.empty(0))

    @cached_property
    def cut(self) -> Cut:
        """Where the texts are parted, and what that promises."""
        return self._cascade.cut(self._offset, self.recall)

    def score(self, texts: Sequence[str], *, progress: Progress | None = None) -> Scores:
        """Anomaly scores, p-values, flags, and which scores are the full model's."""
        return self.flag(self.anomaly_score(texts, progress=progress))

    def anomaly_score(self, texts: Sequence[str], *, progress: Progress | None = None) -> np.ndarray:
        """The full model's score where it could flag a text, an estimate elsewhere."""
        texts = check_texts(texts)
        if self._offset == -np.inf:  # the rule flags everything
            return self.model.anomaly_score(texts, progress=progress)
        values = self._cascade.value(texts)
        estimate = self._cascade.estimate(values, self.model.calibration_.normal_scores).astype(np.float32)
        highest = np.float32(self._offset)
        if highest > self._offset:
            highest = np.nextafter(highest, np.float32(-np.inf))
        scores = np.minimum(estimate, highest).astype(np.float64)
        sent = np.flatnonzero(values >= self.cut.value)
        full = self.model.anomaly_score([texts[i] for i in sent], progress=progress)
        scores[sent] = np.where(full == full.astype(np.float32), np.nextafter(full, -np.inf), full)
        return scores

    def flag(self, scores: np.ndarray) -> Scores:
        """The p-values and flags of texts whose scores are known, and which of these are the full model's."""
        if self.model.threshold_ != self._threshold:  # which decided what was sent
            raise UsageError("the model's threshold has changed since this cascade was made of it; make it anew")
        flagged = self.model.flag(scores)
        by_full = (scores != scores.astype(np.float32)) | (self._offset == -np.inf)
        return Scores(flagged.anomaly_score, flagged.p_value, flagged.flagged & by_full, by_full)

    def without_cache(self) -> Self:
        """The same with encoders that keep no embeddings."""
        scorer = copy(self)
        scorer.model = self.model.without_cache()
        scorer._cascade = scorer.model.cascade_ or self._cascade
        return scorer

    def promise(self) -> dict[str, Any]:
        """What is promised, as plain data."""
        return {
            "recall": self.cut.recall,
            "n_held_out": self.cut.n_held_out,
            "expected_share": self.cut.share,
        }


def warn_of_share(share: float) -> None:
    """Say so where a cascade sends most texts to the full model, and gains little."""
    if share > MUCH:
        warnings.warn(
            f"the cascade would send {share:.0%} of the texts to the full model and gain little; its head cannot tell "
            "what is flagged. Fit on more texts or with known anomalies, ask for less recall, or flag fewer texts",
            StraysWarning,
            stacklevel=3,
        )
