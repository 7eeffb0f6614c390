"""The four parts of the default detector's score: fitted together, with what each says of the rows it was fitted on.

auto.py says what they are. No row's value rests on the row itself: all are left-out ones, in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from strays.detectors import kernel_ridge
from strays.detectors.logistic_head import left_out_log_odds, logistic_regression

if TYPE_CHECKING:
    import torch

PARTS = ("nearest", "field", "kernel", "linear")
FIELD_PENALTY, KERNEL_PENALTY, LINEAR_C = 1.0, 0.5, 1.0


@dataclass(frozen=True)
class FittedParts:
    """Coefficients of the rows in field and kernel, those of the features in linear, and the left-out parts by row."""

    field: torch.Tensor
    kernel: torch.Tensor
    linear: np.ndarray
    left_out: torch.Tensor


def fit_parts(
    Z: torch.Tensor, n_normals: int, radius: torch.Tensor, counts: torch.Tensor, *, n_neighbors: int
) -> FittedParts:
    """Fit to rows Z: normals to compare with, one for each `radius`; other normals up to `n_normals`; known anomalies.

    Other normals within the radius of one to compare with are copies of it and get its distances. `counts` is how much
    each known anomaly counts in the heads.
    """
    import torch

    n, m = n_normals, len(radius)
    D = kernel_ridge.squared_distances(Z, Z)
    D.fill_diagonal_(0)
    is_normal = torch.arange(len(Z)) < n
    left_out = torch.zeros(len(Z), len(PARTS), dtype=torch.float64)
    others = D[:, :m].sqrt()
    others.diagonal().fill_(torch.inf)  # no row is its own neighbour
    distance, nearest = others.topk(min(n_neighbors, m - 1), largest=False)
    left_out[:, 0] = distance.mean(1)
    used = torch.cat([torch.arange(m), torch.arange(n, len(Z))])
    K = kernel_ridge.laplace(D[:, used])
    field = kernel_ridge.fit_ridge(K[used], is_normal[used].double(), FIELD_PENALTY)
    left_out[:, 1] = -(K @ field.coefficients)
    left_out[used, 1] = -field.left_out
    copies = m + torch.nonzero(distance[m:n, 0] <= radius[nearest[m:n, 0]])[:, 0]
    left_out[copies, :2] = left_out[nearest[copies, 0], :2]
    field_of_all = torch.zeros(len(Z), dtype=torch.float64).index_copy(0, used, field.coefficients)
    if n == len(Z):
        return FittedParts(field_of_all, torch.zeros_like(field_of_all), np.zeros(Z.shape[1] + 1), left_out)
    weight = torch.cat([torch.ones(n, dtype=torch.float64), counts])
    kernel = kernel_ridge.fit_ridge(kernel_ridge.gauss(D), 1 - 2 * is_normal.double(), KERNEL_PENALTY, weight)
    left_out[:, 2] = kernel.left_out
    rows, anomalous = Z.numpy(), ~is_normal.numpy()
    linear = logistic_regression(rows, anomalous, LINEAR_C, weight.numpy())
    left_out[:, 3] = torch.from_numpy(left_out_log_odds(rows, anomalous, linear, LINEAR_C, weight.numpy()))
    return FittedParts(field_of_all, kernel.coefficients, linear, left_out)
