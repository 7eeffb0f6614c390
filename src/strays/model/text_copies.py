"""Whether two texts are copies of each other: the same but for case, spacing and punctuation, or nearly the same.

Likeness of embeddings alone does not tell: some encoders find all texts alike, and "by card" is near "by cash". Nor do
letters alone. Near copies are alike in both.
"""

from __future__ import annotations

from strays.model.segments import words

# The cosine of two embeddings, and the share of their three-letter pieces in common, from which texts are near copies.
ALIKE, SHARED_LETTERS = 0.95, 0.5
# Characters that are compared: an encoder reads little more, and a text may have been cut.
COMPARED = 500


def plain(text: str) -> str:
    """A text without what copies may differ in: case, spacing, punctuation, and what comes late.

    >>> plain("  Is my BIKE ready?!")
    'is my bike ready'
    """
    return " ".join(words(text[: 2 * COMPARED]))[:COMPARED] or text[:COMPARED].strip()


def nearly_same(one: str, other: str) -> bool:
    """Whether two plain texts share most of their letters, in their order.

    >>> nearly_same("your order 4411 has left our house", "your order 4502 has left our house")
    True
    >>> nearly_same("your order 4411 has left our house", "where is my order, has it left your house")
    False
    """
    a, b = _threes(one), _threes(other)
    return len(a & b) >= SHARED_LETTERS * len(a | b)


def _threes(text: str) -> set[str]:
    padded = f" {text} "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}
