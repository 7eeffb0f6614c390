"""Mahalanobis distance: distance to the mean, measured in deviations of the normal rows.

    T(x)^2 = (x - m)^T S^-1 (x - m),  S = (1 - a) C + a (trace C / d) I

m and C are mean and covariance of the normal rows; the shrinkage a is Ledoit and Wolf's, which keeps S invertible with
fewer rows than dimensions.

Ledoit and Wolf, "A Well-Conditioned Estimator for Large-Dimensional Covariance Matrices", 2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strays.detectors.array_spec import ArraySpec
from strays.detectors.base import Detector
from strays.detectors.exact import LinearMap, Prepared, lengths
from strays.detectors.threads import in_blocks

ROWS_AT_ONCE = 512


@dataclass(eq=False, repr=False)
class Mahalanobis(Detector):
    """Score a row by its Mahalanobis distance to the mean of the normal rows; known anomalies are left out of both.

    Attributes
    ----------
    center_, whitening_
        m, and a matrix V with V V^T = S^-1, so that T(x) = |(x - m) V|.

    >>> X = np.random.default_rng(0).normal(size=(100, 2)) * [10, 1]
    >>> along, across = Mahalanobis().fit(X).anomaly_score([[5, 0], [0, 5]])
    >>> bool(across > along)
    True
    """

    flag_rate: float = 0.05

    _state: ClassVar = {"center_": ArraySpec(("d",)), "whitening_": ArraySpec(("d", "d"))}

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        from sklearn.covariance import ledoit_wolf

        X = X[y >= 0].astype(np.float64)
        self.center_ = X.mean(axis=0)
        S, _ = ledoit_wolf(X - self.center_, assume_centered=True)
        variance, V = np.linalg.eigh(S)
        # Of directions in which nothing varies, such as those of doubled columns, not even shrinkage tells a scale.
        self.whitening_ = V / np.sqrt(np.maximum(variance, 1e-12 * variance[-1]))

    def _anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return in_blocks(lambda block: lengths(_WHITENING.of(self)(block - self.center_)), X, ROWS_AT_ONCE)


_WHITENING = Prepared(lambda detector: LinearMap.of(detector.whitening_.T), "whitening_")
