"""AI-SVDD: a sphere around the normal rows, pushed away from the anomalies that are known.

    min over W of  1/n sum_i y_i |phi(x_i; W) - c*|^2,   c* = sum_i y_i phi(x_i; W) / sum_i y_i      (Eq. 5, 6)
    such that every layer has |W^l|_F = 1, by projected gradient:
        W^l <- W^l - gamma dL/dW^l,   W^l <- W^l / |W^l|_F                                            (Eq. 7, 8)
    T(x) = |phi(x; W) - c*|, with c* over the whole training set

y_i is +1 for a normal row and -1 for an anomaly; the sum is the paper's BC-Loss, whose pairwise form
1/(2 n sum y) sum_ij y_i y_j |phi_i - phi_j|^2 it equals at a fraction of the cost. Without anomalies it is Eq. 4, the
one-class objective with a joint centre.

You, Zhou, Yang and Fan, "Anomaly-Injected Deep Support Vector Data Description for Text Outlier Detection", 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Self

import numpy as np

from strays.detectors import network
from strays.detectors.base import generator
from strays.detectors.limits import COUNT, Interval, StrOptions
from strays.detectors.sphere import SphereDetector, paper_settings
from strays.detectors.training import TrainableNetwork, minimise
from strays.errors import DataError

# Appendix, "Parameter tuning": hidden size, latent size and batch size chosen for each experiment.
PAPER_SIZES = {
    "5.1": (2048, 256, 128),
    "5.2-ag": (1024, 128, 256),
    "5.2-yelp": (512, 64, 64),
    "5.2-rct": (512, 256, 128),
    "5.3": (2048, 64, 64),
}
# From latents, signed weights and the unit of distances: the loss and its gradient by the latents.
Gradient = Callable[[np.ndarray, np.ndarray, float], tuple[float, np.ndarray]]


def bc_loss(z: np.ndarray, y: np.ndarray) -> float:
    """BC-Loss of latents z (n, latent_size) under signed weights y (n,), in its O(n d) centre form."""
    return float((y * network.squared_distance(z, network.weighted_center(z, y))).sum() / len(y))


def bc_gradient(z: np.ndarray, y: np.ndarray, unit: float) -> tuple[float, np.ndarray]:
    """BC-Loss of z / unit, and its gradient by z: c* needs none of its own, since the loss is least there."""
    away = z - network.weighted_center(z, y)
    gradient = (2 / (len(y) * unit**2) * y)[:, None] * away
    return float(np.vdot(gradient, away)) / 2, gradient


@dataclass(eq=False, repr=False)
class AISVDD(SphereDetector):
    """Anomaly-injected deep support vector data description; see the module for the formula.

    Parameters and attributes are those of SphereDetector, and

    anomaly_weight
        Weight of all known anomalies together, as a share of the weight of all other rows, in every batch and in the
        centre; below 1. None gives every row the weight 1, as the paper does, and then needs more normals than
        anomalies.
    optimizer
        'adam', or 'sgd' for the plain gradient step of Eq. 7.
    weights_
        Each layer has Frobenius norm 1. Such layers make the distances arbitrarily small, hence the scale.
    loss_
        Mean BC-Loss of each epoch; with Adam in units of the normals' mean squared distance to their mean at the start.

    >>> X, y = np.random.default_rng(0).normal(size=(60, 4)), [-1] * 5 + [0] * 55
    >>> X[:5] += 4
    >>> detector = AISVDD(hidden_size=8, latent_size=2, min_steps=10, random_state=0).fit(X, y)
    >>> near, far = detector.anomaly_score([[0] * 4, [4] * 4])
    >>> bool(far > near)
    True
    >>> [round(float(np.linalg.norm(w)), 6) for w in detector.weights_]
    [1.0, 1.0]
    """

    hidden_size: int = 1024
    latent_size: int = 32
    activation: str = "leaky_relu"
    anomaly_weight: float | None = 0.25
    learning_rate: float = 1e-5
    epochs: int = 5
    min_steps: int = 200
    batch_size: int = 128
    optimizer: str = "adam"
    flag_rate: float = 0.05
    random_state: int | None = None

    _parameter_constraints: ClassVar = {
        **SphereDetector._parameter_constraints,
        "anomaly_weight": [Interval(Real, 0, 1, closed="neither"), None],
        "min_steps": [COUNT],
        "optimizer": [StrOptions({"adam", "sgd"})],
    }

    @classmethod
    def from_paper(cls, study: str = "5.1", random_state: int | None = None) -> Self:
        """The paper's settings for one of its experiments: '5.1', '5.2-ag', '5.2-yelp', '5.2-rct' or '5.3'.

        The paper names no optimiser. Adam is used, since with the plain gradient step of Eq. 7 (optimizer='sgd') its
        learning rate and three epochs hardly move the weights.
        """
        settings = paper_settings(PAPER_SIZES, study)
        return cls(**settings, anomaly_weight=None, min_steps=1, random_state=random_state)

    def _train(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        rng = generator(self.random_state)
        sign = self._signed_weights(y)
        start = [w / np.linalg.norm(w) for w in self._start(X, rng)]
        # A product of unit-norm layers makes latents of about 1e-3 and gradients far below Adam's epsilon, which would
        # then stop all learning. Measuring the loss in units of its first value changes no minimum. The plain
        # gradient step of Eq. 7 keeps the loss as it is printed.
        before = network.spread(X[y >= 0], start, self.activation)
        unit = before if self.optimizer == "adam" else 1.0
        net = TrainableNetwork(start, network.ACTIVATIONS[self.activation])
        rows = np.ascontiguousarray(X, np.float32)
        gradient = self._gradient(net, rows, sign)

        def loss_of(z: np.ndarray, batch: np.ndarray) -> tuple[float, np.ndarray]:
            return gradient(z, self._signed_weights(y[batch]), unit)

        def batches() -> Iterator[np.ndarray]:
            return self._batches(y, rng)

        min_steps = self.min_steps if (y < 0).any() else 0
        self.loss_ = minimise(
            net,
            rows,
            loss_of,
            batches,
            self.learning_rate,
            self.epochs,
            min_steps,
            optimizer=self.optimizer,
            unit_norm=True,
        )
        # float32 steps leave norms within 1e-7 of 1; scoring is in float64, so finish there.
        self.weights_ = [w / np.linalg.norm(w) for w in net.trained()]
        z = self._latents(X)
        self.center_ = network.weighted_center(z, sign.astype(np.float64))
        return self._settle(z, y, before)

    # What the paper leaves open, each in one place: its studies say what the other choice gives.

    def _start(self, X: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """Layers before the first step, of any norm."""
        return network.initial_weights([X.shape[1], self.hidden_size, self.latent_size], rng)

    def _batches(self, y: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """One pass over the rows."""
        return network.stratified_batches(y, self.batch_size, rng, reuse=self.anomaly_weight is not None)

    def _gradient(self, net: TrainableNetwork, rows: np.ndarray, sign: np.ndarray) -> Gradient:
        """How the loss of a batch is taken: around the batch's own c*."""
        return bc_gradient

    def _signed_weights(self, y: np.ndarray) -> np.ndarray:
        """The y_i of the formula: +1 for presumed normals, minus their share of the anomaly weight for anomalies."""
        n_anomalies = int((y < 0).sum())
        n_normals = len(y) - n_anomalies
        if self.anomaly_weight is None:
            if n_anomalies >= n_normals:
                raise DataError(
                    f"{n_anomalies} anomalies against {n_normals} normal or unlabelled rows: with "
                    "{anomaly_weight}=None AI-SVDD needs more normals than anomalies; set it to 0.25 or add normals",
                    param="anomaly_weight",
                )
            each = 1.0
        else:
            each = self.anomaly_weight * n_normals / max(n_anomalies, 1)
        return np.where(y < 0, -each, 1.0).astype(np.float32)
