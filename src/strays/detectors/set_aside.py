"""Which presumed normal rows look like the known anomalies, and are better not taken for normal.

At most the highest-scoring 5 % of the presumed normals are set aside. Which of those depends on where the known
anomalies come from:

    known at random      those that rank above half of the known: hidden anomalies rank as the known do
    found by searching   all: whoever judges the highest-scoring rows finds the easy anomalies, which all rank high.
                         What is still hidden ranks right below them, and so not above half of the known

Rows labelled normal tell of a search, as nobody finds anomalies alone. It has come to its end where as many rows are
labelled normal as anomaly: the highest of the others are then as likely to be normal, and the first rule holds.
"""

from __future__ import annotations

import numpy as np

FEWEST_KNOWN, MOST_SET_ASIDE = 3, 0.05


def set_aside(
    scores: np.ndarray, known: np.ndarray, presumed: np.ndarray, n_normal: int = 0, searched: bool = False
) -> np.ndarray:
    """A mask of those of the `presumed` normals among rows with these scores that are better not taken for normal.

    `known` are the scores of known anomalies, `n_normal` is how many rows are labelled normal; `searched` says that the
    known were found by searching, whatever the labels.

    >>> scores, known, presumed = np.arange(100.0), np.array([60.0, 97.0, 200.0]), np.ones(100, dtype=bool)
    >>> set_aside(scores, known, presumed).nonzero()[0]
    array([98, 99])
    >>> presumed[98] = False
    >>> set_aside(scores, known, presumed, n_normal=1).nonzero()[0]
    array([95, 96, 97, 99])
    """
    aside = np.zeros(len(scores), dtype=bool)
    if len(known) < FEWEST_KNOWN:
        return aside
    rows = np.flatnonzero(presumed)
    highest = rows[np.argsort(-scores[rows], kind="stable")[: int(MOST_SET_ASIDE * len(rows))]]
    if n_normal >= len(known) or not (n_normal or searched):
        highest = highest[scores[highest] > np.median(known)]
    aside[highest] = True
    return aside
