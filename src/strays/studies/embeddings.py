"""Embeddings of a corpus.

The encoder's cache keeps what is encoded. Texts go to it some thousand at a time, so that an interrupted job loses at
most that many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from strays.studies.corpora import LabelledCorpus

TEXTS_IN_PART = 2048


class SizedEncoder(Protocol):
    """An encoder that can say how long its embeddings are: every one that `load_encoder` gives."""

    @property
    def dimension(self) -> int:
        """Length of an embedding."""

    def encode(self, texts: list[str]) -> np.ndarray:
        """One row for each text."""


def embed(
    corpus: LabelledCorpus,
    rows: Iterable[int],
    encoder: SizedEncoder,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Embeddings of shape (texts of the corpus, dimension) in which the given rows are filled and all others NaN."""
    out = np.full((len(corpus.texts), encoder.dimension), np.nan, dtype=np.float32)
    # Texts of like length together: a part is then encoded with little padding.
    asked = sorted(set(rows), key=lambda i: (len(corpus.texts[i]), i))
    for start in range(0, len(asked), TEXTS_IN_PART):
        part = asked[start : start + TEXTS_IN_PART]
        out[part] = encoder.encode([corpus.texts[i] for i in part])
        if progress:
            progress(start + len(part), len(asked))
    return out
