"""What all networks around a centre share: the score is the distance to it (AI-SVDD, Deep SVDD, Deep SAD, ...).

    T(x) = |phi(x; W) - c| / scale,  scale = root mean square of |phi(x; W) - c| over the presumed normal training rows

A method trains W, chooses c, and calls `_settle`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from strays.detectors import network
from strays.detectors.array_spec import ArraySpec
from strays.detectors.base import Detector


class SphereDetector(Detector):
    """Base of the detectors that score a row by the distance of its latent to a centre."""

    _state: ClassVar = {
        "weights_": [ArraySpec(("hidden", "d")), ArraySpec(("latent", "hidden"))],
        "center_": ArraySpec(("latent",)),
        "scale_": ArraySpec(low=1e-30),
    }
    # Each starts somewhere else, and sets its scale on rows that it has seen.
    comparable_fits: ClassVar = False

    activation: str
    weights_: list[np.ndarray]
    center_: np.ndarray
    scale_: float

    def _settle(self, z: np.ndarray, y: np.ndarray, before: float) -> np.ndarray:
        """Set the scale from the training rows' latents z, and return their scores.

        Refuses a network that collapsed: `before` is the spread it started with.
        """
        distance = self._distance(z)
        network.refuse_collapse(distance[y >= 0], before, type(self).__name__)
        self.scale_ = float(np.sqrt(np.mean(distance[y >= 0] ** 2)))
        return distance / self.scale_

    def _latents(self, X: np.ndarray) -> np.ndarray:
        return network.latents(X, self.weights_, self.activation)

    def _distance(self, z: np.ndarray) -> np.ndarray:
        return np.sqrt(network.squared_distance(z, self.center_))

    def _anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return self._distance(self._latents(X)) / self.scale_
