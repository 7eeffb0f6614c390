"""The form of texts, whatever they mean: as columns of numbers beside an embedding.

An embedding says what a text is about. That a text shouts, repeats itself, is cut off, or is full of numbers or of
letters that no other text has, it hardly says. So a reader learns from the normal texts how often each sequence of five
letters occurs, and gives of a text x

    rarity(x) = mean over the sequences g that end in x of -log((n_g + 1/2) / (n + 1)),   n_g of n texts have g

and how long it is, how many of its characters are digits, capitals, punctuation and symbols, how often it repeats a
character and its words, and how many words have a capital. Texts that are copies of one another count once. A text that
was counted is left out of its own counts, with its copies: n_g - 1 of n - 1 texts. It is known by a hash.

Case does not count in a sequence, digits are all the same one, and where a script has a character for a syllable or a
word, two make a sequence. Sequences are told apart by 18 bits of a hash. Sums are of whole numbers, so that no column
depends on the machine or on the texts beside.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from strays.detectors.array_spec import WHOLE, ArraySpec, check_arrays
from strays.errors import ModelError

# The first column is `rarity`. Of the others each is odd at either end.
COLUMNS = ("rarity", "length", "digits", "capitals", "punctuation", "symbols", "run", "repeated words", "title words")
# What is said of a text that is low or high in a column.
_IN_WORDS = {
    "rarity": ("common sequences of letters", "rare sequences of letters"),
    "length": ("short", "long"),
    "digits": ("few digits", "many digits"),
    "capitals": ("few capitals", "many capitals"),
    "punctuation": ("little punctuation", "much punctuation"),
    "symbols": ("few symbols", "many symbols"),
    "run": ("no character repeated", "a character repeated many times"),
    "repeated words": ("few words repeated", "many words repeated"),
    "title words": ("few words with a capital", "many words with a capital"),
}
# Columns that are named: at most so many, and each adds at least this share of what the first one adds.
MOST_NAMED, NAMED = 3, 0.4
# Texts that are counted at most.
MOST_COUNTED = 4096
# Characters of a text that are read, and characters that are read at once.
MOST_READ, READ_AT_ONCE = 2**16, 2**17
SEQUENCE, BITS = 5, 18
# Numbers without a pattern: odd, so that no bit is lost.
_MIX = (np.uint32(0x9E3779B1), np.uint32(0x85EBCA77), np.uint32(0xC2B2AE3D), np.uint32(0x27D4EB2F))
# A rarity is a whole number of these.
UNIT = 2.0**-20
# From here on most characters stand for a syllable or a word.
FIRST_SYLLABLE = 0x2E80
OTHER, UPPER, DIGIT, SPACE, PUNCTUATION, SYMBOL, LOWER = range(7)
_CLASS_OF = {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "N": DIGIT, "Z": SPACE, "P": PUNCTUATION, "S": SYMBOL}


@dataclass(frozen=True, eq=False)
class FormReader:
    """What was counted: in how many of `n_texts`, copies being one, a sequence of letters with such a hash occurs.

    >>> reader = FormReader.of(["a red road", "a red rose", "a red roof"])
    >>> usual, rare = reader.columns(["a red rod", "GZIP 1234"])
    >>> [COLUMNS[i] for i in np.flatnonzero(rare > usual)]
    ['rarity', 'digits', 'capitals', 'title words']
    """

    n_texts: int
    sequences: np.ndarray  # hashes, ascending
    counts: np.ndarray
    known: np.ndarray  # hashes of the texts that were counted, ascending

    @classmethod
    def of(cls, texts: Sequence[str], group: np.ndarray | None = None) -> FormReader:
        """From normal texts; copies of one another have the same number in `group`."""
        copies: dict[int, list[str]] = {}
        for text, number in zip(texts, range(len(texts)) if group is None else group.tolist(), strict=True):
            copies.setdefault(number, []).append(text)
        n_with = np.zeros(1 << BITS, dtype=np.int64)
        for block in _blocks([first for first, *others in copies.values() if not others]):
            n_with += np.bincount(block.different_sequences(), minlength=len(n_with))
        for several in copies.values():
            if len(several) > 1:
                n_with[np.unique(np.concatenate([block.different_sequences() for block in _blocks(several)]))] += 1
        found = np.flatnonzero(n_with)
        return cls(len(copies), found.astype(np.uint32), n_with[found].astype(np.uint32), np.unique(text_hashes(texts)))

    def columns(self, texts: Sequence[str]) -> np.ndarray:
        """(texts, COLUMNS), each row from its text alone."""
        blocks = [np.column_stack([self._rarity(block), block.shape()]) for block in _blocks(texts)]
        return np.concatenate(blocks) if blocks else np.empty((0, len(COLUMNS)))

    def _rarity(self, block: _Block) -> np.ndarray:
        sequences, (fresh, left_out) = block.sequences(), self._rarities
        rarity, hashes = block.sums(fresh[sequences]), text_hashes(block.texts)
        counted = self.known[np.searchsorted(self.known, hashes).clip(max=len(self.known) - 1)] == hashes
        if counted.any():
            rarity[counted] = block.sums(left_out[sequences])[counted]
        return rarity * UNIT / (block.length + 1)

    @cached_property
    def _rarities(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each hash the rarity for a text that was not counted, and for one that was, in units."""
        n_with = np.zeros(1 << BITS)
        n_with[self.sequences] = self.counts
        n = self.n_texts
        fresh, left_out = -np.log((n_with + 0.5) / (n + 1)), -np.log((np.maximum(n_with - 1, 0) + 0.5) / n)
        return np.rint(fresh / UNIT).astype(np.int32), np.rint(left_out / UNIT).astype(np.int32)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """As plain arrays, for a model's folder."""
        return {
            "n_texts": np.array(self.n_texts),
            "sequences": self.sequences,
            "counts": self.counts,
            "known": self.known,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> FormReader:
        """What to_arrays gave."""
        check_arrays(
            arrays,
            {
                "n_texts": ArraySpec((), WHOLE, low=1, high=MOST_COUNTED),
                "sequences": ArraySpec(("n",), ("uint32",), low=0, high=2**BITS - 1, ascending=True),
                "counts": ArraySpec(("n",), ("uint32",), low=1, high=MOST_COUNTED),
                "known": ArraySpec(("k",), ("uint64",), low=0, high=2.0**64, ascending=True),
            },
        )
        n_texts = int(arrays["n_texts"])
        if arrays["counts"].max() > n_texts:
            raise ModelError(f"the form of {n_texts} texts was counted, but their counts do not fit; fit it again")
        return cls(n_texts, arrays["sequences"], arrays["counts"], arrays["known"])


@dataclass(frozen=True)
class UnusualForm:
    """How much of a score the form of a text makes, and which columns make it: (column, whether it is low in it).

    >>> UnusualForm(1.2, ((COLUMNS.index("digits"), False), (COLUMNS.index("length"), True))).in_words()
    'many digits, short'
    """

    amount: float
    columns: tuple[tuple[int, bool], ...]

    @classmethod
    def of(cls, shares: np.ndarray, low: np.ndarray) -> UnusualForm:
        """From what every column adds to the score of a text, and whether the text is low in it."""
        least = max(NAMED * shares.max(initial=0), 1e-12)
        most = [j for j in np.argsort(-shares, kind="stable")[:MOST_NAMED].tolist() if shares[j] >= least]
        return cls(float(shares.sum()), tuple((j, bool(low[j])) for j in most))

    def in_words(self) -> str:
        """The columns in words, the one that adds most first."""
        return ", ".join(_IN_WORDS[COLUMNS[j]][0 if is_low else 1] for j, is_low in self.columns)


@dataclass(frozen=True, eq=False)
class _Block:
    """Texts as the code points of their first MOST_READ characters, with a gap of zeros before each and at the end.

    Character i of a text stands at `first` + i of `codes`.
    """

    texts: Sequence[str]
    codes: np.ndarray
    first: np.ndarray
    length: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Block:
        read = [text[:MOST_READ].replace("\0", " ") for text in texts]
        gap = "\0" * (SEQUENCE - 1)
        codes = np.frombuffer(gap.join(["", *read, ""]).encode("utf-32-le", "surrogatepass"), np.uint32)
        length = np.array([len(text) for text in read])
        return cls(texts, codes, np.cumsum(length + len(gap)) - length, length)

    def sequences(self) -> np.ndarray:
        """The hash of the sequence that ends at each character; the zeros make those at the beginning and the end."""
        folded = _looked_up(self.codes, _folded(), _fold)
        found = np.zeros(len(folded), dtype=np.uint32)
        two = folded[:-1] * _MIX[0] + folded[1:]
        four = two[:-2] * _MIX[1] + two[2:]
        found[4:] = four[:-1] * _MIX[2] + folded[4:]
        syllable = folded >= FIRST_SYLLABLE
        if syllable.any():
            np.copyto(found[1:], two, where=syllable[1:])
        found ^= found >> np.uint32(15)
        found *= _MIX[3]
        found >>= np.uint32(32 - BITS)
        return found

    def different_sequences(self) -> np.ndarray:
        """The hashes of the sequences of each text, each once, of all texts one after another."""
        n = self.length + 1
        of_text = np.repeat(np.arange(len(n)), n)
        place = np.arange(n.sum()) + (self.first - np.cumsum(n) + n)[of_text]
        return np.unique(of_text << BITS | self.sequences()[place]) & ((1 << BITS) - 1)

    def sums(self, of: np.ndarray, *, behind: int = 1) -> np.ndarray:
        """Of whole numbers, one for each code, the sum over each text and over so many codes behind it."""
        total = np.zeros(len(of) + 1, dtype=np.int64)
        np.cumsum(of, out=total[1:])
        return np.asarray(total[self.first + self.length + behind] - total[self.first])

    def shape(self) -> np.ndarray:
        """The columns but for the first, of each text."""
        classes = _looked_up(self.codes, _classes(), _class_of)
        upper, space = classes == UPPER, classes == SPACE
        begins = ~space
        begins[1:] &= space[:-1]
        n, n_words = np.maximum(self.length, 1), np.maximum(self._count(begins), 1)
        n_upper, n_marks = self._count(upper), [self._count(classes == kind) for kind in (DIGIT, PUNCTUATION, SYMBOL)]
        n_letters = n - sum(n_marks) - self._count(space)
        return np.column_stack(
            [
                np.log1p([len(text) for text in self.texts]),
                n_marks[0] / n,
                n_upper / np.maximum(n_letters, 1),
                n_marks[1] / n,
                n_marks[2] / n,
                np.log(self._longest_run()),
                [_repeated(text[:MOST_READ].casefold().split()) for text in self.texts],
                self._count(upper & begins) / n_words,
            ]
        )

    def _count(self, of: np.ndarray) -> np.ndarray:
        return self.sums(of, behind=0)

    def _longest_run(self) -> np.ndarray:
        """How often a character is repeated, at most; 1 for a text of none."""
        start = np.flatnonzero(np.r_[True, self.codes[1:] != self.codes[:-1]])
        edges = np.searchsorted(start, np.column_stack([self.first, self.first + self.length]).ravel())
        runs = np.diff(np.r_[start, len(self.codes), len(self.codes)])
        longest = np.maximum.reduceat(runs, edges)[::2]
        return np.where(self.length, longest, 1)


def _blocks(texts: Sequence[str]) -> Iterator[_Block]:
    """Consecutive texts, of about READ_AT_ONCE characters together."""
    block: list[str] = []
    n = 0
    for text in texts:
        block.append(text)
        n += min(len(text), MOST_READ)
        if n >= READ_AT_ONCE:
            yield _Block.of(block)
            block, n = [], 0
    if block:
        yield _Block.of(block)


def text_hashes(texts: Sequence[str]) -> np.ndarray:
    """64 bits of each text: its length and a checksum."""
    data = (text.encode("utf-8", "surrogatepass") for text in texts)
    return np.array([len(text) << 32 | zlib.crc32(text) for text in data], dtype=np.uint64)


def _repeated(words: list[str]) -> float:
    """The share of words that a text has had before."""
    return 1 - len(set(words)) / len(words) if words else 0.0


def _looked_up(codes: np.ndarray, table: np.ndarray, of: Callable[[int], int]) -> np.ndarray:
    """What a table of the first 2^16 code points says of each code, and `of` of those beyond."""
    found = table[codes.astype(np.uint16)]
    beyond = codes >= len(table)
    if beyond.any():
        which, place = np.unique(codes[beyond], return_inverse=True)
        found[beyond] = np.array([of(code) for code in which.tolist()], dtype=table.dtype)[place]
    return found


@cache
def _classes() -> np.ndarray:
    return np.array([_class_of(code) for code in range(2**16)], dtype=np.uint8)


@cache
def _folded() -> np.ndarray:
    return np.array([_fold(code) for code in range(2**16)], dtype=np.uint32)


def _class_of(code: int) -> int:
    category = unicodedata.category(chr(code))
    if code == 0 or chr(code).isspace():
        return SPACE
    return _CLASS_OF.get(category, _CLASS_OF.get(category[0], OTHER))


def _fold(code: int) -> int:
    """A character as it counts in a sequence: without case, digits and spaces as one."""
    kind, lower = _class_of(code), chr(code).lower()
    if code and kind in (DIGIT, SPACE):
        return ord("0" if kind == DIGIT else " ")
    return ord(lower) if len(lower) == 1 else code
