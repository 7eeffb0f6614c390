"""Local outlier factor: how much thinner the crowd is around a row than around its neighbours.

    reach_k(x, o) = max(k-distance(o), |x - o|)
    lrd(x) = 1 / mean over the k neighbours o of reach_k(x, o)
    T(x) = mean over the k neighbours o of lrd(o) / lrd(x)

Breunig et al., "LOF: Identifying Density-Based Local Outliers", 2000. As in scikit-learn's
`neighbors.LocalOutlierFactor(novelty=True)`, every row scored counts as new.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strays.detectors.array_spec import ArraySpec
from strays.detectors.base import EMBEDDED, Detector
from strays.detectors.exact import ComparedRows, Prepared, rows_at_once
from strays.detectors.limits import COUNT
from strays.detectors.threads import in_blocks


@dataclass(eq=False, repr=False)
class LocalOutlierFactor(Detector):
    """Score a row by its local outlier factor among the normal rows; about 1 is normal, higher is odder.

    Known anomalies are left out: duplicates of them would make their like look normal.

    Parameters
    ----------
    n_neighbors
        k; at most one less than the rows there are.

    Attributes
    ----------
    rows_, k_distance_, lrd_
        The normal training rows, each one's distance to its k-th neighbour, and its local reachability density.

    >>> X = [[0], [1], [2], [3], [4]]
    >>> inside, outside = LocalOutlierFactor(n_neighbors=2).fit(X).anomaly_score([[2.5], [9]])
    >>> bool(inside < 1 < outside)
    True
    """

    n_neighbors: int = 20
    flag_rate: float = 0.05

    _parameter_constraints: ClassVar = {**Detector._parameter_constraints, "n_neighbors": [COUNT]}
    _state: ClassVar = {"rows_": EMBEDDED, "k_distance_": ArraySpec(("n",), low=0), "lrd_": ArraySpec(("n",), low=0)}

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        from sklearn.neighbors import NearestNeighbors

        self.rows_ = X[y >= 0]
        index = NearestNeighbors(n_neighbors=self._k, algorithm="brute").fit(self.rows_)
        distance, neighbor = index.kneighbors()  # of the training rows themselves, each without itself
        self.k_distance_ = distance[:, -1].astype(np.float64)
        self.lrd_ = self._density(distance, neighbor)

    @property
    def _k(self) -> int:
        return max(1, min(self.n_neighbors, len(self.rows_) - 1))

    def _density(self, distance: np.ndarray, neighbor: np.ndarray) -> np.ndarray:
        reach = np.maximum(distance, self.k_distance_[neighbor])
        return 1 / (reach.mean(axis=1) + 1e-10)  # duplicates have distance 0

    def _anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return in_blocks(self._score_block, X, rows_at_once(self._k, X.shape[1]))

    def _score_block(self, X: np.ndarray) -> np.ndarray:
        X = X.astype(self.rows_.dtype, copy=False)
        distance, neighbor = _COMPARED.of(self).k_nearest(X, self._k)
        return self.lrd_[neighbor].mean(axis=1) / self._density(distance, neighbor)


_COMPARED = Prepared(lambda detector: ComparedRows.of(detector.rows_), "rows_")
