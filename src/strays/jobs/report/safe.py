"""Texts made dull: nothing in them hides, turns the reading direction round, stacks up, or goes on for ever."""

from __future__ import annotations

import unicodedata

from strays.jobs.columns import shortened

# Letters of living scripts carry fewer marks than this; more are there to be seen elsewhere on the page.
MOST_MARKS = 5
# Cc: control characters. Cf: direction overrides, zero-width and other invisible ones. Cs: halves of characters, which
# UTF-8 cannot hold. Zl, Zp: line ends of a kind that scripts trip over.
_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
# Joiners shape the letters and emoji beside them; they count as marks.
_JOINERS = "\u200c\u200d"


def dull(text: str) -> str:
    """A text in which invisible characters are shown, and letters carry a few marks at most."""
    if text.isascii() and text.isprintable():
        return text
    seen: list[str] = []
    marks = 0
    for c in text:
        kind = unicodedata.category(c)
        if kind in ("Mn", "Me") or c in _JOINERS:
            marks += 1
            if marks <= MOST_MARKS:
                seen.append(c)
            continue
        seen.append(_more(marks))
        marks = 0
        seen.append(_named(c) if kind in _INVISIBLE and c not in "\n\t" else c)
    return "".join([*seen, _more(marks)])


def cut(text: str, most: int) -> str:
    """A text of at most so many characters, with an ellipsis where some are missing."""
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"


def one_line(text: str, most: int) -> str:
    """A dull text on one line, cut; of a long text only the beginning is looked at."""
    return cut(dull(" ".join(cut(text, 4 * most).split())), most)


def short_id(id_: str, most: int = 80) -> str:
    """What a file calls a row, dull and on one line, without its middle where it is long."""
    return shortened(dull(" ".join(id_[: 100 * most].split())), most)


def _more(marks: int) -> str:
    return f"\u2039{marks - MOST_MARKS:,} more marks\u203a" if marks > MOST_MARKS else ""


def _named(c: str) -> str:
    # Unicode has its own pictures of control characters.
    return chr(0x2400 + ord(c)) if ord(c) < 0x20 else f"\u2039U+{ord(c):04X}\u203a"
