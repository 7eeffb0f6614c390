"""Which texts to ask a person about next, and why each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Why a text is asked about, by kind, in words for the person who is asked.
WHY = {
    "odd": "among the oddest that nobody has judged",
    "unsure": "the model is least sure of it",
    "different": "unlike all that has been judged so far",
}


@dataclass(frozen=True)
class Ask:
    """A text to ask about, by its place in the corpus, and the kind of reason: a key of WHY."""

    row: int
    why: str


def questions(scores: np.ndarray, X: np.ndarray, y: np.ndarray, open_: np.ndarray, n: int) -> list[Ask]:
    """The next n texts to ask about, the most useful first.

    `scores` and embeddings `X` are of all texts; `y` is what people said (+1 normal, -1 anomaly, 0 nothing); `open_`
    says which texts may be asked about.
    """
    order = np.argsort(-scores, kind="stable")
    return [Ask(int(row), "odd") for row in order[open_[order]][:n]]
