"""What all networks around a centre share: the score is the distance to it (AI-SVDD, Deep SVDD, Deep SAD, ...).

    T(x) = |phi(x; W) - c| / scale,  scale = root mean square of |phi(x; W) - c| over the presumed normal training rows

A method trains W, chooses c, and calls `_settle`.
"""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from strays.detectors import network
from strays.detectors.array_spec import ArraySpec
from strays.detectors.base import Detector
from strays.detectors.exact import Prepared, lengths
from strays.detectors.limits import COUNT, POSITIVE, RANDOM_STATE, Interval, StrOptions
from strays.detectors.threads import one_thread
from strays.errors import CollapseError, UsageError


class SphereDetector(Detector):
    """Base of the detectors that score a row by the distance of its latent to a centre.

    Parameters
    ----------
    hidden_size, latent_size
        Units of the hidden layer and of the output.
    activation
        'relu', 'leaky_relu' or 'linear', after the hidden layer.
    learning_rate, epochs, batch_size
        Of the optimiser: Adam, unless a detector lets you choose.
    min_steps
        Where anomalies are known, go on for further epochs until so many batches were seen; a small corpus would hardly
        train otherwise. Without anomalies it would only learn its own rows by heart.
    flag_rate
        Share of presumed normal training rows that `predict` flags.
    random_state
        Seed of the initial weights and the batches.

    Attributes
    ----------
    weights_
        The layers W^1, W^2 of shape (outputs, inputs).
    center_
        c, shape (latent_size,).
    scale_
        Root mean square distance of the presumed normal training rows to c; scores are in this unit.
    loss_
        Mean loss of each epoch.
    """

    _parameter_constraints: ClassVar = {
        **Detector._parameter_constraints,
        "hidden_size": [COUNT],
        "latent_size": [COUNT],
        "activation": [StrOptions(set(network.ACTIVATIONS))],
        "learning_rate": [POSITIVE],
        "epochs": [COUNT],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "random_state": [RANDOM_STATE],
    }
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

    def _fit(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        with one_thread():  # training shares its work out by itself, always in the same pieces
            return self._train(X, y)

    @abstractmethod
    def _train(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Set weights_ and center_, and return what `_settle` does."""

    def _settle(self, z: np.ndarray, y: np.ndarray, before: float) -> np.ndarray:
        """Set the scale from the latents of the training rows, and return their scores.

        Raises CollapseError unless their distances to the centre are finite, of some size, and not all alike. `before`
        is their spread before training: a healthy network shrinks it, a dead one loses it.
        """
        distance = lengths(z - self.center_)
        normals = distance[y >= 0]
        rms = float(np.sqrt(np.mean(normals**2)))
        if not (np.isfinite(rms) and rms > 1e-3 * before and np.ptp(normals) > 1e-9 * rms):
            raise CollapseError(
                f"{type(self).__name__} collapsed: its network maps the training rows to nearly one point (root mean "
                f"square distance to the centre {rms:.1e}, before training {before:.1e}), so its scores would mean "
                "nothing. Lower {learning_rate} or {epochs}, use {activation}='leaky_relu', or give it known anomalies "
                "to learn from.",
                param=("learning_rate", "epochs", "activation"),
            )
        self.scale_ = rms
        return distance / rms

    def _anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return lengths(self._latents(X) - self.center_) / self.scale_

    def _latents(self, X: np.ndarray) -> np.ndarray:
        return network.latents(X, _LAYERS.of(self), self.activation)


_LAYERS = Prepared(lambda detector: network.exact_layers(detector.weights_), "weights_")


def paper_settings(sizes: dict[str, tuple[int, int, int]], study: str) -> dict[str, Any]:
    """The settings that the networks of the paper share, with the sizes chosen for one of its experiments."""
    if study not in sizes:
        raise UsageError(f"{{study}} is {study!r}; must be one of {', '.join(sizes)}", param="study")
    chosen = dict(zip(("hidden_size", "latent_size", "batch_size"), sizes[study], strict=True))
    return chosen | {"activation": "relu", "learning_rate": 1e-3, "epochs": 3}
