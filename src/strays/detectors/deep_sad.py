"""Deep SAD: deep SVDD that also pushes the known anomalies away from its centre.

    a(d^2) = d^2,  b(d^2) = 1 / d^2        (a, b and T(x) as in semi_supervised.py)

Unlike AI-SVDD's, the push on an anomaly fades as it gets away, so that many kinds find room around the sphere.

Ruff et al., "Deep Semi-Supervised Anomaly Detection", 2020.
"""

from __future__ import annotations

import numpy as np

from strays.detectors.semi_supervised import SemiSupervisedSphere


class DeepSAD(SemiSupervisedSphere):
    """Deep semi-supervised anomaly detection; see the module for the losses.

    Parameters and attributes are those of SemiSupervisedSphere.

    >>> import numpy as np
    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), [-1] * 5 + [0] * 55
    >>> X[:5] += 4
    >>> DeepSAD(hidden_size=8, latent_size=2, random_state=0).fit(X, y).predict([[0] * 4, [4] * 4])
    array([ 1, -1])
    """

    def _normal_loss(self, d2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return d2, np.ones_like(d2)

    def _anomaly_loss(self, d2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b = 1 / (d2 + 1e-3)
        return b, -(b**2)
