"""A transformer's folder: its config, tokenizer and weights, and how they are used.

The files are read by transformers: only what is there, no code that comes with it, nothing on the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from strays.encoders import identity, sources
from strays.encoders.library_errors import loading
from strays.encoders.settings import POOLINGS, EncoderSettings, own_settings, position_limit
from strays.errors import EncoderError


class Pretrained:
    """The files of a transformer, found and read when they are needed."""

    def __init__(self, settings: EncoderSettings, fetch: sources.Fetch = sources.Fetch.ASKED) -> None:
        self.settings = settings
        self.fetch = fetch

    @cached_property
    def folder(self) -> Path:
        """Where the files are."""
        return sources.find_folder(self.settings.name, self.settings.revision, self.fetch)

    @cached_property
    def config(self) -> Any:
        """What config.json says of the model."""
        return _load("AutoConfig", self.folder)

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer, as transformers wraps it."""
        return load_tokenizer(self.folder)

    def model(self) -> Any:
        """The model with its weights; read anew with every call."""
        return load_model(self.folder)

    @property
    def n_bytes(self) -> int:
        """The size of the weights."""
        return sum(path.stat().st_size for path in sources.weight_files(self.folder))

    @cached_property
    def shape(self) -> EncoderSettings:
        """The settings with everything but the precision decided: by the user, else by the model's own files."""
        given = {key: value for key, value in self.settings.to_dict().items() if value is not None}
        settings = replace(own_settings(self.folder), **given)
        with loading(self.folder):
            limit = position_limit(self.config, self.tokenizer)
        if settings.pooling not in POOLINGS:
            raise EncoderError(
                f"{self.settings.name} pools its tokens by {settings.pooling}; expected {' or '.join(POOLINGS)}. Set "
                "{pooling} to one of them, or pass an encoder object of your own",
                param="pooling",
            )
        return replace(settings, max_length=min(settings.max_length or limit, limit))

    @cached_property
    def files(self) -> dict[str, str]:
        """The digest of each file that decides an embedding."""
        return identity.digests(self.folder)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the files and the shape: what a full-precision embedding depends on."""
        return identity.fingerprint(self.files, identity.shape_lines(self.shape))

    @cached_property
    def fingerprint_0_1(self) -> str:
        """The same as version 0.1 had it."""
        return identity.fingerprint_0_1(self.folder, identity.shape_lines(self.shape))


def load_model(folder: Path) -> Any:
    """The model with its weights, in float32 on the CPU."""
    return _load("AutoModel", folder, dtype="float32").eval()


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer, a fast one where there is one."""
    return _load("AutoTokenizer", folder)


def _load(kind: str, folder: Path, **options: Any) -> Any:
    import transformers

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
