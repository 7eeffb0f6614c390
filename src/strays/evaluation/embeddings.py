"""Embeddings of a corpus, computed once and kept.

They are put into the cache as soon as a part of some thousand texts is encoded, so that a stopped job loses one part at
most, and a corpus that grew or a study that needs more rows only has the new texts encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from strays.cache import EmbeddingCache
from strays.evaluation.corpora import LabelledCorpus

TEXTS_IN_PART = 2048


class KnownEncoder(Protocol):
    """An encoder that can say what its embeddings depend on."""

    @property
    def dimension(self) -> int:
        """Length of an embedding."""

    @property
    def fingerprint(self) -> str:
        """Hash of what an embedding depends on."""

    def encode(self, texts: list[str]) -> np.ndarray:
        """One row for each text."""


def embed(
    corpus: LabelledCorpus,
    rows: Iterable[int],
    encoder: KnownEncoder,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Embeddings of shape (texts of the corpus, dimension) in which the given rows are filled and all others NaN."""
    cache = EmbeddingCache()
    asked = np.array(sorted(set(rows)), dtype=int)
    found, embeddings = cache.get(encoder.fingerprint, [corpus.texts[i] for i in asked])
    out = np.full((len(corpus.texts), encoder.dimension), np.nan, dtype=np.float32)
    if found.any():
        out[asked[found]] = embeddings
    # Texts of like length together: a part is then encoded with little padding.
    missing = sorted(asked[~found].tolist(), key=lambda i: len(corpus.texts[i]))
    for start in range(0, len(missing), TEXTS_IN_PART):
        part = missing[start : start + TEXTS_IN_PART]
        texts = [corpus.texts[i] for i in part]
        out[part] = encoder.encode(texts)
        cache.put(encoder.fingerprint, texts, out[part])
        if progress:
            progress(start + len(part), len(missing))
    return out
