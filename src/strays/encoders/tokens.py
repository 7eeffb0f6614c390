"""Texts to batches of token ids: texts of like length together, so that little of the work is padding.

A batch holds about `tokens_per_batch` tokens, padding included. The next texts are tokenized in a thread of their own
while the model works on a batch: the tokenizer's own code runs outside Python's lock, on every core.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Batch:
    """Some of the texts as token ids: `rows[i]` is the text of line i, which has `lengths[i]` tokens."""

    rows: np.ndarray  # (texts,)
    packed: np.ndarray  # the ids of all texts one after another, int64
    lengths: np.ndarray  # (texts,)
    padding: int

    @property
    def mask(self) -> np.ndarray:
        """Which tokens are a text's own, as a matrix of 1 and 0, (texts, tokens)."""
        return self._own.astype(np.int64)

    @property
    def ids(self) -> np.ndarray:
        """The ids as a matrix, padded, (texts, tokens)."""
        own = self._own
        ids = np.full(own.shape, self.padding, dtype=np.int64)
        ids[own] = self.packed
        return ids

    @property
    def _own(self) -> np.ndarray:
        return np.arange(max(1, self.lengths.max())) < self.lengths[:, None]


class Tokens:
    """What cuts texts into tokens: a tokenizer of transformers, and the most tokens of a text.

    Texts are tokenized `window` at a time. Sorting by characters first makes their lengths alike; sorting a window by
    tokens then is exact.
    """

    def __init__(self, tokenizer: Any, max_length: int, window: int = 4096) -> None:
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.window = window
        self.padding = tokenizer.pad_token_id or 0

    def batches(self, texts: Sequence[str], tokens_per_batch: int) -> Iterator[Batch]:
        """All texts in batches, the longest first: memory runs out at once or never."""
        by_characters = np.argsort(-np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)), kind="stable")
        windows = [by_characters[i : i + self.window] for i in range(0, len(texts), self.window)]
        with ThreadPoolExecutor(1) as ahead:
            tokenized = [ahead.submit(self._tokenize, texts, window) for window in windows[:1]]
            for i, window in enumerate(windows):
                lengths, flat = tokenized.pop().result()
                if i + 1 < len(windows):
                    tokenized.append(ahead.submit(self._tokenize, texts, windows[i + 1]))
                yield from self._cut(window, lengths, flat, tokens_per_batch)

    def _tokenize(self, texts: Sequence[str], window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How many tokens each text has, and the ids of all of them in one row."""
        chosen = [texts[i] for i in window.tolist()]
        if self._fast is not None:
            ids = [found.ids for found in self._fast.encode_batch_fast(chosen)]
        else:
            ids = self.tokenizer(chosen, truncation=True, max_length=self.max_length)["input_ids"]
        lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
        return lengths, np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=int(lengths.sum()))

    @cached_property
    def _fast(self) -> Any:
        """The tokenizer without what transformers wraps around it, which takes longer than cutting a short text."""
        if not getattr(self.tokenizer, "is_fast", False):
            return None
        bare = type(self.tokenizer.backend_tokenizer).from_str(self.tokenizer.backend_tokenizer.to_str())
        bare.no_padding()
        bare.enable_truncation(self.max_length)
        return bare

    def _cut(self, window: np.ndarray, lengths: np.ndarray, flat: np.ndarray, tokens_per_batch: int) -> Iterator[Batch]:
        first = np.cumsum(lengths) - lengths
        by_tokens = np.argsort(-lengths, kind="stable")
        at = 0
        while at < len(by_tokens):
            longest = max(1, int(lengths[by_tokens[at]]))
            rows = by_tokens[at : at + max(1, tokens_per_batch // longest)]
            n = lengths[rows]
            shift = np.repeat(first[rows] - (np.cumsum(n) - n), n)
            yield Batch(window[rows], flat[shift + np.arange(len(shift))], n, self.padding)
            at += len(rows)
