"""What Deep SAD and the hypersphere classifier share: a fixed centre, and one loss for normals, one for anomalies.

    min over W of  1/n sum over normals a(d^2)  +  weight/m sum over anomalies b(d^2),   d = |phi(x; W) - c| / unit
    T(x) as in sphere.py

The centre c is the mean of what the untrained network makes of the normal rows, and unit their root mean square
distance to it. A method says what a and b are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from strays.detectors import network
from strays.detectors.base import generator
from strays.detectors.limits import COUNT, POSITIVE
from strays.detectors.sphere import SphereDetector


@dataclass(eq=False, repr=False)
class SemiSupervisedSphere(SphereDetector):
    """Base of the methods that draw normal rows to a fixed centre and push known anomalies away from it.

    Parameters and attributes are those of SphereDetector, and

    anomaly_weight
        Weight of all known anomalies together, as a share of the weight of all other rows.
    """

    hidden_size: int = 512
    latent_size: int = 64
    activation: str = "leaky_relu"
    anomaly_weight: float = 1.0
    learning_rate: float = 1e-4
    epochs: int = 5
    min_steps: int = 400
    batch_size: int = 128
    flag_rate: float = 0.05
    random_state: int | None = None

    _parameter_constraints: ClassVar = {
        **SphereDetector._parameter_constraints,
        "anomaly_weight": [POSITIVE],
        "min_steps": [COUNT],
    }

    @abstractmethod
    def _losses(self, d2: Any) -> tuple[Any, Any]:
        """What a row at squared distance d2 (in units) costs if it is normal, and if it is an anomaly."""

    def _fit(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        import torch

        rng = generator(self.random_state)
        start = network.initial_weights([X.shape[1], self.hidden_size, self.latent_size], rng)
        self.center_ = network.latents(X[y >= 0], network.exact_layers(start), self.activation).mean(axis=0)
        unit = network.spread(X[y >= 0], start, self.activation)
        W = network.tensors(start, autograd=True)
        rows = torch.from_numpy(np.ascontiguousarray(X, dtype=np.float32))
        is_anomaly = torch.from_numpy(y < 0)
        c = torch.from_numpy(self.center_.astype(np.float32))

        def loss_of(batch: torch.Tensor) -> torch.Tensor:
            d2 = network.squared_distance(network.phi(rows[batch], W, self.activation), c) / unit**2
            anomaly = is_anomaly[batch]
            normal_loss, anomaly_loss = self._losses(d2)
            loss = normal_loss[~anomaly].mean()
            return loss + self.anomaly_weight * anomaly_loss[anomaly].mean() if anomaly.any() else loss

        def batches() -> Iterator[np.ndarray]:
            return network.stratified_batches(y, self.batch_size, rng, reuse=True)

        min_steps = self.min_steps if (y < 0).any() else 0
        self.loss_ = network.minimise(loss_of, W, batches, self.learning_rate, self.epochs, min_steps)
        self.weights_ = network.arrays(W)
        return self._settle(X, y, unit)
