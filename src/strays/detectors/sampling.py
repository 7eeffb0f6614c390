"""Which rows to keep of many: evenly spaced ones, so that nothing is random and all of a corpus has its share."""

from __future__ import annotations

import numpy as np


def evenly(values: np.ndarray, most: int) -> np.ndarray:
    """The values, or `most` of them, evenly spaced, where there are more.

    >>> evenly(np.arange(10), 4)
    array([0, 3, 6, 9])
    """
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).round().astype(int)]


def evenly_by_label(y: np.ndarray, most: int) -> np.ndarray:
    """Positions of at most `most` normal rows, half of them labelled normal (+1) where there are as many, else 0."""
    labelled, presumed = np.flatnonzero(y > 0), np.flatnonzero(y == 0)
    n_labelled = min(len(labelled), max(most // 2, most - len(presumed)))
    return np.sort(np.concatenate([evenly(labelled, n_labelled), evenly(presumed, most - n_labelled)]))


def different(X: np.ndarray, kept: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The kept positions; where their rows are all equal, the last makes way for one of `rows` that differs."""
    if (X[kept] == X[kept[0]]).all():
        kept[-1] = next(row for row in rows if (X[row] != X[kept[0]]).any())
    return kept
