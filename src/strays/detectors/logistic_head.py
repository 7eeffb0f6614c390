"""Logistic head: a plain classifier that tells the known anomalies from all other rows.

    T(x) = w . x + b,  the log odds of an anomaly under logistic regression with an L2 penalty |w|^2 / (2 C)

Without known anomalies there is nothing to tell apart, and T(x) is the distance to the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strays.detectors.array_spec import ArraySpec
from strays.detectors.base import Detector
from strays.detectors.exact import lengths, weighted_sums
from strays.detectors.limits import POSITIVE


@dataclass(eq=False, repr=False)
class LogisticHead(Detector):
    """Score a row by how much a logistic regression believes it to be an anomaly.

    Strong where test anomalies are of the kinds known; with one or two known anomalies it may fall below chance.

    Parameters
    ----------
    C
        Inverse strength of the penalty.

    Attributes
    ----------
    coef_, intercept_
        w and b; all zero where no anomalies were known.
    center_
        Mean of the rows not labelled -1.

    >>> X, y = [[0, 0], [0, 1], [1, 0], [5, 5]], [1, 1, 0, -1]
    >>> like_normals, like_the_anomaly = LogisticHead().fit(X, y).anomaly_score([[0, 0], [5, 5]])
    >>> bool(like_normals < 0 < like_the_anomaly)
    True
    """

    C: float = 1.0
    flag_rate: float = 0.05

    _parameter_constraints: ClassVar = {**Detector._parameter_constraints, "C": [POSITIVE]}
    _state: ClassVar = {"coef_": ArraySpec(("d",)), "intercept_": ArraySpec(), "center_": ArraySpec(("d",))}

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        X = X.astype(np.float64)
        self.center_ = X[y >= 0].mean(axis=0)
        self.coef_, self.intercept_ = np.zeros(X.shape[1]), 0.0
        if (y < 0).any():
            *coef, intercept = logistic_regression(X, y < 0, self.C)
            self.coef_, self.intercept_ = np.array(coef), float(intercept)

    def _anomaly_score(self, X: np.ndarray) -> np.ndarray:
        if self.coef_.any():
            return weighted_sums(X.astype(np.float64), self.coef_) + self.intercept_
        return lengths(X - self.center_)


def logistic_regression(X: np.ndarray, anomalous: np.ndarray, C: float, weight: np.ndarray | None = None) -> np.ndarray:
    """(w, b) in one array, for rows of which some are anomalous; `weight` is how much each row counts, else 1.

    The loss, the solver and when it stops are those of scikit-learn's LogisticRegression, and so is the result, to
    rounding. It is written out because importing scikit-learn takes longer than this and a scan of a small file.
    """
    from scipy.optimize import minimize

    total = len(X) if weight is None else weight.sum()
    share = np.full(len(X), 1 / total) if weight is None else weight / total
    penalty = 1 / (C * total)

    def loss_and_gradient(w_and_b: np.ndarray) -> tuple[float, np.ndarray]:
        w, b = w_and_b[:-1], w_and_b[-1]
        eta = X @ w + b
        residual = share * (_probability(eta) - anomalous)
        loss = share @ (np.logaddexp(0, eta) - anomalous * eta) + penalty / 2 * (w @ w)
        return float(loss), np.r_[X.T @ residual + penalty * w, residual.sum()]

    options = {"maxiter": 1000, "maxls": 50, "gtol": 1e-4, "ftol": 64 * np.finfo(float).eps}
    start = np.zeros(X.shape[1] + 1)
    return minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", options=options).x


def _probability(eta: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-eta))."""
    with np.errstate(over="ignore"):  # 1 / inf is the 0 that is meant
        return 1 / (1 + np.exp(-eta))


def left_out_log_odds(
    X: np.ndarray, anomalous: np.ndarray, fitted: np.ndarray, C: float, weight: np.ndarray | None = None
) -> np.ndarray:
    """What logistic_regression would say of each row had it not seen that row, to first order and with the same b.

    One Newton step of w away from the fit with all rows: eta_i + c_i (p_i - t_i) q_i / (1 - c_i p_i (1 - p_i) q_i),
    c_i = C times the weight of the row, q_i = x_i^T H^-1 x_i, H the Hessian (Pregibon, "Logistic Regression
    Diagnostics", 1981). b ranks no row above another, but would fall with every anomaly left out, and so make each look
    more normal than it is.
    """
    eta = X @ fitted[:-1] + fitted[-1]
    p = _probability(eta)
    c = C if weight is None else C * weight
    curvature = c * p * (1 - p)
    H = np.eye(X.shape[1]) + (X * curvature[:, None]).T @ X
    q = np.einsum("ij,ij->i", X @ np.linalg.inv(H), X)
    return eta + c * (p - anomalous) * q / (1 - curvature * q)
