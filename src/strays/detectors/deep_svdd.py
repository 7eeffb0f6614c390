"""Deep SVDD (the paper's deep OC-SVDD): a network that draws all rows towards a fixed centre.

    min over W of  1/n sum_i |phi(x_i; W) - c|^2 + lambda/2 sum_l |W^l|_F^2                            (Eq. 1)
    T(x) = |phi(x; W) - c|

The centre comes from a pretraining stage: an auto-encoder learns to reproduce the rows (mean squared error), its
encoder becomes the starting point of phi, and c is the mean of what it makes of the training rows.

Ruff et al., "Deep One-Class Classification", 2018, in the pipeline of the AI-SVDD paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from strays.detectors import network
from strays.detectors.base import generator
from strays.detectors.limits import COUNT, NOT_NEGATIVE
from strays.detectors.sphere import SphereDetector, paper_settings
from strays.detectors.training import TrainableNetwork, minimise

# Appendix, "Parameter tuning": hidden size, latent size and batch size chosen for each experiment; lambda is 1e-4.
PAPER_SIZES = {
    "5.1": (256, 128, 64),
    "5.2-ag": (512, 64, 256),
    "5.2-yelp": (512, 64, 32),
    "5.2-rct": (512, 64, 32),
    "5.3": (512, 128, 64),
}


def mean_square(away: np.ndarray, n: int) -> tuple[float, np.ndarray]:
    """1/n of the sum of squares of z - target, whatever the target, and its gradient by z."""
    return float(np.vdot(away, away)) / n, 2 / n * away


@dataclass(eq=False, repr=False)
class DeepSVDD(SphereDetector):
    """Deep one-class support vector data description; see the module for the formula.

    A one-class method: known anomalies (-1) are left out of the fit and teach it nothing.

    Parameters and attributes are those of SphereDetector, without min_steps, and

    weight_decay
        lambda.
    pretrain_epochs
        Epochs of the auto-encoder.
    reconstruction_
        Mean squared error of each epoch of pretraining.

    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), [-1] * 5 + [0] * 55
    >>> X[:5] += 4
    >>> detector = DeepSVDD(hidden_size=8, latent_size=2, random_state=0).fit(X, y)
    >>> near, far = detector.anomaly_score([[0] * 4, [4] * 4])
    >>> bool(far > near)
    True
    """

    hidden_size: int = 512
    latent_size: int = 64
    activation: str = "leaky_relu"
    weight_decay: float = 1e-4
    learning_rate: float = 1e-3
    epochs: int = 3
    batch_size: int = 128
    pretrain_epochs: int = 10
    flag_rate: float = 0.05
    random_state: int | None = None

    _parameter_constraints: ClassVar = {
        **SphereDetector._parameter_constraints,
        "weight_decay": [NOT_NEGATIVE],
        "batch_size": [COUNT],
        "pretrain_epochs": [COUNT],
    }

    @classmethod
    def from_paper(cls, study: str = "5.1", random_state: int | None = None) -> Self:
        """The paper's settings for one of its experiments: '5.1', '5.2-ag', '5.2-yelp', '5.2-rct' or '5.3'."""
        return cls(**paper_settings(PAPER_SIZES, study), pretrain_epochs=3, random_state=random_state)

    def _train(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        rng = generator(self.random_state)
        seen = X[y >= 0]
        rows = np.ascontiguousarray(seen, np.float32)
        net = TrainableNetwork(self.pretrain(rows, rng), network.ACTIVATIONS[self.activation])
        c = self._choose_center(network.phi(rows, net.weights, self.activation), rng).astype(np.float32)
        before = network.spread(seen, net.trained(), self.activation)

        def distance(z: np.ndarray, batch: np.ndarray) -> tuple[float, np.ndarray]:
            return mean_square(z - c, len(z))

        self.loss_ = minimise(
            net,
            rows,
            distance,
            lambda: self._batches(rows, rng),
            self.learning_rate,
            self.epochs,
            weight_decay=self.weight_decay,
        )
        self.weights_ = net.trained()
        self.center_ = c.astype(np.float64)
        return self._settle(self._latents(X), y, before)

    def pretrain(self, rows: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """The layers of an encoder that an auto-encoder learnt from float32 rows."""
        sizes = [rows.shape[1], self.hidden_size, self.latent_size]
        encoder, decoder = self._start(sizes, rng), self._start(sizes[::-1], rng)
        both = TrainableNetwork(encoder + decoder, network.ACTIVATIONS[self.activation])

        def reconstruction_error(made: np.ndarray, batch: np.ndarray) -> tuple[float, np.ndarray]:
            return mean_square(made - rows[batch], made.size)

        self.reconstruction_ = minimise(
            both,
            rows,
            reconstruction_error,
            lambda: self._batches(rows, rng),
            self.learning_rate,
            self.pretrain_epochs,
        )
        return both.weights[: len(encoder)]

    def _batches(self, rows: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
        return network.stratified_batches(np.zeros(len(rows)), self.batch_size, rng, reuse=True)

    # What the paper leaves open, each in one place: its studies say what the other choice gives.

    def _start(self, sizes: list[int], rng: np.random.Generator) -> list[np.ndarray]:
        """Layers before the first step of pretraining."""
        return network.initial_weights(sizes, rng)

    def _choose_center(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The fixed centre, from the latents of the training rows after pretraining."""
        return np.asarray(z.mean(axis=0, dtype=np.float64))
