"""Scoring in two steps: a cheap head scores every text, the full model only those that it could flag.

A text that is not sent to the full model gets an estimate: the score that ranks among normal texts as the head ranks
the text, but never one past the threshold.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from strays.encoders import Progress
from strays.encoders.inputs import check_texts
from strays.errors import ModelError, StraysWarning, UsageError
from strays.model.cascade import RECALL, Cascade
from strays.model.scores import RawScores, Scores
from strays.model.scoring import identity_of
from strays.model.text_outlier_detector import TextOutlierDetector

# A cascade that sends a larger share of texts to the full model is not worth it.
MUCH = 0.5


class CascadeScorer:
    """Scores texts like the model it is made of, at a fraction of the cost, with a promised recall of its flags.

    Parameters
    ----------
    model
        A model fitted with cascade=True. Its threshold decides which texts are sent to it; set it first.
    recall
        The share of the texts the model would flag that it gets to see.

    >>> import numpy as np
    >>> from strays import TextOutlierDetector
    >>> class Letters:
    ...     def encode(self, texts):
    ...         return np.array([[text.count(c) for c in "abcde"] for text in texts], dtype=np.float32)
    >>> rng = np.random.default_rng(0)
    >>> texts = ["".join(rng.choice(list("abc"), 8)) for _ in range(300)]
    >>> model = TextOutlierDetector(Letters(), "centroid", cascade=Letters()).fit([*texts, "dddddddd", "deeeeeee"])
    >>> scorer = CascadeScorer(model.set_threshold(max_false_alarms=0.05), recall=0.8)
    >>> scores = scorer.score(["abcabcab", "dddddddd"])
    >>> scores.flagged.tolist(), scores.by_full.tolist()
    ([False, True], [False, True])
    """

    # Texts that are not sent to the full model get an estimate.
    estimates = True

    def __init__(self, model: TextOutlierDetector, recall: float = RECALL) -> None:
        cascade = getattr(model, "cascade_", None)
        if cascade is None:
            raise ModelError("this model has no cascade; fit it with {cascade} first", param="cascade")
        if model.threshold_.together:
            raise UsageError(
                f"{{{model.threshold_.rule}}} looks at the scores of all texts, which a cascade does not have; use "
                "{max_false_alarms} or {flag_rate}, or score without {cascade}",
                param=(model.threshold_.rule, "max_false_alarms", "flag_rate", "cascade"),
            )
        self.model = model
        self.recall = recall
        # What is flagged, as it is when the cascade is made.
        self.threshold_ = model.threshold_
        self._cascade: Cascade = cascade
        self._offset = model.calibration_.offset(self.threshold_, np.empty(0))
        # Which texts are sent to the full model, and what that promises.
        self.cut = cascade.cut(self._offset, recall)
        warn_of_share(self.cut.share)

    @property
    def fingerprint(self) -> str:
        """Hash of all that a score depends on."""
        return hashlib.sha256(f"{self.model.fingerprint} {self.recall}".encode()).hexdigest()

    @property
    def encoder_identity(self) -> dict[str, Any]:
        """The encoders in use: their fingerprints, and the digests of their files."""
        return {"full": self.model.encoder_identity, "fast": identity_of(self._cascade.encoder).to_dict()}

    def score(self, texts: Sequence[str], *, progress: Progress | None = None) -> Scores:
        """Anomaly scores, p-values, flags, and which scores are the full model's."""
        raw = self.raw_scores(texts, progress=progress)
        return replace(self.flag(raw.anomaly_score), by_full=raw.by_full)

    def anomaly_score(self, texts: Sequence[str], *, progress: Progress | None = None) -> np.ndarray:
        """The full model's score where it could flag a text, an estimate elsewhere."""
        return self.raw_scores(texts, progress=progress).anomaly_score

    def raw_scores(self, texts: Sequence[str], *, progress: Progress | None = None) -> RawScores:
        """Anomaly scores, and which of them are the full model's."""
        texts = check_texts(texts)
        if self._offset == -np.inf:  # the threshold flags every text
            return RawScores(self.model.anomaly_score(texts, progress=progress), np.ones(len(texts), dtype=bool))
        distinct = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        values = self._cascade.value(list(distinct))[[distinct[text] for text in texts]]
        scores = np.minimum(self._cascade.estimate(values, self.model.calibration_.normal_scores), self._offset)
        by_full = values >= self.cut.value
        sent = [texts[i] for i in np.flatnonzero(by_full)]
        scores[by_full] = self.model.anomaly_score(sent, progress=progress)
        return RawScores(scores, by_full)

    def flag(self, scores: np.ndarray) -> Scores:
        """The p-values and flags of texts whose anomaly scores are known; no estimate is past the threshold."""
        if self.model.threshold_ != self.threshold_:  # which decided what was sent
            raise UsageError("the model's threshold has changed since this cascade was made; make a new CascadeScorer")
        return self.model.flag(scores)

    def without_cache(self) -> Self:
        """The same with encoders that keep no embeddings."""
        scorer = copy(self)
        scorer.model = self.model.without_cache()
        scorer._cascade = scorer.model.cascade_ or self._cascade
        return scorer

    def promise(self) -> dict[str, Any]:
        """What is promised, as plain data."""
        return {"recall": self.cut.recall, "n_held_out": self.cut.n_held_out, "expected_share": self.cut.share}


def warn_of_share(share: float) -> None:
    """Warn if a cascade sends most texts to the full model, and so gains little."""
    if share > MUCH:
        warnings.warn(
            StraysWarning(
                f"the cascade would send {share:.0%} of the texts to the full model and gain little, because its head "
                "cannot tell which texts are flagged. Fit on more texts or with known anomalies, lower {recall}, or "
                "flag fewer texts",
                param="recall",
            ),
            stacklevel=3,
        )
