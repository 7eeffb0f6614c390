"""`fast`: a text is the mean of its word pieces' rows in a table distilled from a transformer. No torch, no network.

Tokenizing takes most of the time, so each word is tokenized once and its pieces are remembered. This needs a tokenizer
that cuts at every space whatever the neighbours are, as BERT's do; with any other, texts are tokenized whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from strays.encoders import distill, identity, sources
from strays.encoders.base import LoadedEncoder, Progress
from strays.encoders.cache import models_folder
from strays.encoders.inputs import check_texts, whole_characters
from strays.encoders.languages import Vocabulary
from strays.encoders.settings import EncoderSettings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_LENGTH = 512
TEXTS_AT_ONCE = 4096
# Words and their pieces remembered; past that all are forgotten, so that memory stays bounded on any file.
MOST_WORDS, MOST_PIECES = 1 << 18, 1 << 21
# Encoders are copied and sent to other processes, which a lock of their own would not be.
_LOCK = Lock()


class StaticEncoder(LoadedEncoder):
    """Texts to float32 embeddings by a table of word pieces, which is distilled at the first use and stored.

    The name is 'fast' (distilled from the default encoder) or 'fast:NAME' (from any other). Embeddings are scaled to
    length 1 and texts cut at 512 pieces unless the settings say otherwise; pooling and revision are the transformer's.

    >>> encoder = StaticEncoder(EncoderSettings("fast"))
    >>> encoder.runs_on
    'a table of word pieces'
    >>> encoder.encode(["The invoice is attached."]).shape  # doctest: +SKIP
    (1, 256)
    """

    runs_on = "a table of word pieces"

    def __init__(self, settings: EncoderSettings, fetch: sources.Fetch = sources.Fetch.ASKED) -> None:
        self.settings = settings
        self._fetch = fetch
        self._normalize = settings.normalize is not False
        self._max_length = settings.max_length or MAX_LENGTH
        self._kept: distill.Distilled | None = None
        self._warned: set[str] = set()

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> np.ndarray:
        """Embeddings of shape (len(texts), dimension); `progress` counts pieces first while the table is distilled."""
        texts = check_texts(texts)
        self._distil(progress)
        self._warn_of_language(texts)
        n_cut = 0
        out = np.empty((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            part = texts[start : start + TEXTS_AT_ONCE]
            ids, ends, is_cut = self._pieces.of(part)
            out[start : start + len(part)] = self._embed(ids, ends)
            n_cut += int(is_cut.sum())
            if progress:
                progress(start + len(part), len(texts))
        self._report_cut(len(texts), n_cut, self._max_length)
        return out

    @property
    def dimension(self) -> int:
        """Length of an embedding."""
        return int(self._distil().table.shape[1])

    @cached_property
    def folder(self) -> Path:
        """Where the transformer's files are."""
        return sources.find_folder(sources.teacher_name(self.settings.name), self.settings.revision, self._fetch)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the transformer's files, the recipe and the settings."""
        return self._with_settings(distill.fingerprint(self.folder, self.settings.pooling))

    @cached_property
    def fingerprint_0_1(self) -> str:
        """What version 0.1 called so: of the transformer's weights and vocabulary alone, besides the settings."""
        return self._with_settings(distill.fingerprint_0_1(self.folder, self.settings.pooling))

    def _with_settings(self, table: str) -> str:
        parts = f"{table}\nnormalize={self._normalize}\nmax_length={self._max_length}"
        return hashlib.sha256(parts.encode()).hexdigest()

    @property
    def files(self) -> dict[str, str]:
        """The digest of each of the transformer's files that decide an embedding, by its name."""
        return identity.digests(self.folder)

    @property
    def made_files(self) -> dict[str, str]:
        """The digest of the table."""
        return {distill.TABLE: self._distil().digest}

    def _distil(self, progress: Progress | None = None) -> distill.Distilled:
        if self._kept is None:
            self._kept = distill.load_or_distil(self.folder, self.settings.pooling, models_folder(), progress)
        return self._kept

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(self._distil().tokenizer)
        return Vocabulary(tokenizer.decode_batch([[i] for i in tokenizer.get_vocab().values()]))

    @cached_property
    def _pieces(self) -> Pieces:
        return Pieces(self._distil().tokenizer, self._max_length)

    def _embed(self, ids: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The mean row of each text's pieces."""
        from scipy.sparse import csr_matrix

        distilled, starts = self._distil(), np.r_[0, ends]
        counts = np.diff(starts)
        ones = np.ones(len(ids), dtype=np.float32)
        bags = csr_matrix((ones, ids, starts), shape=(len(ends), len(distilled.table)))
        out = bags @ distilled.table  # (texts, dimension)
        out /= np.maximum(counts, 1)[:, None]
        out[counts == 0] = distilled.blank
        if self._normalize:
            out /= np.maximum(np.sqrt(np.einsum("ij,ij->i", out, out)), 1e-12)[:, None]
        return np.asarray(out, dtype=np.float32)


class Pieces:
    """Texts to the ids of their word pieces, at most `max_length` each."""

    def __init__(self, tokenizer: str, max_length: int) -> None:
        from tokenizers import Tokenizer

        self._tokenizer: Tokenizer = Tokenizer.from_str(tokenizer)
        self._tokenizer.enable_truncation(max_length + 1)  # one more shows that a text is too long
        self._max_length = max_length
        self._by_words = cuts_at_spaces(tokenizer)
        self._forget()

    def of(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The ids of all texts in a row, where each text ends, and which texts were cut."""
        if not self._by_words:
            return _cut(*self._tokenize(texts), self._max_length)
        words = [text.split(" ") for text in texts]
        with _LOCK:
            numbers = np.fromiter(map(self._number.__getitem__, chain.from_iterable(words)), dtype=np.int64)
            try:
                self._learn()
            except BaseException:  # also an interrupt: words that are numbered but not learned would shift all others
                self._forget()
                raise
            lengths = self._length[numbers]
            ends_of_words = np.cumsum(lengths)
            first = self._start[numbers] - (ends_of_words - lengths)
            ids = self._ids[np.repeat(first, lengths) + np.arange(lengths.sum())]
            if len(self._number) > MOST_WORDS or len(self._ids) > MOST_PIECES:
                self._forget()
        last_words = np.cumsum([len(of_text) for of_text in words]) - 1
        ends = ends_of_words[last_words]
        return _cut(ids, ends, self._max_length)

    def _forget(self) -> None:
        self._number = _Numbered()
        self._ids = self._start = self._length = np.empty(0, dtype=np.int64)

    def _learn(self) -> None:
        """Tokenize the words that were numbered since the last time."""
        new, self._number.new = self._number.new, []
        if not new:
            return
        ids, ends = self._tokenize(new)
        starts = np.r_[0, ends]
        self._start = np.r_[self._start, starts[:-1] + len(self._ids)]
        self._length = np.r_[self._length, np.diff(starts)]
        self._ids = np.r_[self._ids, ids]

    def _tokenize(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        encoded = self._tokenizer.encode_batch_fast(whole_characters(texts), add_special_tokens=False)
        ids = [found.ids for found in encoded]
        ends = np.cumsum([len(of_text) for of_text in ids], dtype=np.int64)
        return np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=int(ends[-1])), ends


class _Numbered(dict[str, int]):
    """Words to numbers in the order they came; a new word gets the next one and is noted in `new`."""

    def __init__(self) -> None:
        super().__init__()
        self.new: list[str] = []

    def __missing__(self, word: str) -> int:
        self.new.append(word)
        self[word] = number = len(self)
        return number


def cuts_at_spaces(tokenizer: str) -> bool:
    """Whether a tokenizer, given as JSON, gives a text's words, cut at spaces, the pieces they have alone."""
    parts = json.loads(tokenizer)
    kinds = [(parts.get(part) or {}).get("type") for part in ("normalizer", "pre_tokenizer")]
    whole = all(" " not in added["content"] for added in parts.get("added_tokens", []))
    return kinds == ["BertNormalizer", "BertPreTokenizer"] and whole


def _cut(ids: np.ndarray, ends: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first `most` ids of each text, where each text ends then, and which texts had more."""
    starts = np.r_[0, ends[:-1]]
    lengths = ends - starts
    is_cut = lengths > most
    if not is_cut.any():
        return ids, ends, is_cut
    place = np.arange(len(ids)) - np.repeat(starts, lengths)
    return ids[place < most], np.cumsum(np.minimum(lengths, most)), is_cut
