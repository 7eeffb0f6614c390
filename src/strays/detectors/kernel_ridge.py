"""Kernel ridge regression whose left-out predictions cost nothing more than the fit.

    f = sum_j a_j k(x, x_j),  a = A^-1 t,  A = K + s W^-1,  f without row i at x_i = t_i - a_i / [A^-1]_ii

W is diagonal and holds how much each row counts, which is 1 unless it is said.

Fitted in torch. The kernels take arrays of NumPy, too, which a fitted detector scores with.

Far from all rows f is zero: neither what was seen of normal texts nor of anomalies says anything there.

Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, chapters 2 and 5.4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch


def squared_distances(X: torch.Tensor, Z: torch.Tensor) -> torch.Tensor:
    """|x_i - z_j|^2 as a matrix (rows of X, rows of Z)."""
    return ((X**2).sum(1)[:, None] + (Z**2).sum(1) - 2 * X @ Z.T).clamp_(min=0)


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

    coefficients: torch.Tensor
    left_out: torch.Tensor


def fit_ridge(K: torch.Tensor, targets: torch.Tensor, penalty: float, weight: torch.Tensor | None = None) -> Ridge:
    """Fit to targets t of the rows whose kernel matrix is K, with s = penalty and weights W; K is used up."""
    import torch

    K.diagonal().add_(penalty if weight is None else penalty / weight)
    # R'R = A^-1. torch.cholesky_inverse, which gives the same, takes eight times as long.
    root = torch.linalg.solve_triangular(torch.linalg.cholesky(K), torch.eye(len(K), dtype=K.dtype), upper=False)
    coefficients = root.T @ (root @ targets)
    return Ridge(coefficients, targets - coefficients / torch.linalg.vector_norm(root, dim=0) ** 2)
