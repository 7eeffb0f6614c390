"""Isolation forest: odd rows are cut off from the rest by few random splits.

    T(x) = 2 ** (-E[h(x)] / c(m)),  h(x) = depth of x's leaf + c(rows in that leaf)
    c(m) = 2 H(m-1) - 2 (m-1)/m, the mean depth of an unsuccessful search among m rows

Liu, Ting and Zhou, "Isolation Forest", 2008; trees grown by scikit-learn's `ensemble.IsolationForest`.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from strays.detectors.array_spec import WHOLE, ArraySpec
from strays.detectors.base import Detector
from strays.detectors.limits import COUNT, RANDOM_STATE, Interval
from strays.errors import ModelError


@dataclass(eq=False, repr=False)
class IsolationForest(Detector):
    """Score a row by how quickly random trees isolate it, in (0, 1); known anomalies are left out of the fit.

    Parameters
    ----------
    n_estimators
        Number of trees.
    max_samples
        Rows drawn for each tree, at most those there are.
    max_features
        Share of the features each tree may split on.
    random_state
        Seed.

    Attributes
    ----------
    left_, right_, feature_, threshold_
        Every node of every tree, one array position each; a leaf is its own child.
    path_
        Depth plus c(rows in the node), for each node.
    roots_
        Position of each tree's root.
    norm_
        c(max_samples).

    >>> X = np.random.default_rng(0).normal(size=(64, 2))
    >>> inside, outside = IsolationForest(n_estimators=20, random_state=0).fit(X).anomaly_score([[0, 0], [9, 9]])
    >>> bool(outside > 0.5 > inside)
    True
    """

    n_estimators: int = 100
    max_samples: int = 256
    max_features: float = 1.0
    flag_rate: float = 0.05
    random_state: int | None = None

    _parameter_constraints: ClassVar = {
        **Detector._parameter_constraints,
        "n_estimators": [COUNT],
        "max_samples": [COUNT],
        "max_features": [Interval(Real, 0, 1, closed="right")],
        "random_state": [RANDOM_STATE],
    }
    _state: ClassVar = {
        "left_": ArraySpec(("nodes",), WHOLE, low=0),
        "right_": ArraySpec(("nodes",), WHOLE, low=0),
        "feature_": ArraySpec(("nodes",), WHOLE, low=0),
        "threshold_": ArraySpec(("nodes",)),
        "path_": ArraySpec(("nodes",), low=0),
        "roots_": ArraySpec(("trees",), WHOLE, low=0, ascending=True),
        "norm_": ArraySpec(low=0),
    }

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        from sklearn import ensemble

        X = X[y >= 0]
        m = min(self.max_samples, len(X))
        forest = ensemble.IsolationForest(
            n_estimators=self.n_estimators,
            max_samples=m,
            max_features=self.max_features,
            random_state=self.random_state,
        ).fit(X)
        nodes: list[tuple[np.ndarray, ...]] = []
        roots, start = [], 0
        for tree, features in zip(forest.estimators_, forest.estimators_features_, strict=True):
            t = tree.tree_
            leaf = t.children_left < 0
            own = np.arange(t.node_count)
            left = np.where(leaf, own, t.children_left)
            right = np.where(leaf, own, t.children_right)
            path = _depths(left, right) + _mean_search_depth(t.n_node_samples)
            nodes.append(
                (start + left, start + right, features[np.where(leaf, 0, t.feature)], t.threshold.copy(), path)
            )
            roots.append(start)
            start += t.node_count
        self.left_, self.right_, self.feature_, self.threshold_, self.path_ = (
            np.concatenate(parts) for parts in zip(*nodes, strict=True)
        )
        self.roots_ = np.array(roots)
        self.norm_ = float(_mean_search_depth(np.array([m]))[0])

    def _check_state(self) -> None:
        """Children stand after their parents in the same tree, so that every walk ends, soon, and at a leaf."""
        n, own = len(self.left_), np.arange(len(self.left_))
        tree = np.searchsorted(self.roots_, own, side="right")
        end = np.r_[self.roots_, n][np.minimum(tree, len(self.roots_))]
        in_order = all(((child >= own) & (child < end)).all() for child in (self.left_, self.right_))
        leaves = (self.left_ == own) == (self.right_ == own)
        first = self.roots_[0] == 0 and (np.diff(self.roots_) > 0).all() and self.roots_[-1] < n
        if not (first and in_order and leaves.all() and self.feature_.max() < self.n_features_in_):
            raise ModelError("the trees of the saved IsolationForest lead nowhere; the model is damaged, fit it again")

    def _anomaly_score(self, X: np.ndarray) -> np.ndarray:
        X = X.astype(np.float32)  # scikit-learn's trees are grown, and so must be read, in float32
        rows = np.arange(len(X))
        depth = np.zeros(len(X))
        for root in self.roots_:
            node = np.full(len(X), root)
            while True:
                goes_left = X[rows, self.feature_[node]] <= self.threshold_[node]
                child = np.where(goes_left, self.left_[node], self.right_[node])
                if np.array_equal(child, node):
                    break
                node = child
            depth += self.path_[node]
        return 2 ** (-depth / (len(self.roots_) * max(self.norm_, 1e-12)))


def _depths(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Depth of each node of one tree, whose nodes stand after their parents."""
    depth = np.zeros(len(left))
    for node, (a, b) in enumerate(zip(left, right, strict=True)):
        if a != node:
            depth[a] = depth[b] = depth[node] + 1
    return depth


def _mean_search_depth(m: np.ndarray) -> np.ndarray:
    """c(m), with H(i) = ln(i) + Euler's constant as in the paper; c(2) = 1, c(1) = 0."""
    m = m.astype(np.float64)
    several = np.maximum(m, 3)
    c = 2 * (np.log(several - 1) + np.euler_gamma) - 2 * (several - 1) / several
    return np.select([m <= 1, m == 2], [0.0, 1.0], c)
