"""Which writing system texts are in, and which ones an encoder's vocabulary was made for."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import islice

MULTILINGUAL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
CHINESE = "BAAI/bge-small-zh-v1.5"
# A vocabulary knows a script that has this many pieces in it. BERT's English vocabularies carry at most a few hundred
# stray letters of any other script; vocabularies made for one have thousands.
ENOUGH_PIECES = 1000


def script_of(character: str) -> str | None:
    """LATIN, CYRILLIC, CJK, ARABIC ... for a letter; None for digits, marks and signs."""
    if not character.isalpha():
        return None
    if character < "\u0250":
        return "LATIN"
    return unicodedata.name(character, "UNKNOWN").split()[0].split("-")[0]


def main_script(texts: Iterable[str], sample: int = 200) -> str | None:
    """The script of more than half of the letters in the first texts; None where there is none."""
    counts = Counter(s for text in islice(texts, sample) for c in text[:200] if (s := script_of(c)))
    if not counts:
        return None
    script, count = counts.most_common(1)[0]
    return script if 2 * count > counts.total() else None


def known_scripts(pieces: Iterable[str]) -> set[str]:
    """The scripts a vocabulary was made for."""
    counts = Counter(s for piece in pieces if (s := next((s for c in piece if (s := script_of(c))), None)))
    return {script for script, count in counts.items() if count >= ENOUGH_PIECES}


def better_choice(script: str) -> str:
    """An encoder made for a script."""
    return CHINESE if script == "CJK" else MULTILINGUAL


def readable(script: str) -> str:
    """A script's name as people say it."""
    return "Chinese" if script == "CJK" else script.title()
