"""What an encoder gives, checked, whoever wrote it: one row of finite numbers for each text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strays.encoders.base import LoadedEncoder, Progress, StreamingEncoder
from strays.errors import DataError

# Rows that are handed on together; their embeddings are then forgotten.
AT_ONCE = 8192


def one_for_each(X: np.ndarray, texts: list[str]) -> np.ndarray:
    """The embeddings of these texts; an error where they cannot be that."""
    if X.ndim != 2 or len(X) != len(texts):
        raise DataError(f"the encoder gave shape {X.shape} for {len(texts)} texts; expected one row for each")
    return _finite(X, texts, np.arange(len(texts)))


def streamed(
    encoder: StreamingEncoder, texts: list[str], progress: Progress | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(rows, embeddings of these texts), at least AT_ONCE at a time but for the last, in the encoder's own order."""
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    options = {"progress": progress} if isinstance(encoder, LoadedEncoder) else {}
    for part in encoder.stream(texts, **options):
        parts.append(part)
        if sum(len(rows) for rows, _ in parts) >= AT_ONCE:
            yield _gathered(parts, texts)
            parts = []
    if parts:
        yield _gathered(parts, texts)


def _gathered(parts: list[tuple[np.ndarray, np.ndarray]], texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    if len(parts) > 1:  # else copying takes longer than scoring on a GPU
        parts = [(np.concatenate([rows for rows, _ in parts]), np.concatenate([X for _, X in parts]))]
    rows, X = parts[0]
    return rows, _finite(X, texts, rows)


def _finite(X: np.ndarray, texts: list[str], rows: np.ndarray) -> np.ndarray:
    """The embeddings of some rows' texts; an error where there is a number missing."""
    if not np.isfinite(X.sum(dtype=np.float64)):  # no number that is none gets lost in a sum
        bad = rows[~np.isfinite(X).all(axis=1)].min()
        raise DataError(f"the encoder gave NaN or infinity for text {bad} ({texts[bad]!r:.60})")
    return X
