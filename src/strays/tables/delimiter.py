"""What separates the values of a csv file: as asked, or the character that gives the first rows the same columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from strays.errors import DataError, Note, UsageError

DELIMITERS = {"csv": ",", "tsv": "\t"}
# Those that are tried, the usual one first.
TRIED = (",", ";", "\t", "|")
WORDS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}
# What spreadsheets understand as a first line.
SEP_LINE = re.compile(r"\s*\"?sep=(.)\"?\s*", re.IGNORECASE)
# Rows and characters that are looked at.
SAMPLE_ROWS, SAMPLE_CHARACTERS = 200, 2**18
# The share of rows that must fit the header for a delimiter to be told by its number of columns.
FITTING = 0.9


def in_words(delimiter: str) -> str:
    """A delimiter as messages show it."""
    return {"\t": "tab"}.get(delimiter, repr(delimiter))


def delimiter_note(name: str, found: str) -> Note:
    """What to tell where a file's delimiter was found to be another than its format's."""
    words = f"{name}: its values are separated by {in_words(found)}, as its first rows tell"
    return Note(f"{words}; {{delimiter}} names another delimiter.", param="delimiter")


def wrong_delimiter_note(name: str, asked: str, lines: Iterable[str]) -> Note | None:
    r"""What to tell where the delimiter asked for leaves every line whole, and another gives the rows the same columns.

    >>> print(wrong_delimiter_note("a.csv", "|", ["id;text\n", "1;one\n", "2;two\n"]))
    a.csv: no '|' is in its first line, so that every line is one value; delimiter ';' would give 2 columns.
    """
    sample = _sample(lines)
    better = find_delimiter(sample, asked)
    fit = _fit(sample, better)
    if better == asked or fit.share < FITTING:
        return None
    words = f"{name}: no {in_words(asked)} is in its first line, so that every line is one value"
    return Note(f"{words}; {{delimiter}} {in_words(better)} would give {fit.columns} columns.", param="delimiter")


def parse_delimiter(asked: str) -> str:
    r"""The character that is meant by ; or tab or \t.

    >>> [parse_delimiter(asked) for asked in (";", "tab", r"\t", "pipe")]
    [';', '\t', '\t', '|']
    """
    delimiter = WORDS.get(asked.casefold(), asked)
    if len(delimiter) != 1 or delimiter in "\"'\r\n\0\ufeff" or "\ud800" <= delimiter <= "\udfff":
        raise UsageError(
            f"{{delimiter}} is {asked!r:.60}; expected one character such as ; or |, or the word tab", param="delimiter"
        )
    return delimiter


def find_delimiter(lines: Iterable[str], usual: str) -> str:
    r"""The delimiter of a file that begins with these lines; the usual one where nothing speaks for another.

    >>> find_delimiter(["id;name, first;text\n", "1;Jo;one, two\n"], ",")
    ';'
    """
    sample = _sample(lines)
    if sample and (told := SEP_LINE.fullmatch(sample[0])):
        return told[1]
    tried = {delimiter: _fit(sample, delimiter) for delimiter in dict.fromkeys((usual, *TRIED))}
    best = max(tried.values(), key=_Fit.rank)
    return next(delimiter for delimiter, fit in tried.items() if fit.rank() == best.rank())


@dataclass(frozen=True)
class _Fit:
    """What a delimiter makes of a file: columns of the header, share of the rows that have as many, spaced names."""

    columns: int
    share: float
    spaced: int

    def rank(self) -> tuple[float, ...]:
        """Higher is better. A comma in a sentence is followed by a space; one between names is not."""
        if self.columns < 2 or not self.share:
            return (0,)
        fits = self.share >= FITTING
        return (1, fits, self.columns if fits else 0, self.share, -self.spaced)


def _fit(sample: list[str], delimiter: str) -> _Fit:
    rows: list[list[str]] = []
    with suppress(csv.Error):
        rows.extend(row for row in islice(csv.reader(sample, delimiter=delimiter), SAMPLE_ROWS) if row)
    if not rows:
        return _Fit(0, 0.0, 0)
    header, *others = rows
    if len(sample) > 1 and len(others) > 1 and not sample[-1].endswith("\n"):
        others.pop()  # it may have been cut off
    share = sum(len(row) == len(header) for row in others) / len(others) if others else 1.0
    return _Fit(len(header), share, sum(name != name.strip() for name in header))


def _sample(lines: Iterable[str]) -> list[str]:
    """The first lines, up to a size; the last may be cut off."""
    taken: list[str] = []
    left = SAMPLE_CHARACTERS
    with suppress(DataError):  # reading the file tells what is wrong with it
        for line in islice(lines, 5 * SAMPLE_ROWS):
            taken.append(line[:left])
            left -= len(line)
            if left <= 0:
                break
    return taken
