"""What the default detector sees of a row: the values of its parts.

auto.py says what they are. A row's values depend on the row alone, bit for bit (exact.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from strays.detectors import kernel_ridge
from strays.detectors.auto_parts import PARTS
from strays.detectors.copies import EQUAL
from strays.detectors.exact import ComparedRows, lengths, weighted_sums
from strays.detectors.form_part import FormPart
from strays.detectors.threads import in_blocks

# Rows whose distances are computed together: few, so that these stay in the cache of a processor.
ROWS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class AutoFeatures:
    """The parts at rows, from the fitted arrays of an AutoDetector.

    `compared` are the rows learnt from: normals to measure distances to, one for each `radius`, other normals, as many
    as `left_out` has, and known anomalies. `form` are the columns of the normals' form, if there are any.
    """

    compared: ComparedRows
    n_neighbors: int
    field: np.ndarray
    kernel: np.ndarray
    linear: np.ndarray
    radius: np.ndarray
    left_out: np.ndarray
    form: np.ndarray

    @cached_property
    def n_features(self) -> int:
        """How many columns of a row are its embedding; those of its form follow."""
        return self.compared.rows.shape[1]

    @cached_property
    def form_part(self) -> FormPart:
        """The part that looks at the form."""
        return FormPart.of(self.form)

    def at(self, X: np.ndarray) -> np.ndarray:
        """(rows, parts): left-out ones at one of the normals; at a copy of one, its left-out distances and its form."""
        return in_blocks(self._at, X, ROWS_AT_ONCE)

    def _at(self, X: np.ndarray) -> np.ndarray:
        n, m, compared = len(self.left_out), len(self.radius), self.compared
        X, form = np.hsplit(X, [self.n_features])
        X = X.astype(compared.rows.dtype, copy=False)  # so that a row knows itself among those kept
        Z = compared.placed(X)
        D = compared.squared_distances(Z)  # (rows of X, rows compared with)
        distance, nearest = compared.nearest(X, D[:, :m], min(self.n_neighbors, m - 1))
        closest, itself = (distance, nearest) if n == m else compared.nearest(X, D[:, :n], 1)
        part = np.zeros((len(X), len(PARTS)))
        part[:, 0] = distance.mean(axis=1)
        part[:, 1] = -weighted_sums(kernel_ridge.laplace(D), self.field)
        if n < len(self.field):
            part[:, 2] = weighted_sums(kernel_ridge.gauss(D), self.kernel)
            part[:, 3] = (Z * self.linear[:-1]).sum(axis=1) + self.linear[-1]
        copy = distance[:, 0] <= self.radius[nearest[:, 0]]
        part[copy, :2] = self.left_out[nearest[copy, 0], :2]
        known = closest[:, 0] <= EQUAL * np.maximum(lengths(Z), 1)
        part[known, :4] = self.left_out[itself[known, 0]]
        part[:, 4] = self.form_at(form, np.where(copy & ~known, nearest[:, 0], -1))
        return part

    def form_at(self, form: np.ndarray, copy_of: np.ndarray) -> np.ndarray:
        """The part of the form: for a copy of a normal what that one has, if `copy_of` says which one (else -1)."""
        form, copy = form.astype(np.float32), copy_of >= 0
        form[copy] = self.form[copy_of[copy]]
        return self.form_part.at(form)
