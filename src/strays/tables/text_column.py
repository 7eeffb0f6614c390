"""Which column holds the texts, and why: the one asked for, one with a telling name, or the one of the longest strings.

A wrong guess gives a ranking of something nobody asked about, so whatever is not clear is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from strays.errors import Note
from strays.tables.values import strings


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Names that tell of texts, alone or as a word of a longer name (review_text, MessageBody).
TELLING = _set(
    "text texts message messages msg body content contents comment comments review reviews description abstract "
    "summary title headline subject tweet post feedback question answer sentence article document note notes "
    "complaint remark remarks caption transcript utterance query prompt response"
)
# Of those, what stands above a text: a far longer column beside it is the text.
HEADINGS = _set("title headline subject caption summary question")
# Names that tell of something else, whatever they hold: review_id is no review.
NOT_TEXTS = _set(
    "id ids key uuid guid url uri link date time timestamp at by from to type kind code lang language label class "
    "category status count length len hash score rating author user"
)
# Rows that are looked at.
SAMPLE = 500
# By how much the strings of one column must be longer than those of any other.
FAR_LONGER = 2.0

WORDS = re.compile(r"[^\W\d_]+")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
DATE = re.compile(r"\s*\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ,]+\d{1,2}:\d{2}.{0,12})?\s*|\s*\d{1,2}:\d{2}(:\d{2})?\s*")
URL = re.compile(r"\s*([a-z][a-z0-9+.-]*://|www\.)\S+\s*|\s*\S+@\S+\.\S+\s*", re.IGNORECASE)
# Scripts whose words have no spaces between them: Thai to Khmer, and Japanese and Chinese.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")


@dataclass(frozen=True)
class TextColumn:
    """A column of texts; `reason` says how it was chosen, and is None where there was nothing to choose.

    >>> choose_column({"ID": ["a1", "b2"], "Message": ["My chain slips", "Is it ready?"]})
    TextColumn(name='Message', reason='by its name, of 2 columns')
    """

    name: str
    reason: str | None = None

    def note(self) -> Note | None:
        """What to tell a user who did not name the column."""
        if self.reason is None:
            return None
        words = f"Texts are in column {self.name!r:.60} ({self.reason}; {{text_column}} names another)."
        return Note(words, param="text_column")


def choose_column(columns: dict[str, list[str | None]], of: int | None = None) -> TextColumn | None:
    """The column of texts among columns of strings, of which some values are given; None where it is not clear.

    `of` says how many columns there are in all.
    """
    all_columns = f"of {of or len(columns)} columns"
    if len(columns) == 1:
        return TextColumn(next(iter(columns)), f"the only one with texts, {all_columns}")
    lengths = {name: _mean_length(values) for name, values in columns.items() if _may_be_texts(values)}
    telling = {name: length for name, length in lengths.items() if _is_telling(name, TELLING)}
    chosen = _far_longest(telling)
    others = [lengths[name] for name in lengths if name not in telling]
    if chosen and all(length < FAR_LONGER * lengths[chosen] for length in others):
        return TextColumn(chosen, f"by its name, {all_columns}")
    prose = {name: length for name, length in lengths.items() if _is_prose(columns[name])}
    chosen = _far_longest(prose)
    if chosen and all(_is_telling(name, HEADINGS) for name in telling if name != chosen):
        return TextColumn(chosen, f"the longest strings {all_columns}")
    return None


def likeliest(columns: dict[str, list[str | None]]) -> str | None:
    """The column to give as an example where it is not clear which one holds the texts."""
    return max(columns, key=lambda name: (_is_telling(name, TELLING), _mean_length(columns[name])), default=None)


def _far_longest(lengths: dict[str, float]) -> str | None:
    """The name with by far the largest length, if there is one."""
    if not lengths:
        return None
    first, *rest = sorted(lengths, key=lambda name: -lengths[name])
    return first if not rest or lengths[first] >= FAR_LONGER * lengths[rest[0]] else None


def _is_telling(name: str, of: frozenset[str]) -> bool:
    words = {word.casefold() for word in WORDS.findall(CAMEL.sub(" ", name))}
    return bool(words & of) and not words & NOT_TEXTS


def _there(values: list[str | None]) -> list[str]:
    return [value for value in values if value and not value.isspace()]


def _mean_length(values: list[str | None]) -> float:
    there = _there(values)
    return sum(map(len, there)) / len(there) if there else 0.0


def _may_be_texts(values: list[str | None]) -> bool:
    """Whether strings are neither numbers, dates nor addresses; a single word may be a text."""
    there = _there(values)
    return bool(there) and sum(bool(DATE.fullmatch(v[:200]) or URL.fullmatch(v[:2000])) for v in there) < len(there) / 2


def _is_prose(values: list[str | None]) -> bool:
    """Whether most strings have several words, and not the same few again and again as categories do."""
    there = _there(values)
    several = sum(len(value.split(None, 2)) > 1 or bool(UNSPACED.search(value[:200])) for value in there)
    return several >= len(there) / 2 and len(set(there)) >= min(len(there), 20) / 2


def _is_numeric(values: list[str | None]) -> bool:
    """Whether all that strings hold are numbers."""
    try:
        for value in values:
            float((value or "0").replace(",", "."))
    except ValueError:
        return False
    return True


def strings_of(batch: pa.RecordBatch, names: list[str]) -> dict[str, list[str | None]]:
    """Some values of each of these columns of strings, but for those that hold numbers alone."""
    few = batch.slice(0, SAMPLE)
    values = {name: strings(few.column(name)) for name in names}
    return {name: found for name, found in values.items() if not _is_numeric(found)}
