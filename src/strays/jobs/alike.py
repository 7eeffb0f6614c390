"""Rows that are alike take one line of a ranking: copies of a text, and texts so near that they score the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from strays.model.text_copies import plain

# Scores that differ by less differ by rounding only.
TIED = 1e-12
# Row numbers given of the rows like another.
MOST_ROWS = 20


def first_of_tied(ranked: np.ndarray) -> np.ndarray:
    """Which of some scores in order differ from the one before.

    >>> first_of_tied(np.array([3.0, 3.0, 1.0]))
    array([ True, False,  True])
    """
    same = np.isclose(ranked[1:], ranked[:-1], rtol=TIED, atol=TIED)
    return np.concatenate([np.ones(min(1, len(ranked)), dtype=bool), ~same])


def group_alike(
    order: np.ndarray, score: np.ndarray, texts: Sequence[str], y: np.ndarray, *, copies_tie: bool
) -> Iterator[list[int]]:
    """The rows in `order`, oddest first, in groups of copies; each group by itself in the order of the file.

    Copies have the same score and label y, and the same text but for case, spacing and punctuation. With `copies_tie`,
    the same score is enough (see `Detector.copies_tie`), which finds paraphrases too.

    >>> score, texts = np.array([1.0, 3.0, 2.0, 3.0, 3.0]), ["a hen", "Win cash!", "a cow", "a fox", "win cash"]
    >>> order = np.argsort(-score, kind="stable")
    >>> list(group_alike(order, score, texts, np.zeros(5), copies_tie=False))
    [[1, 4], [3], [2], [0]]
    >>> list(group_alike(order, score, texts, np.zeros(5), copies_tie=True))
    [[1, 3, 4], [2], [0]]
    """
    plain_once = cache(plain)  # most copies are equal
    starts = np.flatnonzero(first_of_tied(score[order]))
    for start, end in pairwise(np.append(starts, len(order))):
        tied = sorted(order[start:end].tolist())
        groups: dict[tuple[int, str], list[int]] = {}
        for row in tied:
            same = "" if copies_tie or len(tied) == 1 else plain_once(texts[row])
            groups.setdefault((int(y[row]), same), []).append(row)
        yield from groups.values()


def rows_alike(rows: Sequence[int]) -> dict[str, Any]:
    """What is said of the rows like another, as plain data: how many they are, and the numbers of the first."""
    return {"n_alike": len(rows), "rows_alike": [row + 1 for row in rows[:MOST_ROWS]]}
