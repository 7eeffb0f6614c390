"""Texts in, embeddings out. An encoder never sees a score or a label."""

from __future__ import annotations

from strays.encoders.base import Encoder, LoadedEncoder, Progress, StreamingEncoder, encode
from strays.encoders.cache import EmbeddingCache
from strays.encoders.settings import EncoderSettings
from strays.encoders.sources import NAMED, is_static
from strays.errors import UsageError

__all__ = ["NAMED", "Encoder", "LoadedEncoder", "Progress", "StreamingEncoder", "encode", "load_encoder"]

RUNTIMES = ("auto", "onnx", "torch")


def load_encoder(
    name: str = "default",
    *,
    revision: str | None = None,
    pooling: str | None = None,
    normalize: bool | None = None,
    max_length: int | None = None,
    precision: str | None = None,
    device: str = "auto",
    runtime: str = "auto",
    tokens_per_batch: int | None = None,
    cache: bool = True,
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
    precision
        'full' or 'int8'; by default int8 on a CPU with ONNX Runtime, where it stays close to the exact embeddings. A
        saved model remembers which. On a GPU bfloat16 stands for both.
    device
        'auto' takes a GPU where there is one; static encoders need none.
    runtime
        'auto', 'onnx' or 'torch'.
    tokens_per_batch
        Tokens in one batch, padding included; by default what suits the machine.
    cache
        Keep embeddings on disk, and look them up there; see `strays cache`.
    """
    settings = EncoderSettings(str(name), revision, pooling, normalize, max_length, precision)
    settings.check()
    if runtime not in RUNTIMES:
        raise UsageError(f"runtime is {runtime!r}; expected one of {', '.join(map(repr, RUNTIMES))}")
    if runtime == "torch" and precision == "int8":
        raise UsageError("precision is 'int8' and runtime 'torch'; expected precision='full', or runtime='onnx'")
    if tokens_per_batch is not None and tokens_per_batch < 1:
        raise UsageError(f"tokens_per_batch is {tokens_per_batch}; expected at least 1")
    if is_static(settings.name):
        from strays.encoders.static import StaticEncoder

        return StaticEncoder(settings)
    from strays.encoders.transformer import TransformerEncoder

    return TransformerEncoder(settings, device, runtime, tokens_per_batch, EmbeddingCache() if cache else None)
