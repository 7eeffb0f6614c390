"""A model that is fitted again and again on one corpus, as people say more of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strays.detectors import AutoDetector, Detector
from strays.detectors.base import FOUND
from strays.detectors.estimator import clone
from strays.encoders import Encoder
from strays.model import TextOutlierDetector
from strays.model.calibration import DEFAULT_THRESHOLD
from strays.model.examples import Examples
from strays.model.labels import WORD
from strays.model.text_scorer import TextScorer

# Rows the default detector compares with at the desk: half of what it takes elsewhere, so that refits are quick.
MEMORY = 2048


@dataclass(frozen=True)
class Ranking:
    """What a model says of every text of the corpus, in its order, and how many labels it has learnt from.

    `unusual_form` is how much of a score the form makes; None where it does not count.
    """

    model: TextOutlierDetector
    anomaly_score: np.ndarray
    p_value: np.ndarray
    flagged: np.ndarray
    unusual_form: np.ndarray | None
    n_labels: int
    seconds: float


class Learner:
    """Fits models on the texts of one corpus, whose embeddings X are at hand.

    `base` is a model fitted elsewhere to start from: it makes the first ranking, and the texts it keeps as examples,
    with their labels, go into every later fit, but for those of this corpus, of which people here have the say.

    >>> class Lengths:
    ...     def encode(self, texts):
    ...         return np.array([[len(text), len(text.split())] for text in texts], dtype=np.float32)
    >>> texts = [f"hen {i}" for i in range(20)] + ["a quark in the barn"]
    >>> learner = Learner(texts, Lengths().encode(texts), Lengths(), "centroid")
    >>> ranking = learner.learn([None] * 20 + ["anomaly"])
    >>> int(ranking.anomaly_score.argmax()), ranking.n_labels
    (20, 1)
    """

    def __init__(
        self,
        texts: Sequence[str],
        X: np.ndarray,
        encoder: Encoder,
        detector: str | Detector = "auto",
        *,
        base: TextOutlierDetector | None = None,
        random_state: int = 0,
    ) -> None:
        self.texts = list(texts)
        self.X = X
        self.encoder = encoder
        self.detector = base.detector_ if base else detector
        self.base = base
        self.brought = _besides(base.examples_, set(texts)) if base else None
        self.random_state = random_state

    def learn(self, labels: Sequence[str | None], searched: np.ndarray | None = None) -> Ranking:
        """The ranking by a model that knows these labels, one (or None) for each text of the corpus.

        `searched` says which of them people gave at the desk, as in TextOutlierDetector.fit.
        """
        start = time.perf_counter()
        n_labels = sum(label is not None for label in labels)
        if self.base is not None and not n_labels:
            scores = self.base.anomaly_score(self.texts, embeddings=self.X)
            return self._ranked(self.base, scores, n_labels, start)
        model = self._fitted(self._of_size(MEMORY), labels, searched, keep_examples=len(self.texts))
        return self._ranked(model, model.training_scores_[: len(self.texts)], n_labels, start)

    def model_to_save(self, labels: Sequence[str | None], searched: np.ndarray | None = None) -> TextOutlierDetector:
        """A model of full size that knows these labels, to save and to score other files with."""
        return self._fitted(self.detector, labels, searched, keep_examples=1000)

    def _of_size(self, most: int) -> str | Detector:
        """The detector; the default one with `most` memory at most."""
        detector = AutoDetector() if self.detector == "auto" else self.detector
        if not isinstance(detector, AutoDetector):
            return detector
        return clone(detector).set_params(memory=min(detector.memory, most))

    def _fitted(
        self,
        detector: str | Detector,
        labels: Sequence[str | None],
        searched: np.ndarray | None,
        keep_examples: int,
    ) -> TextOutlierDetector:
        model = TextOutlierDetector(self.encoder, detector, keep_examples=keep_examples, random_state=self.random_state)
        texts, X, labels = self.texts, self.X, [*labels]
        searched = np.zeros(len(texts), dtype=bool) if searched is None else searched
        if self.brought and self.brought.texts:
            texts, X = [*texts, *self.brought.texts], np.vstack([X, self.brought.X])
            labels += [WORD[int(y)] for y in np.sign(self.brought.y)]
            searched = np.r_[searched, self.brought.y == FOUND]
        # The desk ranks: that few texts are too few to flag any need not be said after every few verdicts.
        return model.fit(texts, labels, searched=searched, embeddings=X, threshold=DEFAULT_THRESHOLD)

    def _ranked(self, model: TextOutlierDetector, scores: np.ndarray, n_labels: int, start: float) -> Ranking:
        judged = model.flag(scores)
        form = TextScorer(model.detector_, model.encoder_, model.form_).form_amounts(self.texts)
        return Ranking(model, scores, judged.p_value, judged.flagged, form, n_labels, time.perf_counter() - start)


def _besides(examples: Examples, texts: set[str]) -> Examples:
    """The examples whose texts are none of these."""
    rows = [i for i, text in enumerate(examples.texts) if text not in texts]
    return Examples([examples.texts[i] for i in rows], examples.X[rows], examples.y[rows])
