"""How much to trust each part of a score, from how the known anomalies would have ranked had they not been known.

A mixture weighs distances b = b_1 + a b_2 and learned heads h = h_1 + l h_2, as b + w h or as b + w h+ with h+ =
max(h_1, 0) + l max(h_2, 0), which cannot lower a score. b and h are scaled to deviation one over the normals; c f is
added to b, f how unusual the form is, which has the right size at c = 1; and the sum is scaled to deviation one again.
Of m known anomalies, left out, a mixture M ranks AUC(M) percent of the normals below them on average. The final weights
average all mixtures:

    weight of M ~ exp((sqrt(m) AUC(M) - P(M)) / T),  P(M) = a prior that prefers w = 1/2, h+, a = A, l and c near 1

so that one known anomaly moves the weights a little and a hundred leave nearly the best mixture (Dalalyan and Tsybakov,
"Aggregation by Exponential Weighting", 2008). Without known anomalies a is A, which depends on how far the distances
agree. With r the correlation of b_1 and b_2 over n normals, which falls as these lie closer,

    A = 1/2 min(max((r + FALL log(n / 1000) - LEAST) / (MOST - LEAST), 0), 1),     LEAST, MOST = AGREEMENT

Where normals are of one sort, what is far from the nearest of them is far from the middle, too, and the second distance
sees through anomalies that have one another for neighbours. Where normals are of several sorts, what lies between these
would look normal to it.

Known anomalies may count differently (found_by_search.py): AUC(M) is a weighted mean then, and m the number of equal
ones that would say as much, (sum of weights)^2 / sum of their squares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

# Chosen on dev splits; see benchmarks/LOG.md. T is TEMPERATURE, P is PRIOR times a count of steps away.
SECOND_DISTANCE = (0.0, 0.0625, 0.25, 1.0, 4.0, 16.0)
SECOND_HEAD = (0.1, 0.3, 1.0, 3.0, 10.0)
HEADS = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
FORM = (0.0, 0.25, 1.0, 4.0)
PREFERRED, MOST_SECOND, AGREEMENT, FALL = 0.5, 0.5, (0.5, 0.7), 0.07
TEMPERATURE = 4.0
PRIOR = 3.0
# Features are of about unit size; a variance below this is that of two or three rows, or of rounding.
VARIES = 1e-8
# Normals that ranks are measured against: more change no rank by a percent.
NORMALS_RANKED = 1000


# b_1, b_2, h_1, h_2, max(h_1, 0), max(h_2, 0), f.
N_FEATURES = 7


@dataclass(frozen=True)
class Mixture:
    """Weights of the features, and the AUC in percent of the left-out known anomalies: mixed, and by distance alone."""

    weights: np.ndarray
    auc: float
    auc_of_distances: float


def with_bounded_heads(features: np.ndarray) -> np.ndarray:
    """Rows of (b_1, b_2, h_1, h_2, f) with max(h_1, 0) and max(h_2, 0) before f."""
    return np.hstack([features[:, :4], np.maximum(features[:, 2:4], 0), features[:, 4:]])


def distances_alone(normals: np.ndarray) -> np.ndarray:
    """The weights where no anomaly is known: b_1 + A b_2, scaled, and f."""
    covariance = np.cov(normals, rowvar=False)
    b = _scaled(np.array([1, second_distance(covariance, len(normals)), 0, 0, 0, 0, 0]), covariance)
    b[-1] = 1
    return b


def second_distance(covariance: np.ndarray, n: int) -> float:
    """A, from the covariance of the features of n normals.

    >>> round(second_distance(np.array([[1.0, 1.2], [1.2, 4.0]]), 1000), 6)
    0.25
    """
    spread = np.sqrt(covariance[0, 0] * covariance[1, 1])
    agreement = covariance[0, 1] / spread + FALL * np.log(n / 1000) if spread > VARIES else 0.0
    least, most = AGREEMENT
    return MOST_SECOND * float(np.clip((agreement - least) / (most - least), 0, 1))


def mix(normals: np.ndarray, anomalies: np.ndarray, counts: np.ndarray | None = None) -> Mixture:
    """The averaged weights, from left-out features (rows of with_bounded_heads) of normals and of known anomalies.

    `counts` is how much each anomaly counts, else 1.
    """
    counts = np.ones(len(anomalies)) if counts is None else counts
    covariance = np.cov(normals, rowvar=False)
    forms = FORM if np.ptp(np.r_[normals[:, -1], anomalies[:, -1]]) else (1.0,)
    preferred = second_distance(covariance, len(normals))
    candidates, penalties = zip(*_candidates(covariance, forms, preferred), strict=True)
    V = np.array(candidates)  # (mixtures, features)
    ranked = normals[np.linspace(0, len(normals) - 1, min(len(normals), NORMALS_RANKED)).astype(int)]
    auc = _auc(V @ ranked.T, V @ anomalies.T, counts)
    m = counts.sum() ** 2 / (counts**2).sum()
    odds = (np.sqrt(m) * auc - PRIOR * np.array(penalties)) / TEMPERATURE
    share = np.exp(odds - odds.max())
    alone = distances_alone(normals)
    weights = share @ V / share.sum()
    both = _auc(np.array([weights, alone]) @ ranked.T, np.array([weights, alone]) @ anomalies.T, counts)
    auc, auc_of_distances = both.clip(max=100).tolist()  # shares may add up to a little more than one
    return Mixture(weights, auc, auc_of_distances)


def _candidates(covariance: np.ndarray, forms: Sequence[float], preferred: float) -> Iterator[tuple[np.ndarray, float]]:
    """Every mixture's weights with its penalty; `forms` are the values of c, and `preferred` is the likeliest a."""
    for a, c in product(SECOND_DISTANCE, forms):
        b = _scaled(np.array([1, a, 0, 0, 0, 0, 0]), covariance)
        b[-1] = c
        for second in SECOND_HEAD:
            plain = _scaled(np.array([0, 0, 1, second, 0, 0, 0]), covariance)
            for bounded in (False, True):
                h = np.roll(plain, 2) if bounded else plain
                for w in HEADS:
                    octaves = 0.1 * (_octaves(second) + _octaves(c)) + 0.5 * _octaves(a, preferred)
                    yield _scaled(b + w * h, covariance), abs(np.log2(w / PREFERRED)) + (not bounded) + octaves


def _scaled(weights: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The weights divided by the deviation that they give the normals."""
    variance = float(weights @ covariance @ weights)
    return weights / np.sqrt(variance) if variance > VARIES else weights


def _octaves(a: float, b: float = 1.0) -> float:
    """How many octaves lie between two weights; a weight of 0 counts as 1/16."""
    return abs(float(np.log2(max(a, 1 / 16) / max(b, 1 / 16))))


def _auc(normals: np.ndarray, anomalies: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """For each row of scores the percentage of normals below an anomaly; ties count half."""
    out, shares = np.empty(len(normals)), counts / counts.sum()
    for i, (normal, anomaly) in enumerate(zip(np.sort(normals), anomalies, strict=True)):
        below = np.searchsorted(normal, anomaly, "left") + np.searchsorted(normal, anomaly, "right")
        out[i] = 50 * (below @ shares) / len(normal)
    return out
