"""Which script (writing system) texts are in, and which scripts an encoder's vocabulary was made for."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable

# A vocabulary knows a script that has this many pieces in it. BERT's English vocabularies carry at most a few hundred
# stray letters of any other script; vocabularies made for one have thousands.
ENOUGH_PIECES = 1000


def script_of(character: str) -> str | None:
    """LATIN, CYRILLIC, CJK, ARABIC ... for a letter; None for digits, marks and signs."""
    if not character.isalpha():
        return None
    if character < "\u0250":
        return "LATIN"
    words = unicodedata.name(character, "UNKNOWN").replace("-", " ").split()
    return words[1] if words[0] in ("FULLWIDTH", "HALFWIDTH") else words[0]


def foreign_script(texts: list[str], known: Callable[[], set[str]]) -> str | None:
    """The most frequent unknown script if most letters of the first texts are in unknown scripts, else None."""
    counts = Counter(script for text in texts[:200] for c in text[:200] if (script := script_of(c)))
    if 2 * counts["LATIN"] >= counts.total():
        return None  # Latin pieces are in every vocabulary in use
    scripts = known()
    foreign = Counter({script: count for script, count in counts.items() if script not in scripts})
    return foreign.most_common(1)[0][0] if 2 * foreign.total() > counts.total() else None


def known_scripts(pieces: Iterable[str]) -> set[str]:
    """The scripts a vocabulary was made for."""
    counts = Counter(s for piece in pieces if (s := next((s for c in piece if (s := script_of(c))), None)))
    return {"LATIN"} | {script for script, count in counts.items() if count >= ENOUGH_PIECES}
