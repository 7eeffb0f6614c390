"""Errors of the libraries that load and run encoders, turned into EncoderErrors that say what to do.

Three cases are told apart: files that cannot be loaded, a run that fails, and memory that runs out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from strays.errors import EncoderError, LoadingError, StraysError, first_line

# How libraries without an exception of their own for it say so: PyTorch, CUDA, ONNX Runtime, C++, the system.
NO_MEMORY = re.compile(
    r"(?i)out of memory|not enough memory|can(no|')t allocate|(failed|unable) to allocate|bad[_ ]alloc|alloc_failed"
)
LESS_TO_LOAD = "Free some memory, choose a smaller encoder, or set {device} to cpu if a GPU has too little"
LESS_AT_ONCE = (
    "Use smaller batches (load_encoder(..., tokens_per_batch=...)), cut long texts with {max_length}, or set {device} "
    "to cpu if a GPU has too little"
)
PARAMS = ("device", "max_length")
TORCH_PIP = "pip install 'strays[torch]'"


def loading(folder: Path) -> AbstractContextManager[None]:
    """Wraps the reading of an encoder's files: the libraries raise all kinds of errors at damaged or foreign ones."""
    encoder, remedy = f"the encoder in {folder}", "Expected a complete BERT-like model; download its files again"
    return as_encoder_error(f"loading {encoder}", f"could not load {encoder}", remedy, kind=LoadingError)


def running(folder: Path, less: str = LESS_AT_ONCE) -> AbstractContextManager[None]:
    """Wraps the use of a loaded encoder; `less` says how to make it need less memory."""
    encoder = f"the encoder in {folder}"
    remedy = "Expected a tokenizer and weights that belong together; if they do, set {device} to cpu or runtime='torch'"
    return as_encoder_error(f"running {encoder}", f"{encoder} was loaded, but failed when it ran", remedy, less)


def without_torch(folder: Path, because: str) -> EncoderError:
    """The error for an encoder that needs the extra torch, where it is not installed."""
    needs = f"and so needs PyTorch and transformers, which are not installed: {TORCH_PIP}"
    return EncoderError(f"the encoder in {folder} {because}, {needs}")


@contextmanager
def as_encoder_error(
    doing: str, failed: str, remedy: str, less: str = LESS_TO_LOAD, *, kind: type[EncoderError] = EncoderError
) -> Iterator[None]:
    """Turn any error into an EncoderError: memory ran out while `doing`, with `less` as remedy, or it `failed`."""
    try:
        yield
    except StraysError:
        raise
    except BaseException as error:  # each library has its own
        # What panics in Rust, as tokenizers does at a hostile table, is no Exception of Python.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if ran_out_of_memory(error):
            failed, remedy = f"memory ran out while {doing}", less
        raise kind(f"{failed} ({first_line(error):.300}). {remedy}", param=PARAMS) from error


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error, of whatever library, says that there is too little memory."""
    return isinstance(error, MemoryError) or NO_MEMORY.search(str(error)) is not None
