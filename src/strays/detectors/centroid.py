"""Distance to the mean: the baseline the paper calls BERT-rank.

    T(x) = |x - c|,  c = the mean of the training embeddings

Larson et al., "Outlier Detection for Improved Data Quality and Diversity in Dialog Systems", NAACL 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strays.detectors.array_spec import ArraySpec
from strays.detectors.base import Detector
from strays.detectors.exact import lengths


@dataclass(eq=False, repr=False)
class CentroidDistance(Detector):
    """Score a row by its Euclidean distance to the mean of the training rows; known anomalies stay out of the mean.

    Attributes
    ----------
    center_
        Mean of the rows not labelled -1, shape (d,).

    >>> X = [[0, 0], [0, 2], [2, 0], [2, 2]]
    >>> CentroidDistance().fit(X).anomaly_score([[1, 1], [4, 5]])
    array([0., 5.])
    """

    flag_rate: float = 0.05

    _state: ClassVar = {"center_": ArraySpec(("d",))}

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.center_ = X[y >= 0].mean(axis=0, dtype=np.float64)

    def _anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return lengths(X - self.center_)
