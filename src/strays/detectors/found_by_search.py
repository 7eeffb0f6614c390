"""What anomalies found by searching stand for.

Whoever judges the highest-scoring rows finds the easy anomalies, many of one kind. Beside a few that were known without
a search, and so are a sample of all anomalies, they would teach a detector that all are easy and of that kind.

The sample tells how large the part is that the found ones stand for: the share of it that ranks as high as they do,
left out. Known anomalies in that part get this share of the weight together, those below it the rest: Holt and Smith,
"Post Stratification", 1979. A sample of ten is small, so its share is drawn towards that of all known anomalies, as if
the sample had two more rows, divided like all of them.
"""

from __future__ import annotations

import numpy as np

# Found anomalies rank "as high as they do" from this quantile of theirs on: the lowest were asked about for other
# reasons than their score.
LOWEST = 0.25
# Rows that the share of the sample is drawn towards the share of all by.
DRAWN_BY = 2.0


def first_weights(found: np.ndarray) -> np.ndarray:
    """Weights, of mean one, while there are no scores: those found together count as much as the others together.

    >>> first_weights(np.array([True, True, True, False])).round(2)
    array([0.67, 0.67, 0.67, 2.  ])
    """
    share = found.mean() if len(found) else 0
    return np.where(found, 0.5 / share, 0.5 / (1 - share)) if 0 < share < 1 else np.ones(len(found))


def weights_of_known(scores: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Weights, of mean one, of known anomalies with these left-out scores, of which some were found by searching.

    >>> scores = np.array([1.0, 2.0, 5.0, 9.2, 8.5, 9.0, 9.5, 9.6, 9.7, 9.8])
    >>> weights_of_known(scores, np.arange(10) >= 4).round(2)
    array([2.  , 2.  , 2.  , 0.57, 0.57, 0.57, 0.57, 0.57, 0.57, 0.57])
    >>> weights_of_known(scores, np.ones(10, dtype=bool))
    array([1., 1., 1., 1., 1., 1., 1., 1., 1., 1.])
    """
    if found.all() or not found.any():
        return np.ones(len(scores))
    high = found | (scores >= np.quantile(scores[found], LOWEST))
    if high.all():
        return np.ones(len(scores))
    of_all = high.mean()
    of_sample = (high[~found].sum() + DRAWN_BY * of_all) / (np.count_nonzero(~found) + DRAWN_BY)
    return np.where(high, of_sample / of_all, (1 - of_sample) / (1 - of_all))
