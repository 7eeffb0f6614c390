"""Cells that a spreadsheet would run as formulas, and how to disarm them.

A cell runs where its first character that can be seen is one of = + - @, also in their wide and small forms. Which
cells there are depends on the program: one that takes another delimiter than the file's cuts inside values, in spite
of their quotes, and at line ends too. So a sign that follows a delimiter or a line end inside a value counts as well.
Spaces are no delimiter here: a file that is cut at them is of no use to anybody.
"""

from __future__ import annotations

import re
from collections.abc import Callable

SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212\u207a\u207b\u207c\u208a\u208b\u208c"
# Blanks, control characters, quotes, and what else is shown as nothing: some programs pass over them.
UNSEEN = (
    '\\s\\x00-\\x20"\\x7f-\\xa0\\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e'
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
FORMULA = re.compile(f"[{UNSEEN}]*[{SIGNS}]|[\t\r\n]")
# What programs cut lines at.
DELIMITERS = ",;\t|"


def runs(text: str) -> bool:
    """Whether a spreadsheet may run a cell that holds this text."""
    return FORMULA.match(text) is not None


def disarm_for(delimiter: str) -> Callable[[str], str]:
    """A function that puts an apostrophe before whatever would run in a file with this delimiter.

    >>> disarm = disarm_for(",")
    >>> [disarm(text) for text in ("=1+2", "x;=1+2", "a, -5", "plain")]
    ["'=1+2", "x;'=1+2", 'a, -5', 'plain']
    """
    # A program that cuts at the file's own delimiter heeds the quotes.
    others = "".join(re.escape(other) for other in DELIMITERS if other != delimiter) + "\r\n"
    # Only behind the last of several cuts: or a text of a million line ends would be gone through a million times.
    # Where the file's delimiter itself is passed over, as a tab is, the sign may be in the next cell.
    sign = f"(?:[{SIGNS}]|\\Z)" if re.match(f"[{UNSEEN}]", delimiter) else f"[{SIGNS}]"
    inside = re.compile(f"(?<=[{others}])(?=(?:(?![{others}])[{UNSEEN}])*{sign})")

    def disarm(text: str) -> str:
        text = inside.sub("'", text)
        return f"'{text}" if runs(text) else text

    return disarm
