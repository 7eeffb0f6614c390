"""Nearest normals: how far a row is from the normal rows most like it.

    T(x) = mean over the k nearest normal training rows o of |x - o|,  not counting one that equals x

Ramaswamy, Rastogi and Shim, "Efficient Algorithms for Mining Outliers from Large Data Sets", 2000; the mean over the
neighbours is from Angiulli and Pizzuti, "Fast Outlier Detection in High Dimensional Spaces", 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn import neighbors

from strays.detectors.base import COUNT, EMBEDDED, Detector

# Rows nearer than this share of their length are the same row: rounding leaves a little.
EQUAL = 1e-6


@dataclass(eq=False, repr=False)
class NearestNormals(Detector):
    """Score a row by its mean distance to the nearest normal rows.

    Known anomalies are never neighbours: duplicates of them would make their like look normal. Nor is a row its own:
    the rows it was fitted on score like fresh ones.

    Parameters
    ----------
    n_neighbors
        k; at most one less than the rows there are.

    Attributes
    ----------
    rows_
        The normal training rows.

    >>> X = [[0, 0], [0, 1], [1, 0], [9, 9]]
    >>> NearestNormals(n_neighbors=1).fit(X, [0, 0, 0, -1]).anomaly_score([[0, 3], [9, 9]]).round(1)
    array([ 2., 12.])
    """

    n_neighbors: int = 5
    flag_rate: float = 0.05

    _parameter_constraints: ClassVar = {**Detector._parameter_constraints, "n_neighbors": [COUNT]}
    _state: ClassVar = {"rows_": EMBEDDED}

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.rows_ = X[y >= 0]

    def _anomaly_score(self, X: np.ndarray) -> np.ndarray:
        k = min(self.n_neighbors, len(self.rows_) - 1)
        index = neighbors.NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(self.rows_)
        distance, _ = index.kneighbors(X.astype(self.rows_.dtype))  # (rows, k + 1), nearest first
        itself = distance[:, 0] <= EQUAL * np.linalg.norm(X, axis=1)
        return np.where(itself, distance[:, 1:].mean(axis=1), distance[:, :-1].mean(axis=1)).astype(np.float64)
