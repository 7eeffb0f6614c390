"""What only transformers can read: models that are no BERT, tokenizers that `tokenizers` cannot run, weights that are
no safetensors, and models for PyTorch to run. Nothing else imports transformers, and nothing imports it unless needed.

Only the files in the folder are read, no code that comes with them is run, and nothing is shown on the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strays.encoders.library_errors import loading, without_torch
from strays.encoders.tokenizer_files import FastTokenizer


@dataclass(frozen=True, eq=False)
class SlowTokenizer:
    """A tokenizer that is written in Python."""

    wrapped: Any

    @property
    def padding(self) -> int:
        """The id that fills a batch up."""
        return self.wrapped.pad_token_id or 0

    @property
    def model_max_length(self) -> float:
        """The most tokens that it is made for."""
        return self.wrapped.model_max_length

    def ids(self, texts: list[str], max_length: int | None = None) -> list[list[int]]:
        """Each text's ids, at most so many."""
        cut = {} if max_length is None else {"truncation": True, "max_length": max_length}
        return self.wrapped(texts, verbose=False, **cut)["input_ids"]

    def pieces(self) -> list[str]:
        """Every piece of the vocabulary, as text."""
        return self.wrapped.batch_decode([[i] for i in range(len(self.wrapped))])


def load_config(folder: Path) -> Any:
    """What config.json says of a model of any kind."""
    return _load("AutoConfig", folder, "is no BERT, RoBERTa or XLM-RoBERTa")


def load_model(folder: Path, because: str) -> Any:
    """The model with its weights, in float32 on the CPU; an error says that the encoder needs it `because`."""
    return _load("AutoModel", folder, because, dtype="float32").eval()


def load_tokenizer(folder: Path) -> FastTokenizer | SlowTokenizer:
    """The tokenizer, a fast one where there is one."""
    wrapped = _load("AutoTokenizer", folder, "has a tokenizer that only transformers can read")
    if not wrapped.is_fast:
        return SlowTokenizer(wrapped)
    padding, longest = wrapped.pad_token_id or 0, wrapped.model_max_length
    return FastTokenizer(wrapped.backend_tokenizer, padding, wrapped.truncation_side, longest)


def _load(kind: str, folder: Path, because: str, **options: Any) -> Any:
    try:
        import torch  # noqa: F401 (transformers imports without it, and then has no models)
        import transformers
    except ImportError as error:
        raise without_torch(folder, because) from error
    with _quiet(), loading(folder):
        # Never code that comes with the files; transformers would ask on stdin otherwise.
        load = getattr(transformers, kind).from_pretrained
        return load(folder, local_files_only=True, trust_remote_code=False, **options)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' progress bars and load reports off the terminal, and restore its settings afterwards."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
