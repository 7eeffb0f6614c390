"""Texts in, embeddings out. An encoder never sees a score or a label."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from strays.encoders.base import Encoder
from strays.encoders.settings import POOLINGS, EncoderSettings
from strays.encoders.sources import NAMED
from strays.errors import UsageError

if TYPE_CHECKING:
    from strays.encoders.transformer import TransformerEncoder

__all__ = ["NAMED", "Encoder", "load_encoder"]


def load_encoder(
    name: str = "default",
    *,
    revision: str | None = None,
    pooling: str | None = None,
    normalize: bool | None = None,
    max_length: int | None = None,
    device: str = "auto",
    tokens_per_batch: int = 4096,
    progress: Callable[[int, int], None] | None = None,
) -> TransformerEncoder:
    """An encoder by name; its model is loaded when it first encodes.

    Parameters
    ----------
    name
        'default' (all-MiniLM-L6-v2, offline), 'bert' (BERT-base-cased, the paper's), a Hugging Face id, or a folder.
    revision
        Commit, tag or branch on the hub; the named encoders are pinned already.
    pooling
        'mean' or 'cls'; by default what the model's files say, else 'mean'.
    normalize
        Scale every embedding to length 1; by default what the model's files say.
    max_length
        Longest text in tokens; longer ones are cut. By default the model's own limit.
    device
        'auto' takes a GPU where there is one.
    tokens_per_batch
        Tokens in one batch, padding included.
    progress
        Called with (texts done, texts in all) as encoding goes on.
    """
    from strays.encoders.transformer import TransformerEncoder

    if pooling not in (None, *POOLINGS):
        raise UsageError(f"pooling is {pooling!r}; expected {' or '.join(map(repr, POOLINGS))}")
    if max_length is not None and max_length < 3:
        raise UsageError(f"max_length is {max_length}; expected at least 3, since two tokens mark a text's ends")
    if tokens_per_batch < 1:
        raise UsageError(f"tokens_per_batch is {tokens_per_batch}; expected at least 1")
    settings = EncoderSettings(str(name), revision, pooling, normalize, max_length)
    return TransformerEncoder(settings, device, tokens_per_batch, progress)
