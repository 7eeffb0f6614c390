"""A BERT-like transformer as an encoder: tokenize, run, pool.

The model is loaded when the first text is encoded. Each distinct text is encoded once; texts are sorted by length and
cut into batches of about `tokens_per_batch` tokens, padding included, so that little of the work is padding.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from strays.encoders import scripts, sources
from strays.encoders.base import check_texts
from strays.encoders.settings import POOLINGS, EncoderSettings, own_settings, position_limit
from strays.errors import EncoderError, StraysWarning, UsageError, first_line

if TYPE_CHECKING:
    import torch

# Texts tokenized together. Sorting by characters first makes their lengths alike; sorting by tokens then is exact.
WINDOW = 4096


class TransformerEncoder:
    """Texts to float32 embeddings by a transformer from a folder, the hub, or the bundled package.

    Parameters
    ----------
    settings
        Which model, and how its tokens become one vector.
    device
        'auto' takes a GPU where there is one; or 'cpu', 'cuda', 'cuda:1', 'mps'.
    tokens_per_batch
        Tokens in one batch, padding included.
    progress
        Called with (distinct texts encoded so far, distinct texts in all) after every batch.
    """

    def __init__(
        self,
        settings: EncoderSettings,
        device: str = "auto",
        tokens_per_batch: int = 4096,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.settings = settings
        self.device = device
        self.tokens_per_batch = tokens_per_batch
        self.progress = progress
        self._warned_scripts: set[str] = set()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings.name!r})"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings of shape (len(texts), dimension)."""
        # A lone surrogate is no character and cannot be tokenized; the replacement keeps the rest of its text.
        texts = [text.encode("utf-8", "replace").decode("utf-8") for text in check_texts(texts)]
        position = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        distinct = list(position)
        self._warn_of_script(distinct)
        out = np.empty((len(distinct), self.dimension), dtype=np.float32)
        done = 0
        for batch, ids in self._batches(distinct):
            out[batch] = self._embed(ids)
            done += len(batch)
            if self.progress:
                self.progress(done, len(distinct))
        return out[[position[text] for text in texts]]

    @property
    def dimension(self) -> int:
        """Length of an embedding."""
        return int(self._model.config.hidden_size)

    @cached_property
    def folder(self) -> Path:
        """Where the model's files are."""
        return sources.find_folder(self.settings.name, self.settings.revision)

    @cached_property
    def resolved(self) -> EncoderSettings:
        """The settings with nothing left open."""
        own = own_settings(self.folder)
        given = {key: value for key, value in self.settings.to_dict().items() if value is not None}
        settings = replace(own, **given)
        limit = position_limit(self._model.config, self._tokenizer)
        length = min(settings.max_length or limit, limit)
        if settings.pooling not in POOLINGS:
            raise EncoderError(
                f"{self.settings.name} pools its tokens by {settings.pooling}; expected {' or '.join(POOLINGS)}. Say "
                "which to use with pooling=, or pass an encoder object of your own"
            )
        return replace(settings, max_length=length)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the weights, the vocabulary and the settings: what an embedding depends on."""
        resolved = self.resolved.to_dict()
        files = [*sources.weight_files(self.folder), *sources.vocabulary_files(self.folder)]
        parts = [sources.sha256(path) for path in files]
        parts += [f"{key}={resolved[key]}" for key in ("pooling", "normalize", "max_length")]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @cached_property
    def _torch_device(self) -> torch.device:
        import torch

        if self.device != "auto":
            try:
                return torch.zeros(1, device=self.device).device
            except (RuntimeError, AssertionError) as error:
                raise UsageError(
                    f"device {self.device!r} cannot be used here ({first_line(error)}); expected auto, cpu, cuda or mps"
                ) from error
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")

    @cached_property
    def _model(self) -> Any:
        import torch
        from transformers import AutoModel

        with _quiet(), self._loading():
            model = AutoModel.from_pretrained(self.folder, local_files_only=True, dtype=torch.float32)
        return model.to(self._torch_device).eval()

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        with _quiet(), self._loading():
            return AutoTokenizer.from_pretrained(self.folder, local_files_only=True)

    @contextmanager
    def _loading(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # whatever a damaged or foreign file makes the loader raise
            raise EncoderError(
                f"could not load the encoder in {self.folder} ({first_line(error)}). "
                "Expected a complete BERT-like model; get its files again"
            ) from error

    def _batches(self, texts: list[str]) -> Iterator[tuple[np.ndarray, list[list[int]]]]:
        """(positions, token ids) of texts of similar length, the longest first: memory runs out at once or never."""
        by_characters = np.argsort([-len(text) for text in texts], kind="stable")
        for start in range(0, len(texts), WINDOW):
            window = by_characters[start : start + WINDOW]
            ids = self._tokenizer(
                [texts[i] for i in window],
                truncation=True,
                max_length=self.resolved.max_length,
                return_attention_mask=False,
                return_token_type_ids=False,
            )["input_ids"]
            by_tokens = np.argsort([-len(tokens) for tokens in ids], kind="stable")
            at = 0
            while at < len(by_tokens):
                longest = max(1, len(ids[by_tokens[at]]))
                batch = by_tokens[at : at + max(1, self.tokens_per_batch // longest)]
                yield window[batch], [ids[i] for i in batch]
                at += len(batch)

    def _embed(self, ids: list[list[int]]) -> np.ndarray:
        import torch

        longest = max(1, max(map(len, ids)))
        pad = self._tokenizer.pad_token_id or 0
        tokens = np.full((len(ids), longest), pad, dtype=np.int64)
        mask = np.zeros((len(ids), longest), dtype=np.int64)
        for row, sequence in enumerate(ids):
            tokens[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        device = self._torch_device
        with torch.inference_mode():
            attention = torch.from_numpy(mask).to(device)
            hidden = self._model(
                input_ids=torch.from_numpy(tokens).to(device), attention_mask=attention
            ).last_hidden_state  # (texts, tokens, dimension)
            if self.resolved.pooling == "cls":
                pooled = hidden[:, 0]
            else:
                weight = attention.unsqueeze(-1).to(hidden.dtype)
                pooled = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1)
            if self.resolved.normalize:
                pooled = torch.nn.functional.normalize(pooled, dim=1)
            return pooled.float().cpu().numpy()

    def _warn_of_script(self, texts: list[str]) -> None:
        counts = scripts.script_counts(texts)
        if 2 * counts["LATIN"] >= counts.total():
            return  # Latin pieces are in every vocabulary in use
        script = scripts.foreign_script(counts, self._vocabulary_scripts)
        if script is None or script in self._warned_scripts:
            return
        self._warned_scripts.add(script)
        warnings.warn(
            f"most of these texts are in {scripts.readable(script)} script, which the encoder {self.settings.name!r} "
            f"was not made for; expect poor scores. A better choice: encoder={scripts.better_choice(script)!r}, or the "
            "folder of any model made for the language",
            StraysWarning,
            stacklevel=3,
        )

    @cached_property
    def _vocabulary_scripts(self) -> set[str]:
        tokenizer = self._tokenizer
        pieces = tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
        return scripts.known_scripts(pieces) | {"LATIN"}


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
