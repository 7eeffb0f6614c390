"""Texts to embeddings and anomaly scores: the detector scores some texts while the encoder is at the next.

An encoder may be any object with `encode(texts)`; those that strays loads by name report their progress from within.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from strays.encoders import Encoder, LoadedEncoder, Progress, StreamingEncoder, encode
from strays.encoders.base import AT_ONCE, check_embeddings, stream
from strays.encoders.identity import EncoderIdentity
from strays.errors import ModelError


def identity_of(encoder: Encoder) -> EncoderIdentity:
    """What a job records of an encoder: the same on every machine."""
    files = encoder.files if isinstance(encoder, LoadedEncoder) else None
    return EncoderIdentity(getattr(encoder, "fingerprint", None), files)


def require_same_encoder(encoder: Encoder, expected: EncoderIdentity | None, what: str) -> None:
    """Raise unless an encoder is the one that a saved model or cascade expects; without an identity, any will do.

    Where version 0.1 saved it, no more can be asked than that weights, vocabulary and settings are the same.
    """
    if expected is None or expected.fingerprint is None:
        return
    by_0_1 = expected.files is None and isinstance(encoder, LoadedEncoder)
    found = getattr(encoder, "fingerprint_0_1" if by_0_1 else "fingerprint", None)
    if found != expected.fingerprint:
        changed = [] if expected.files is None else expected.differing(identity_of(encoder))
        differs = f"{', '.join(changed)[:200]} changed" if changed else "its weights or settings differ"
        raise ModelError(
            f"the encoder {encoder!r:.200} is not the one this {what} was fitted with: {differs}. Use the same "
            "encoder, or fit again"
        )


def embed(encoder: Encoder, texts: list[str], progress: Progress | None = None) -> np.ndarray:
    """The embeddings of texts, checked to be one finite row for each."""
    X = check_embeddings(encode(encoder, texts, progress), texts)
    if progress:
        progress(len(texts), len(texts))
    return X


def anomaly_scores(
    encoder: Encoder,
    score: Callable[[list[str], np.ndarray], np.ndarray],
    texts: list[str],
    progress: Progress | None = None,
) -> np.ndarray:
    """What `score` makes of texts and their embeddings, one float for each; equal texts are encoded and scored once."""
    distinct = list(dict.fromkeys(texts))
    scores = np.empty(len(distinct))

    def score_rows(rows: np.ndarray, X: np.ndarray) -> np.ndarray:
        return score([distinct[row] for row in rows], X)

    embedded = _embedded(encoder, distinct, progress)
    for rows, part in _while_encoding(embedded, score_rows, alone=len(distinct) <= AT_ONCE):
        scores[rows] = part
    if len(distinct) == len(texts):
        return scores
    score_of = dict(zip(distinct, scores.tolist(), strict=True))
    return np.array([score_of[text] for text in texts])


def _while_encoding(
    embedded: Iterator[tuple[np.ndarray, np.ndarray]],
    score: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    alone: bool,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(rows, their scores), from (rows, their embeddings) as these come; one block alone needs no second thread."""
    if alone:
        yield from ((rows, score(rows, X)) for rows, X in embedded)
        return
    with ThreadPoolExecutor(1) as beside:
        under_way: deque[tuple[np.ndarray, Future[np.ndarray]]] = deque()
        for rows, X in embedded:
            under_way.append((rows, beside.submit(score, rows, X)))
            if len(under_way) > 2:  # so that few embeddings are in memory
                rows, part = under_way.popleft()
                yield rows, part.result()
        for rows, part in under_way:
            yield rows, part.result()


def _embedded(encoder: Encoder, texts: list[str], progress: Progress | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(rows, embeddings of these texts), some thousand at a time, in the order that is fastest."""
    if isinstance(encoder, StreamingEncoder):
        yield from stream(encoder, texts, progress)
        return
    for start in range(0, len(texts), AT_ONCE):
        block = texts[start : start + AT_ONCE]
        within = progress and _shifted(progress, start, len(texts))
        yield np.arange(start, start + len(block)), embed(encoder, block, within)


def _shifted(progress: Progress, start: int, total: int) -> Progress:
    return lambda done, _: progress(start + done, total)
