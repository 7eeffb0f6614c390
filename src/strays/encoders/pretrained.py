"""An encoder's parts from its folder, by transformers: from what is there alone, and without a word to the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from strays.encoders.failures import loading

# Never code that comes with the files; transformers would ask on stdin otherwise.
FILES_ALONE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


def load_model(folder: Path) -> Any:
    """The model with its weights, in float32 on the CPU."""
    import torch
    from transformers import AutoModel

    with _quiet(), loading(folder):
        return AutoModel.from_pretrained(folder, **FILES_ALONE, dtype=torch.float32).eval()


def load_config(folder: Path) -> Any:
    """What config.json says of the model."""
    from transformers import AutoConfig

    with _quiet(), loading(folder):
        return AutoConfig.from_pretrained(folder, **FILES_ALONE)


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer, a fast one where there is one."""
    from transformers import AutoTokenizer

    with _quiet(), loading(folder):
        return AutoTokenizer.from_pretrained(folder, **FILES_ALONE)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' progress bars and load reports off the user's terminal; its settings are put back."""
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
