"""The parts of the default detector's score: fitted together, with what each says of the rows it was fitted on.

auto.py says what they are, and form_part.py what the form is. No row's value rests on the row itself: all are left-out
ones, in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strays.detectors import kernel_ridge
from strays.detectors.exact import lowest
from strays.detectors.logistic_head import left_out_log_odds, logistic_regression
from strays.detectors.threads import few_threads, one_thread

PARTS = ("nearest", "field", "kernel", "linear", "form")
FITTED = PARTS[:4]
FIELD_PENALTY, KERNEL_PENALTY, LINEAR_C = 1.0, 0.5, 1.0


@dataclass(frozen=True)
class FittedParts:
    """Coefficients of the rows in field and kernel, those of the features in linear, and left-out parts by row."""

    field: np.ndarray
    kernel: np.ndarray
    linear: np.ndarray
    left_out: np.ndarray


def fit_parts(
    Z: np.ndarray, n_normals: int, radius: np.ndarray, counts: np.ndarray, *, n_neighbors: int
) -> FittedParts:
    """Fit to rows Z: normals to compare with, one for each `radius`; other normals up to `n_normals`; known anomalies.

    Other normals within the radius of one to compare with are copies of it and get its distances. `counts` is how much
    each known anomaly counts in the heads.
    """
    n, m = n_normals, len(radius)
    is_normal = np.arange(len(Z)) < n
    left_out = np.zeros((len(Z), len(FITTED)))
    field_of_all = np.zeros(len(Z))
    weight = np.r_[np.ones(n), counts]
    with few_threads(len(Z)):
        D = kernel_ridge.squared_distances(Z, Z)
        np.fill_diagonal(D, np.inf)  # no row is its own neighbour
        distance, nearest = lowest(D[:, :m], min(n_neighbors, m - 1))
        np.sqrt(distance, out=distance)
        np.fill_diagonal(D, 0)
        left_out[:, 0] = distance.mean(axis=1)
        used = np.r_[:m, n : len(Z)]
        K = kernel_ridge.laplace(D[:, used])
        field = kernel_ridge.fit_ridge(K[used], is_normal[used].astype(np.float64), FIELD_PENALTY)
        left_out[:, 1] = -(K @ field.coefficients)
        left_out[used, 1] = -field.left_out
        copies = m + np.flatnonzero(distance[m:n, 0] <= radius[nearest[m:n, 0]])
        left_out[copies, :2] = left_out[nearest[copies, 0], :2]
        field_of_all[used] = field.coefficients
        if n == len(Z):
            return FittedParts(field_of_all, np.zeros(len(Z)), np.zeros(Z.shape[1] + 1), left_out)
        kernel = kernel_ridge.fit_ridge(kernel_ridge.gauss(D), 1 - 2.0 * is_normal, KERNEL_PENALTY, weight)
        left_out[:, 2] = kernel.left_out
    with one_thread():
        linear = logistic_regression(Z, ~is_normal, LINEAR_C, weight)
        left_out[:, 3] = left_out_log_odds(Z, ~is_normal, linear, LINEAR_C, weight)
    return FittedParts(field_of_all, kernel.coefficients, linear, left_out)
