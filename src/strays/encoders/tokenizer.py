"""Texts to batches of token ids: texts of like length together, so that little of the work is padding.

How a sum is rounded depends on how many terms it has, even where the last ones are zero. So for a CPU a text's padding
depends on the text alone (`padded_lengths`), and only texts of one padded length share a batch: a text's embedding is
then the same, bit for bit, whatever other texts there are, if what runs the model rounds a row alike in a batch of any
number of rows. ONNX Runtime does (benchmarks/encoder_batches.py); PyTorch does on some processors only.

The next texts are tokenized in a thread of their own while the model works on a batch: the tokenizer's own code runs
outside Python's lock, on every core. For a GPU even that is too slow, and processes of their own do it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from strays.encoders.tokenizer_files import FastTokenizer
from strays.encoders.tokenizer_workers import Tokenized, TokenizerWorkers, tokenize

if TYPE_CHECKING:
    from strays.encoders.transformers_models import SlowTokenizer

# Texts tokenized together.
PIECE = 4096
Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Batch:
    """Some of the texts as token ids: `rows[i]` is the text of line i, which has `lengths[i]` tokens."""

    rows: np.ndarray  # (texts,)
    packed: np.ndarray  # the ids of all texts one after another, int64
    lengths: np.ndarray  # (texts,)
    padding: int
    width: int  # tokens of every text with its padding
    n_cut: int = 0  # how many of the texts go on beyond their last token here

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
        return np.arange(self.width) < self.lengths[:, None]


@dataclass(eq=False)
class BatchTokenizer:
    """Cuts texts into batches of tokens: a tokenizer, which it sets up for its own use, and the most tokens of a text.

    Texts are put in order of their characters, which makes neighbours' lengths alike, and then, some pieces at a time,
    of their tokens, which is exact. With `n_workers` pieces are tokenized ahead in as many processes. Unless `mixed`,
    texts that share a batch have the same padded length, which depends on nothing but each text.
    """

    tokenizer: FastTokenizer | SlowTokenizer
    max_length: int
    n_pieces: int = 1
    n_workers: int = 0
    mixed: bool = False

    def batches(self, texts: Sequence[str], tokens_per_batch: int) -> Generator[Batch, None, None]:
        """All texts in batches of so many tokens with padding, the longest first: memory runs out at once or never."""
        by_characters = np.argsort(-np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)), kind="stable")
        at = 0
        with closing(self._tokenized(texts, by_characters)) as tokenized:
            while parts := list(islice(tokenized, self.n_pieces)):
                lengths, flat, is_cut = (np.concatenate(part) for part in zip(*parts, strict=True))
                yield from self._cut(by_characters[at : at + len(lengths)], lengths, flat, is_cut, tokens_per_batch)
                at += len(lengths)

    def _tokenized(self, texts: Sequence[str], order: np.ndarray) -> Generator[Tokenized, None, None]:
        """Texts in this order, PIECE at a time, tokenized while others are worked on."""
        starts = range(0, len(order), PIECE)
        pieces = ([texts[row] for row in order[start : start + PIECE].tolist()] for start in starts)
        if self._workers and len(starts) > 2 and not self._workers.busy:
            yield from self._workers.tokenize(pieces)
        else:
            yield from ahead(self._tokenize, pieces, 1, 1)

    def _tokenize(self, texts: list[str]) -> Tokenized:
        if isinstance(self.tokenizer, FastTokenizer):
            return tokenize(self._fast, texts)
        ids = self.tokenizer.ids(texts, self.max_length)
        lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
        is_cut = np.zeros(len(texts), dtype=bool)
        for i in np.flatnonzero(lengths >= self.max_length).tolist():
            is_cut[i] = len(self.tokenizer.ids([texts[i]])[0]) > self.max_length
        return lengths, np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=int(lengths.sum())), is_cut

    @cached_property
    def _workers(self) -> TokenizerWorkers | None:
        if not self.n_workers or self._fast is None:
            return None
        return TokenizerWorkers(self._fast.to_str(), self.n_workers)

    @cached_property
    def _fast(self) -> Any:
        """The tokenizer of the library `tokenizers` with its truncation set; None if it is none of that library."""
        if not isinstance(self.tokenizer, FastTokenizer):
            return None
        backend = self.tokenizer.backend
        backend.no_padding()
        backend.enable_truncation(self.max_length, direction=self.tokenizer.truncation_side)
        return backend

    def _cut(
        self, window: np.ndarray, lengths: np.ndarray, flat: np.ndarray, is_cut: np.ndarray, tokens_per_batch: int
    ) -> Iterator[Batch]:
        first = np.cumsum(lengths) - lengths
        widths = np.maximum(lengths, 1) if self.mixed else np.minimum(padded_lengths(lengths), self.max_length)
        by_width = np.argsort(-widths, kind="stable")
        changes = np.flatnonzero(np.diff(widths[by_width])) + 1
        for alike in [by_width] if self.mixed else np.split(by_width, changes):
            at = 0
            while at < len(alike):
                width = int(widths[alike[at]])
                rows = alike[at : at + max(1, tokens_per_batch // width)]
                n = lengths[rows]
                shift = np.repeat(first[rows] - (np.cumsum(n) - n), n)
                ids = flat[shift + np.arange(len(shift))]
                yield Batch(window[rows], ids, n, self.tokenizer.padding, width, int(is_cut[rows].sum()))
                at += len(rows)


def padded_lengths(lengths: np.ndarray) -> np.ndarray:
    """How many tokens texts of these lengths have with padding: few different numbers, and little padding.

    Up to 32 tokens it is the next multiple of 2, up to 64 the next of 4, up to 128 the next of 8, and so on.

    >>> padded_lengths(np.array([1, 2, 9, 32, 33, 61, 65, 200])).tolist()
    [2, 2, 10, 32, 36, 64, 72, 208]
    """
    lengths = np.maximum(lengths, 1)
    step = 2 ** np.maximum(np.frexp(lengths - 1)[1].astype(np.int64) - 4, 1)  # frexp: bits of a number
    return -(-lengths // step) * step


def ahead(make: Callable[[Item], Made], items: Iterable[Item], n_threads: int, n_ahead: int) -> Iterator[Made]:
    """What is made of each item, in order, by threads that are so many items ahead."""
    items = iter(items)
    first = list(islice(items, 2))
    if len(first) == 1:  # threads cost more than they gain
        yield make(first[0])
        return
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for item in chain(first, items):
                waiting.append(pool.submit(make, item))
                if len(waiting) > n_ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
