"""What an encoder promises, and how to call one, whoever wrote it: its embeddings are checked."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Protocol, Self, runtime_checkable

import numpy as np

from strays.encoders.cut_texts import report_cut_texts
from strays.encoders.languages import Vocabulary, advice, unknown_language
from strays.encoders.settings import EncoderSettings
from strays.errors import DataError, StraysWarning

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
    # Whether it warns about languages and counts what it cuts, and what it has warned about.
    _warns: bool = True
    _warned: set[str]

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
    @abstractmethod
    def fingerprint_0_1(self) -> str:
        """What version 0.1 called so, for what it saved: of weights, vocabulary and settings, but of no config."""

    @property
    @abstractmethod
    def files(self) -> dict[str, str]:
        """The digest of each of the model's files that decide an embedding, by its name."""

    @property
    @abstractmethod
    def made_files(self) -> dict[str, str]:
        """The digest of what was made from those files here and is run in their place: a graph, a table."""

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
        """The same encoder, but one that warns neither of languages it was not made for nor of texts that it cuts."""
        other = copy(self)
        other._warns = False
        return other

    @property
    @abstractmethod
    def _vocabulary(self) -> Vocabulary:
        """The scripts and languages that it was made for."""

    def _warn_of_language(self, texts: list[str]) -> None:
        """Warn, once for each, of a language that most texts are in and this encoder was not made for."""
        language = unknown_language(texts, lambda: self._vocabulary) if self._warns else None
        if language is not None and language not in self._warned:
            self._warned.add(language)
            warnings.warn(StraysWarning(advice(language, self.settings.name), param="encoder"), stacklevel=3)

    def _report_cut(self, n_texts: int, n_cut: int, max_length: int) -> None:
        """Report how many of the texts that were tokenized are longer than it reads."""
        if self._warns:
            report_cut_texts(self.settings.name, max_length, n_texts, n_cut)


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
