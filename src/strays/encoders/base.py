"""What an encoder promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from strays.encoders.settings import EncoderSettings
from strays.errors import DataError


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


class LoadedEncoder(Encoder, Protocol):
    """What the encoders that strays loads by name promise besides."""

    settings: EncoderSettings
    progress: Callable[[int, int], None] | None
    # Whether to warn of texts in a script that the encoder was not made for, where it can tell.
    warn_of_scripts: bool

    @property
    def dimension(self) -> int:
        """Length of an embedding."""
        ...

    @property
    def fingerprint(self) -> str:
        """Hash of what an embedding depends on."""
        ...

    @property
    def pinned(self) -> EncoderSettings:
        """The settings that make the same encoder again on another machine, whatever is installed there."""
        ...

    @property
    def runs_on(self) -> str:
        """What runs the model, in words."""
        ...


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
