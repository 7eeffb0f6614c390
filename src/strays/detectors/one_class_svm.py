"""One-class support vector machine: the boundary that separates the normal rows from the origin in kernel space.

    T(x) = rho - sum_i alpha_i k(x_i, x),  k(x, x') = exp(-gamma |x - x'|^2)

Schoelkopf et al., "Estimating the Support of a High-Dimensional Distribution", 2001; solved by scikit-learn.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import ClassVar

import numpy as np

from strays.detectors.array_spec import ArraySpec
from strays.detectors.base import Detector
from strays.detectors.exact import ComparedRows, Prepared, weighted_sums
from strays.detectors.kernel_ridge import squared_distances
from strays.detectors.limits import POSITIVE, Interval, StrOptions
from strays.detectors.threads import in_blocks

# Few enough for the caches of a processor.
ROWS_AT_ONCE = 64


def most_rows_at_once() -> int:
    """Rows whose kernel matrix fills a third of the memory that is free: up to there it is computed at once.

    The solution is the very same, three to six times sooner than with the kernel computed bit by bit.
    """
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # no such question on this system
        memory = 2 * 2**30
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):  # of a container
        with suppress(OSError, ValueError):  # not in one, or "max"
            memory = min(memory, int(Path(limit).read_text()))
    return int((memory / 3 / np.dtype(np.float64).itemsize) ** 0.5)


def gauss_kernel(X: np.ndarray, gamma: float, at_once: int = 1024) -> np.ndarray:
    """exp(-gamma |x_i - x_j|^2) of all pairs of rows, some rows at a time.

    A product of a whole array with its own transpose ends the process where there are tens of thousands of rows and
    OpenBLAS has several threads: https://github.com/numpy/numpy/issues/19685.

    >>> gauss_kernel(np.array([[0.0], [1.0]]), gamma=1.0).round(2)
    array([[1.  , 0.37],
           [0.37, 1.  ]])
    """
    K = np.empty((len(X), len(X)))
    for start in range(0, len(X), at_once):
        K[start : start + at_once] = squared_distances(X[start : start + at_once], X)
    np.fill_diagonal(K, 0)
    K *= -gamma
    return np.exp(K, out=K)


@dataclass(eq=False, repr=False)
class OneClassSVM(Detector):
    """Score a row by how far it lies outside the support of the normal rows; known anomalies are left out of the fit.

    Parameters
    ----------
    nu
        Upper bound on the share of training rows outside the boundary.
    gamma
        Width of the Gaussian kernel: a number, or 'scale' for 1 / (d * variance of X).

    Attributes
    ----------
    support_vectors_, alpha_, rho_, gamma_
        The x_i, alpha_i, rho and gamma of the formula.

    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> near, far = OneClassSVM().fit(X).anomaly_score([[0, 0], [9, 9]])
    >>> bool(far > 0 > near)
    True
    """

    nu: float = 0.5
    gamma: float | str = "scale"
    flag_rate: float = 0.05

    _parameter_constraints: ClassVar = {
        **Detector._parameter_constraints,
        "nu": [Interval(Real, 0, 1, closed="right")],
        "gamma": [POSITIVE, StrOptions({"scale"})],
    }
    _state: ClassVar = {
        "support_vectors_": ArraySpec(("n", "d")),
        "alpha_": ArraySpec(("n",)),
        "rho_": ArraySpec(),
        "gamma_": ArraySpec(low=0),
    }

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        from sklearn import svm

        X = X[y >= 0].astype(np.float64)
        # 'scale' by scikit-learn's definition.
        self.gamma_ = float(1 / (X.shape[1] * (X.var() or 1)) if self.gamma == "scale" else self.gamma)
        if len(X) <= most_rows_at_once():
            machine = svm.OneClassSVM(nu=self.nu, kernel="precomputed").fit(gauss_kernel(X, self.gamma_))
        else:
            machine = svm.OneClassSVM(nu=self.nu, gamma=self.gamma_).fit(X)
        self.support_vectors_ = X[machine.support_]
        self.alpha_ = machine.dual_coef_[0]
        self.rho_ = float(machine.offset_[0])

    def _anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return in_blocks(self._score_block, X, ROWS_AT_ONCE)

    def _score_block(self, X: np.ndarray) -> np.ndarray:
        compared = _COMPARED.of(self)
        K = compared.squared_distances(compared.placed(X))
        K *= -self.gamma_
        return self.rho_ - weighted_sums(np.exp(K, out=K), self.alpha_)


_COMPARED = Prepared(lambda detector: ComparedRows.of(detector.support_vectors_), "support_vectors_")
