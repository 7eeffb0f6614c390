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
    K.flat[:: len(K) + 1] += penalty if weight is None else penalty / weight
    R = np.linalg.cholesky(K)
    _invert_lower(R)  # R'R = A^-1
    coefficients = R.T @ (R @ targets)
    return Ridge(coefficients, targets - coefficients / np.einsum("ij,ij->j", R, R))


def _invert_lower(L: np.ndarray) -> None:
    """A lower triangular matrix becomes its inverse, by halves, so that nearly all of the work is products.

        [[A, 0], [B, C]]^-1 = [[A^-1, 0], [-C^-1 B A^-1, C^-1]]

    SciPy has it, in four fifths of the time for thousands of rows; importing that takes longer than fitting a thousand.
    """
    if len(L) <= 64:
        L[:] = np.tril(np.linalg.inv(L))
        return
    half = len(L) // 2
    A, B, C = L[:half, :half], L[half:, :half], L[half:, half:]
    _invert_lower(A)
    _invert_lower(C)
    np.matmul(C, -(B @ A), out=B)
