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
from typing import ClassVar

import numpy as np

from strays.detectors import network
from strays.detectors.base import generator
from strays.detectors.limits import COUNT, POSITIVE
from strays.detectors.sphere import SphereDetector
from strays.detectors.training import TrainableNetwork, minimise


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
    def _normal_loss(self, d2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What a normal row at squared distance d2 (in units) costs, a(d2), and the slope a'(d2)."""

    @abstractmethod
    def _anomaly_loss(self, d2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What an anomaly there costs, b(d2), and the slope b'(d2)."""

    def _loss(self, away: np.ndarray, is_anomaly: np.ndarray, unit: float) -> tuple[float, np.ndarray]:
        """The loss of a batch, and its gradient by the latents, from away = z - c."""
        d2 = np.square(away).sum(axis=1) / unit**2
        slope = np.empty_like(d2)
        loss = 0.0
        for rows, loss_at, weight in (
            (~is_anomaly, self._normal_loss, 1.0),
            (is_anomaly, self._anomaly_loss, self.anomaly_weight),
        ):
            if rows.any():
                cost, slope[rows] = loss_at(d2[rows])
                loss += weight * float(cost.mean())
                slope[rows] *= weight / len(cost)
        return loss, (2 / unit**2 * slope)[:, None] * away

    def _train(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        rng = generator(self.random_state)
        start = network.initial_weights([X.shape[1], self.hidden_size, self.latent_size], rng)
        self.center_ = network.latents(X[y >= 0], network.exact_layers(start), self.activation).mean(axis=0)
        unit = network.spread(X[y >= 0], start, self.activation)
        net = TrainableNetwork(start, network.ACTIVATIONS[self.activation])
        rows, is_anomaly, c = np.ascontiguousarray(X, np.float32), y < 0, self.center_.astype(np.float32)

        def loss_of(z: np.ndarray, batch: np.ndarray) -> tuple[float, np.ndarray]:
            return self._loss(z - c, is_anomaly[batch], unit)

        def batches() -> Iterator[np.ndarray]:
            return network.stratified_batches(y, self.batch_size, rng, reuse=True)

        min_steps = self.min_steps if is_anomaly.any() else 0
        self.loss_ = minimise(net, rows, loss_of, batches, self.learning_rate, self.epochs, min_steps)
        self.weights_ = net.trained()
        return self._settle(self._latents(X), y, unit)
