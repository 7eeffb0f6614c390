"""What goes wrong with an encoder, told apart: files that cannot be loaded, a run that fails, memory that runs out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from strays.errors import EncoderError, StraysError, first_line

# How libraries say it where they have no kind of error for it: PyTorch, CUDA's own, ONNX Runtime, C++, the system.
NO_MEMORY = re.compile(
    r"out of memory|not enough memory|can(no|')t allocate|(failed|unable) to allocate|bad[_ ]alloc|alloc_failed",
    re.IGNORECASE,
)
LESS_TO_LOAD = "Free some, choose a smaller encoder, or device='cpu' (--device cpu) where a GPU has too little"
LESS_AT_ONCE = (
    "Take smaller batches, load_encoder(..., tokens_per_batch=), or cut long texts, max_length= (--max-length); "
    "or choose device='cpu' (--device cpu) where a GPU has too little"
)


def loading(folder: Path) -> AbstractContextManager[None]:
    """Around what reads an encoder's files: damaged and foreign ones make the libraries raise whatever they like."""
    return telling(
        f"loading the encoder in {folder}",
        f"could not load the encoder in {folder}",
        "Expected a complete BERT-like model; get its files again",
    )


def running(folder: Path, less: str = LESS_AT_ONCE) -> AbstractContextManager[None]:
    """Around what a loaded encoder does; `less` says how it would need less memory."""
    return telling(
        f"running the encoder in {folder}",
        f"the encoder in {folder} was loaded, but failed when it ran",
        "Expected a tokenizer and weights that belong together; if they do, try device='cpu' (--device cpu) or "
        "runtime='torch'",
        less,
    )


@contextmanager
def telling(doing: str, failed: str, remedy: str, less: str = LESS_TO_LOAD) -> Iterator[None]:
    """Turn whatever is raised into an EncoderError: memory ran out while `doing`, or what `failed` and its remedy."""
    try:
        yield
    except StraysError:
        raise
    except Exception as error:  # each library has its own
        if ran_out_of_memory(error):
            failed, remedy = f"memory ran out while {doing}", less
        raise EncoderError(f"{failed} ({first_line(error):.300}). {remedy}") from error


def ran_out_of_memory(error: Exception) -> bool:
    """Whether an error, of whatever library, says that there is too little memory."""
    return isinstance(error, MemoryError) or NO_MEMORY.search(str(error)) is not None
