"""Where the segments of a text start and end: clauses, or words where there are no clauses to tell apart.

In scripts without spaces a segment is a few characters.
"""

from __future__ import annotations

import re
import string
from itertools import pairwise

# More segments than this tell a reader nothing; a long text's clauses are joined to as many.
MOST_SEGMENTS = 32
# A clause of more words (or pairs of characters, without spaces) than this is cut into even pieces.
LONGEST_CLAUSE = 12
# Marks that are no part of a word: ASCII's, Latin and general ones, full-width ones, Arabic ones, the danda.
_MARK = re.escape(string.punctuation) + (
    r"\u00a1\u00ab\u00bb\u00bf\u2010-\u2027\u2030-\u205e\u3000-\u3020\u3030\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40"
    r"\uff5b-\uff65\u060c\u061b\u061f\u06d4\u0964\u0965"
)
# Scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Kana, Han. Two characters at a time are a unit.
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = rf"[^\s{_MARK}{_UNSPACED}]+"
_UNIT = re.compile(rf"[{_UNSPACED}]{{1,2}}|{_WORD}(?:['\u2019.\-]{_WORD})*")
_APOSTROPHE = re.compile("['\u2019]")
# Where a clause ends: Latin marks before a space or the end, so that 3.14 stays whole; other marks and line breaks
# anywhere; dashes between spaces.
_ENDS = r".!?;:,)\]\u2026\u2014"
_OTHER_ENDS = r"\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f\uff09\u300d\u300f\u060c\u061b\u061f\u06d4\u0964\u0965"
_CLAUSE_END = re.compile(
    rf"(?<![{_ENDS}])[{_ENDS}]++(?=\s|$)|[\r\n]+|[{_OTHER_ENDS}\u2026]+|\s[\u2013\u2014\-]++(?=\s)"
)


def split(text: str) -> list[tuple[int, int]]:
    """Where the segments of a text start and end, in order; between them is white space, or what has no word in it.

    A text of one segment has none: there is nothing to tell it apart from.
    """
    edges = _between_marks(text)
    spans = _pieces(text, edges, LONGEST_CLAUSE if len(edges) > 1 else 1)
    return spans if len(spans) > 1 else []


def clauses(text: str) -> list[tuple[int, int]]:
    """Where the clauses of a text start and end, in order; one clause is one, however short, and a long one several.

    >>> [text[a:b] for text in ["Dear all, see you."] for a, b in clauses(text)]
    ['Dear all,', 'see you.']
    """
    return _pieces(text, _between_marks(text), LONGEST_CLAUSE)


def has_clauses(text: str) -> bool:
    """Whether a text has more than one clause, so that its segments are clauses rather than words."""
    return len(_between_marks(text)) > 1


def trim_marks(piece: str) -> str:
    """A piece of text without the marks and spaces at its ends, unless it is all marks.

    >>> trim_marks("earn 900 a day,")
    'earn 900 a day'
    """
    units = list(_UNIT.finditer(piece))
    return piece[units[0].start() : units[-1].end()] if units else piece


def words(text: str) -> list[str]:
    """The words of a text in lower case, in order; pairs of characters in scripts without spaces.

    >>> words("It isn't 3.14, L'EAU")
    ['it', 'isn', 't', '3.14', 'l', 'eau']
    """
    return [word for match in _UNIT.finditer(text) for word in _APOSTROPHE.split(match.group().casefold()) if word]


def _between_marks(text: str) -> list[tuple[int, int]]:
    edges = [0, *(match.end() for match in _CLAUSE_END.finditer(text)), len(text)]
    return [(a, b) for a, b in pairwise(edges) if _UNIT.search(text, a, b)]


def _pieces(text: str, spans: list[tuple[int, int]], longest: int) -> list[tuple[int, int]]:
    """Spans cut into pieces of at most `longest` words, which are joined again where they are too many."""
    cut = [piece for a, b in spans for piece in _cut(text, a, b, longest)]
    together = -(-len(cut) // MOST_SEGMENTS) or 1
    groups = [cut[i : i + together] for i in range(0, len(cut), together)]
    return [_trimmed(text, group[0][0], group[-1][1]) for group in groups]


def _cut(text: str, start: int, end: int, longest: int) -> list[tuple[int, int]]:
    """A clause in even pieces of at most `longest` words or pairs of characters."""
    units = [match.start() for match in _UNIT.finditer(text, start, end)]
    n = -(-len(units) // longest)
    first = [units[len(units) * i // n] for i in range(1, n)]
    edges = [start, *first, end]
    return list(pairwise(edges))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())
