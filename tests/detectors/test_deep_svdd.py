from __future__ import annotations

import numpy as np
import pytest

from strays.detectors import DeepSVDD, network
from strays.detectors.deep_svdd import mean_square
from strays.errors import CollapseError, UsageError

SMALL = {"hidden_size": 64, "latent_size": 8, "random_state": 0}


def test_loss_by_hand() -> None:
    z, c = np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([1.0, 1.0])
    loss, gradient = mean_square(z - c, len(z))
    assert loss == pytest.approx(3)  # squared distances 1 and 5; the weights' penalty is tested in test_training.py
    assert gradient.tolist() == [[0, -1], [-1, 2]]


def test_pretraining_learns_to_reproduce_the_rows(blobs) -> None:
    errors = DeepSVDD(**SMALL, pretrain_epochs=30).fit(blobs[0]).reconstruction_
    assert errors[-1] < 0.8 * errors[0]


def test_the_centre_is_fixed_by_pretraining(blobs) -> None:
    """Training more epochs moves the weights, never the centre, which one epoch of it already has."""
    X = blobs[0]
    few, many = (DeepSVDD(**SMALL, epochs=n).fit(X) for n in (1, 20))
    assert np.array_equal(few.center_, many.center_)
    assert not np.array_equal(few.weights_[0], many.weights_[0])
    assert many.loss_[-1] < many.loss_[0]


def test_weight_decay_shrinks_the_weights(blobs) -> None:
    def size(decay: float) -> float:
        return sum(np.sum(w**2) for w in DeepSVDD(**SMALL, weight_decay=decay, epochs=20).fit(blobs[0]).weights_)

    assert size(1.0) < 0.9 * size(0.0)


def test_the_score_is_the_distance_in_units_of_the_training_rows(blobs) -> None:
    X, _, X_test, _ = blobs
    model = DeepSVDD(**SMALL).fit(X)
    distance = np.linalg.norm(network.phi(X_test, model.weights_, "leaky_relu") - model.center_, axis=1)
    np.testing.assert_allclose(model.anomaly_score(X_test), distance / model.scale_, rtol=1e-9)
    assert np.sqrt(np.mean(model.anomaly_score(X) ** 2)) == pytest.approx(1)


def test_a_collapsed_network_is_said(blobs) -> None:
    """A huge penalty drives all weights to zero, and every row to one point."""
    with pytest.raises(CollapseError, match="DeepSVDD collapsed"):
        DeepSVDD(**SMALL, weight_decay=1e4, learning_rate=0.01, epochs=200).fit(blobs[0])


def test_the_papers_settings() -> None:
    model = DeepSVDD.from_paper("5.1")
    assert (model.hidden_size, model.latent_size, model.batch_size, model.weight_decay) == (256, 128, 64, 1e-4)
    with pytest.raises(UsageError, match=r"5\.1, 5\.2-ag"):
        DeepSVDD.from_paper("6")
