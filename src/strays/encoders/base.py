"""What an encoder promises, and how to call one, whoever wrote it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, Self, runtime_checkable

import numpy as np

from strays.encoders.settings import EncoderSettings
from strays.errors import DataError

# Called with (texts done, texts in all) while an encoder works.
Progress = Callable[[int, int], None]


@runtime_checkable
class Encoder(Protocol):
    """Anything that turns texts into embeddings. One text's embedding must not depend on the others."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings as float32 of shape (len(texts), dimension)."""
        ...


@runtime_checkable
class StreamingEncoder(Encoder, Protocol):
    """An encoder that can give embeddings as they come, so that they need not all be in memory."""

    def stream(self, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, embeddings of these texts), every row once, in the order that is fastest."""
        ...


class LoadedEncoder(ABC):
    """An encoder that strays loads by name, and what it promises besides."""

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
        """Hash of what an embedding depends on."""

    @property
    @abstractmethod
    def pinned(self) -> EncoderSettings:
        """The settings that make the same encoder again on another machine, whatever is installed there."""

    @property
    @abstractmethod
    def runs_on(self) -> str:
        """What runs the model, in words."""

    def without_cache(self) -> Self:
        """The same encoder, but one that keeps no embeddings on disk and looks none up."""
        return self

    def without_warnings(self) -> Self:
        """The same encoder, but one that does not warn of texts in a script that it was not made for."""
        return self


def encode(encoder: Encoder, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
    """Embeddings from any encoder; one that strays did not load is not asked for its progress."""
    if isinstance(encoder, LoadedEncoder):
        return encoder.encode(texts, progress=progress)
    return np.asarray(encoder.encode(texts))


def without_cache(encoder: Encoder) -> Encoder:
    """The same encoder, but one that keeps no embeddings on disk; one that strays did not load is left as it is."""
    return encoder.without_cache() if isinstance(encoder, LoadedEncoder) else encoder


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list of strings, or an error that names the first that is none."""
    if isinstance(texts, str):
        raise DataError("got one string; expected a list of texts. For a single text, pass [text]")
    texts = list(texts)
    if set(map(type, texts)) <= {str}:
        return texts
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"texts[{i}] is {text!r:.60} ({type(text).__name__}); expected a string. Drop or fill it")
    return texts
