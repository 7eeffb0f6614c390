"""What an encoder promises, and how to call one, whoever wrote it: its embeddings are checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, Self, runtime_checkable

import numpy as np

from strays.encoders.settings import EncoderSettings
from strays.errors import DataError

# Called with (texts done, texts in all) while an encoder works.
Progress = Callable[[int, int], None]
# Rows, and the embeddings of these texts.
Embedded = tuple[np.ndarray, np.ndarray]
# Rows that `stream` hands on together; their embeddings are then forgotten.
AT_ONCE = 8192


@runtime_checkable
class Encoder(Protocol):
    """Anything that turns texts into embeddings. One text's embedding must not depend on the others.

    >>> import numpy as np
    >>> class Lengths:
    ...     def encode(self, texts):
    ...         return np.array([[len(text), text.count(" ")] for text in texts], dtype=np.float32)
    >>> isinstance(Lengths(), Encoder)
    True
    """

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings as float32 of shape (len(texts), dimension)."""
        ...


@runtime_checkable
class StreamingEncoder(Encoder, Protocol):
    """An encoder that can give embeddings as they come, so that they need not all be in memory."""

    def stream(self, texts: Sequence[str]) -> Iterator[Embedded]:
        """(rows, embeddings of these texts), every row once, in the order that is fastest."""
        ...


class LoadedEncoder(ABC):
    """An encoder that strays loads by name: TransformerEncoder and StaticEncoder."""

    settings: EncoderSettings

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings.name!r})"

    @abstractmethod
    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> np.ndarray:
        """Embeddings as float32 of shape (len(texts), dimension)."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length of an embedding."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of everything that an embedding depends on."""

    @property
    def pinned(self) -> EncoderSettings:
        """The settings that give the same encoder on another machine, whatever is installed there."""
        return self.settings

    @property
    @abstractmethod
    def runs_on(self) -> str:
        """What runs the model, in words."""

    def without_cache(self) -> Self:
        """The same encoder, but one that neither stores embeddings on disk nor looks them up."""
        return self

    def without_warnings(self) -> Self:
        """The same encoder, but one that does not warn about texts in a script that it was not made for."""
        return self


def encode(encoder: Encoder, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
    """Embeddings from any encoder; only one that strays loaded is told about `progress`."""
    if isinstance(encoder, LoadedEncoder):
        return encoder.encode(texts, progress=progress)
    return np.asarray(encoder.encode(texts))


def stream(encoder: StreamingEncoder, texts: list[str], progress: Progress | None = None) -> Iterator[Embedded]:
    """(rows, embeddings of these texts), at least AT_ONCE at a time but for the last, in the encoder's own order."""
    options = {"progress": progress} if isinstance(encoder, LoadedEncoder) else {}
    parts: list[Embedded] = []
    for part in encoder.stream(texts, **options):
        parts.append(part)
        if sum(len(rows) for rows, _ in parts) >= AT_ONCE:
            yield _joined(parts, texts)
            parts = []
    if parts:
        yield _joined(parts, texts)


def without_cache(encoder: Encoder) -> Encoder:
    """The same encoder without a cache on disk; an encoder that strays did not load is returned as it is."""
    return encoder.without_cache() if isinstance(encoder, LoadedEncoder) else encoder


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list of strings; raises an error that names the first entry that is not a string."""
    if isinstance(texts, str):
        raise DataError("{texts} is a single string; expected a list of texts. Pass [text]", param="texts")
    texts = list(texts)
    if set(map(type, texts)) <= {str}:
        return texts
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            found = f"{text!r:.60} ({type(text).__name__})"
            raise DataError(f"{{texts}}[{i}] is {found}; expected a string. Drop or fill it", param="texts")
    return texts


def whole_characters(texts: list[str]) -> list[str]:
    """A lone surrogate is no character and cannot be tokenized; the replacement keeps the rest of its text."""
    try:
        "".join(texts).encode("utf-8")
    except UnicodeEncodeError:
        return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    return texts


def check_embeddings(X: np.ndarray, texts: list[str]) -> np.ndarray:
    """The embeddings of these texts; raises an error unless there is one row of finite numbers for each text."""
    if X.ndim != 2 or len(X) != len(texts):
        raise DataError(f"the encoder returned shape {X.shape} for {len(texts)} texts; expected one row for each")
    return _finite(X, texts, np.arange(len(texts)))


def _joined(parts: list[Embedded], texts: list[str]) -> Embedded:
    if len(parts) > 1:  # copying a single part would take longer than scoring it on a GPU
        parts = [(np.concatenate([rows for rows, _ in parts]), np.concatenate([X for _, X in parts]))]
    rows, X = parts[0]
    return rows, _finite(X, texts, rows)


def _finite(X: np.ndarray, texts: list[str], rows: np.ndarray) -> np.ndarray:
    if not np.isfinite(X.sum(dtype=np.float64)):  # one NaN or infinity makes the whole sum one
        bad = rows[~np.isfinite(X).all(axis=1)].min()
        raise DataError(f"the encoder returned NaN or infinity for text {bad} ({texts[bad]!r:.60})")
    return X
