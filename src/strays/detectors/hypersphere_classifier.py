"""Hypersphere classifier: cross-entropy on the distance to a centre.

    h = sqrt(d^2 + 1) - 1,  p(normal) = exp(-h);  a(d^2) = -log p = h,  b(d^2) = -log(1 - p)  (as in semi_supervised.py)

Near the centre h is like d^2, far away like d: a stray among the normals pulls less than in deep SVDD. T(x) is the
distance to the centre, which ranks rows as p does.

Ruff et al., "Rethinking Assumptions in Deep Anomaly Detection", 2020; Liznerski et al., "Explainable Deep One-Class
Classification", 2021.
"""

from __future__ import annotations

import numpy as np

from strays.detectors.semi_supervised import SemiSupervisedSphere


class HypersphereClassifier(SemiSupervisedSphere):
    """Hypersphere classifier; see the module for the losses.

    Parameters and attributes are those of SemiSupervisedSphere.

    >>> import numpy as np
    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), [-1] * 5 + [0] * 55
    >>> X[:5] += 4
    >>> HypersphereClassifier(hidden_size=8, latent_size=2, random_state=0).fit(X, y).predict([[0] * 4, [4] * 4])
    array([ 1, -1])
    """

    def _normal_loss(self, d2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        root = np.sqrt(d2 + 1)
        return root - 1, 0.5 / root

    def _anomaly_loss(self, d2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        h, slope_of_h = self._normal_loss(d2)
        not_normal = 1e-6 - np.expm1(-h)  # 1 - p, and a little, as it is zero at the centre
        return -np.log(not_normal), -np.exp(-h) / not_normal * slope_of_h
