"""Nearest normals: how far a row is from the normal rows most like it.

    T(x) = mean over the k nearest normal training rows o of |x - o|,  not counting copies of x

Ramaswamy, Rastogi and Shim, "Efficient Algorithms for Mining Outliers from Large Data Sets", 2000; the mean over the
neighbours is from Angiulli and Pizzuti, "Fast Outlier Detection in High Dimensional Spaces", 2002.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from strays.detectors.array_spec import ArraySpec
from strays.detectors.base import EMBEDDED, Detector
from strays.detectors.copies import EQUAL, find_groups, unit_of_length
from strays.detectors.exact import ComparedRows, Prepared, lengths, rows_at_once
from strays.detectors.limits import COUNT
from strays.detectors.threads import in_blocks


@dataclass(eq=False, repr=False)
class NearestNormals(Detector):
    """Score a row by its mean distance to the nearest normal rows.

    Known anomalies are never neighbours: duplicates of them would make their like look normal. Nor is a row its own,
    and a small group of rows that are nearly equal counts as one row (copies.py): the rows it was fitted on score like
    fresh ones, and a copy of one of them scores like that one.

    Parameters
    ----------
    n_neighbors
        k; at most one less than the rows there are.

    Attributes
    ----------
    rows_
        The normal training rows, one of each small group of copies.
    radius_
        How near to each of `rows_` a row is a copy of it.
    left_out_
        The score of each of `rows_`.

    >>> X = [[0, 0], [0, 1], [1, 0], [9, 9]]
    >>> NearestNormals(n_neighbors=1).fit(X, [0, 0, 0, -1]).anomaly_score([[0, 3], [9, 9]]).round(1)
    array([ 2., 12.])
    """

    n_neighbors: int = 5
    flag_rate: float = 0.05

    _parameter_constraints: ClassVar = {**Detector._parameter_constraints, "n_neighbors": [COUNT]}
    left_out_scores: ClassVar = True
    _state: ClassVar = {"rows_": EMBEDDED, "radius_": ArraySpec(("n",), low=0), "left_out_": ArraySpec(("n",), low=0)}

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        rows = X[y >= 0]
        scale = unit_of_length(rows)
        groups = find_groups((rows - rows.mean(axis=0)) / scale, y[y >= 0] > 0)
        self.rows_, self.radius_ = rows[groups.kept], groups.radius[groups.kept] * scale
        self.left_out_ = self._left_out()

    def _left_out(self) -> np.ndarray:
        from sklearn.neighbors import NearestNeighbors

        index = NearestNeighbors(n_neighbors=self._k, algorithm="brute").fit(self.rows_)
        distance, _ = index.kneighbors()  # of rows_ themselves, none its own neighbour
        return distance.mean(axis=1).astype(np.float64)

    @property
    def _k(self) -> int:
        return min(self.n_neighbors, len(self.rows_) - 1)

    def _anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return in_blocks(self._score_block, X, rows_at_once(self._k, X.shape[1]))

    def _score_block(self, X: np.ndarray) -> np.ndarray:
        X = X.astype(self.rows_.dtype, copy=False)
        distance, which = _COMPARED.of(self).k_nearest(X, self._k)
        copy = distance[:, 0] <= np.maximum(self.radius_[which[:, 0]], EQUAL * lengths(X))
        return np.where(copy, self.left_out_[which[:, 0]], distance.mean(axis=1))

    @property
    def copies_tie(self) -> bool:
        """A copy scores like the row that represents it; with k = 1, so do two rows that are nearest to each other."""
        return self._k > 1

    def get_state(self) -> dict[str, np.ndarray]:
        """Like every detector's; without copies it is what version 0.1 wrote, and a model of 0.1 is the same again."""
        state = super().get_state()
        return state if self.radius_.any() else {k: v for k, v in state.items() if k not in ("radius_", "left_out_")}

    def set_state(self, state: Mapping[str, np.ndarray]) -> Self:
        """Like every detector's, or what version 0.1 wrote, which compared with all rows, copies or not."""
        if "radius_" in state or "rows_" not in state:
            return super().set_state(state)
        none = np.zeros(len(state["rows_"]))
        super().set_state({**state, "radius_": none, "left_out_": none})
        self.left_out_ = self._left_out()
        return self


_COMPARED = Prepared(lambda detector: ComparedRows.of(detector.rows_), "rows_")
