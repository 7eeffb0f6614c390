"""What a fitted detector sees of texts, and the scores it gives them: embeddings and, where it counts, the form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strays.detectors import Detector
from strays.encoders import Encoder
from strays.errors import ModelError
from strays.model.form import FormReader, UnusualForm


@dataclass(frozen=True, eq=False)
class TextScorer:
    """A fitted detector, the encoder that its embeddings come from, and what is known of the form of normal texts."""

    detector: Detector
    encoder: Encoder
    form: FormReader | None

    def rows(self, texts: Sequence[str], X: np.ndarray) -> np.ndarray:
        """What the detector sees of texts with embeddings X."""
        return with_form(self.form, texts, X)

    def scores(self, texts: Sequence[str], X: np.ndarray) -> np.ndarray:
        """The scores of texts with embeddings X."""
        return self._scores(X, self._form(texts))

    def part_scores(self, X: np.ndarray) -> np.ndarray:
        """The scores of parts of texts, whose form does not count, from their embeddings."""
        return self._scores(X, np.tile(self.detector.usual_form, (len(X), 1)))

    def unusual_forms(self, texts: Sequence[str]) -> list[UnusualForm]:
        """What the form of each text adds to its score."""
        shares, low = self.detector.form_shares(self._form(texts))
        return list(map(UnusualForm.of, shares, low))

    def form_amounts(self, texts: Sequence[str]) -> np.ndarray | None:
        """How much the form of each text adds to its score; None where it does not count."""
        return self.detector.form_shares(self._form(texts))[0].sum(axis=1) if self.form else None

    def _form(self, texts: Sequence[str]) -> np.ndarray:
        return self.form.columns(texts) if self.form else np.empty((len(texts), 0))

    def _scores(self, X: np.ndarray, form: np.ndarray) -> np.ndarray:
        """Computed on the GPU that the embeddings X come from, if any."""
        expected = self.detector.n_features_in_ - self.detector.n_form
        if X.shape[1] != expected:
            raise ModelError(
                f"the encoder {self.encoder!r:.200} gives embeddings of {X.shape[1]} numbers, but this model was "
                f"fitted on {expected}. Use the same encoder, or fit again"
            )
        rows = np.hstack([X, form.astype(X.dtype)])
        return self.detector.anomaly_score(rows, device=getattr(self.encoder, "scoring_device", "cpu"))


def with_form(form: FormReader | None, texts: Sequence[str], X: np.ndarray) -> np.ndarray:
    """Embeddings X of texts with the columns of their form, if it counts."""
    return np.hstack([X, form.columns(texts).astype(X.dtype)]) if form else X
