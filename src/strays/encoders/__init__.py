"""Texts in, embeddings out. An encoder never sees a score or a label."""

from __future__ import annotations

from collections.abc import Callable

from strays.encoders.base import Encoder, LoadedEncoder
from strays.encoders.settings import POOLINGS, EncoderSettings
from strays.encoders.sources import NAMED, is_static
from strays.errors import UsageError

__all__ = ["NAMED", "Encoder", "LoadedEncoder", "load_encoder"]


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
) -> LoadedEncoder:
    """An encoder by name; its model is loaded when it first encodes.

    Parameters
    ----------
    name
        'default' (all-MiniLM-L6-v2, offline), 'bert' (BERT-base-cased, the paper's), a Hugging Face id, or a folder;
        'fast' and 'fast:NAME' for a static encoder distilled from one of those at its first use.
    revision
        Commit, tag or branch on the hub; the named encoders are pinned already.
    pooling
        'mean' or 'cls'; by default what the model's files say, else 'mean'.
    normalize
        Scale every embedding to length 1; by default what the model's files say.
    max_length
        Longest text in tokens; longer ones are cut. By default the model's own limit.
    device
        'auto' takes a GPU where there is one; static encoders need none.
    tokens_per_batch
        Tokens in one batch, padding included.
    progress
        Called with (texts done, texts in all) as encoding goes on.
    """
    if pooling not in (None, *POOLINGS):
        raise UsageError(f"pooling is {pooling!r}; expected {' or '.join(map(repr, POOLINGS))}")
    if max_length is not None and max_length < 3:
        raise UsageError(f"max_length is {max_length}; expected at least 3, since two tokens mark a text's ends")
    if tokens_per_batch < 1:
        raise UsageError(f"tokens_per_batch is {tokens_per_batch}; expected at least 1")
    settings = EncoderSettings(str(name), revision, pooling, normalize, max_length)
    if is_static(settings.name):
        from strays.encoders.static import StaticEncoder

        return StaticEncoder(settings, progress)
    from strays.encoders.transformer import TransformerEncoder

    return TransformerEncoder(settings, device, tokens_per_batch, progress)
