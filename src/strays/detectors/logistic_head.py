"""Logistic head: a plain classifier that tells the known anomalies from all other rows.

    T(x) = w . x + b,  the log odds of an anomaly under logistic regression with an L2 penalty |w|^2 / (2 C)

Without known anomalies there is nothing to tell apart, and T(x) is the distance to the mean.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression

from strays.detectors import network
from strays.detectors.base import POSITIVE, Detector


class LogisticHead(Detector):
    """Score a row by how much a logistic regression believes it to be an anomaly.

    Strong where test anomalies are of the kinds known; with one or two known anomalies it may fall below chance.

    Parameters
    ----------
    C
        Inverse strength of the penalty.
    flag_rate
        Share of presumed normal training rows that `predict` flags.

    Attributes
    ----------
    coef_, intercept_
        w and b; all zero where no anomalies were known.
    center_
        Mean of the rows not labelled -1.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**Detector._parameter_constraints, "C": [POSITIVE]}
    _state: ClassVar = ("coef_", "intercept_", "center_")

    def __init__(self, C: float = 1.0, flag_rate: float = 0.05) -> None:
        self.C = C
        self.flag_rate = flag_rate

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        X = X.astype(np.float64)
        self.center_ = X[y >= 0].mean(axis=0)
        self.coef_, self.intercept_ = np.zeros(X.shape[1]), 0.0
        if (y < 0).any():
            head = LogisticRegression(C=self.C, max_iter=1000).fit(X, y < 0)
            self.coef_, self.intercept_ = head.coef_[0], float(head.intercept_[0])

    def _anomaly_score(self, X: np.ndarray) -> np.ndarray:
        if self.coef_.any():
            return X.astype(np.float64) @ self.coef_ + self.intercept_
        return np.sqrt(network.squared_distance(X, self.center_))
