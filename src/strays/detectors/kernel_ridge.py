"""Kernel ridge regression whose left-out predictions cost nothing more than the fit.

    f = sum_j a_j k(x, x_j),  a = A^-1 t,  A = K + s W^-1,  f without row i at x_i = t_i - a_i / [A^-1]_ii

W is diagonal and holds how much each row counts, which is 1 unless it is said.

The kernels also take tensors of PyTorch, which a GPU scores with.

Far from all rows f is zero: neither what was seen of normal texts nor of anomalies says anything there.

Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, chapters 2 and 5.4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


def squared_distances(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """|x_i - z_j|^2 as a matrix (rows of X, rows of Z)."""
    D = X @ Z.T
    D *= -2
    D += (X**2).sum(axis=1)[:, None]
    D += (Z**2).sum(axis=1)
    return np.maximum(D, 0, out=D)


def laplace(D: Any) -> Any:
    """K = exp(-4 |x - z|), from squared distances: sharp, so that it tells how densely a place is settled."""
    if isinstance(D, np.ndarray):
        K = np.sqrt(D)
        K *= -4
        return np.exp(K, out=K)
    return D.sqrt().mul_(-4).exp_()


def gauss(D: Any) -> Any:
    """K = exp(-|x - z|^2), from squared distances: smooth, so that likeness reaches beyond the nearest rows."""
    if isinstance(D, np.ndarray):
        K = np.negative(D)
        return np.exp(K, out=K)
    return D.neg().exp_()


@dataclass(frozen=True)
class Ridge:
    """Coefficients a of the rows it was fitted on, and what it predicts at each of them without that row."""

    coefficients: np.ndarray
    left_out: np.ndarray


def fit_ridge(K: np.ndarray, targets: np.ndarray, penalty: float, weight: np.ndarray | None = None) -> Ridge:
    """Fit to targets t of the rows whose kernel matrix is K, with s = penalty and weights W; K is used up."""
    from scipy.linalg import cholesky, lapack

    K.flat[:: len(K) + 1] += penalty if weight is None else penalty / weight
    # R'R = A^-1, R lower triangular. K' is K, but lies in memory as LAPACK overwrites it without a copy.
    R, _ = lapack.dtrtri(cholesky(K.T, lower=True, overwrite_a=True), lower=1, overwrite_c=1)
    coefficients = R.T @ (R @ targets)
    return Ridge(coefficients, targets - coefficients / np.einsum("ij,ij->j", R, R))
