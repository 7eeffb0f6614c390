from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strays.detectors import AISVDD, network
from strays.detectors.ai_svdd import PAPER_SIZES, bc_loss
from strays.detectors.network import stratified_batches
from strays.errors import CollapseError, DataError, UsageError
from strays.jobs.metrics import auc

SMALL = {"hidden_size": 64, "latent_size": 8, "random_state": 0}


def pairwise_bc_loss(z: np.ndarray, y: np.ndarray) -> float:
    """Eq. 6 to the letter: 1/(2 n sum y) sum_ij y_i y_j |z_i - z_j|^2."""
    total = sum(y[i] * y[j] * np.sum((z[i] - z[j]) ** 2) for i in range(len(z)) for j in range(len(z)))
    return total / (2 * len(z) * y.sum())


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_normal=st.integers(2, 20),
    n_anomaly=st.integers(0, 10),
    d=st.integers(1, 6),
    weight=st.floats(0.05, 0.9),
)
def test_centre_form_equals_pairwise_form(seed: int, n_normal: int, n_anomaly: int, d: int, weight: float) -> None:
    rng = np.random.default_rng(seed)
    y = np.r_[np.ones(n_normal), np.full(n_anomaly, -weight * n_normal / max(n_anomaly, 1))]
    z = rng.normal(size=(len(y), d)) + rng.normal(size=d)
    expected = pairwise_bc_loss(z, y)
    scale = np.mean(np.abs(y) * (z**2).sum(1))
    assert bc_loss(z, y) == pytest.approx(expected, rel=1e-5, abs=1e-10 * scale / (1 - weight))


def test_centre_by_hand() -> None:
    z = np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 4.0]])
    y = np.array([1.0, 1.0, -1.0])
    # (0 + 2 - 4, 0 + 0 - 4) / (1 + 1 - 1)
    assert network.weighted_center(z, y).tolist() == [-2.0, -4.0]
    # (4+16) + (16+16) - (36+64), over n = 3
    assert bc_loss(z, y) == pytest.approx((20 + 32 - 100) / 3)


def test_small_corpora_train_for_a_minimum_of_steps(blobs) -> None:
    X = blobs[0]  # 440 rows: 4 batches
    y = blobs[1]
    assert len(AISVDD(**SMALL, epochs=3).fit(X, y).loss_) == 50
    assert len(AISVDD(**SMALL, epochs=3, min_steps=1).fit(X, y).loss_) == 3
    assert len(AISVDD(**SMALL, epochs=60).fit(X, y).loss_) == 60
    assert len(AISVDD(**SMALL, epochs=3).fit(X).loss_) == 3  # without anomalies it would learn its rows by heart


def test_every_layer_has_norm_one(blobs) -> None:
    X, y, *_ = blobs
    for params in ({}, {"anomaly_weight": None}, {"optimizer": "sgd"}, {"activation": "linear"}):
        for weights in AISVDD(**SMALL, **params).fit(X, y).weights_:
            assert np.linalg.norm(weights) == pytest.approx(1, abs=1e-9)


def test_the_centre_is_label_weighted_over_the_whole_training_set(blobs) -> None:
    X, y, *_ = blobs
    model = AISVDD(**SMALL, anomaly_weight=None).fit(X, y)
    z = network.phi(X, model.weights_, "leaky_relu")
    np.testing.assert_allclose(model.center_, (y[:, None] * z).sum(0) / y.sum(), rtol=1e-6)
    reweighted = AISVDD(**SMALL, anomaly_weight=0.5).fit(X, y)
    z = network.phi(X, reweighted.weights_, "leaky_relu")
    center = (z[y > 0].mean(0) - 0.5 * z[y < 0].mean(0)) / 0.5
    np.testing.assert_allclose(reweighted.center_, center, rtol=1e-5)


def test_the_score_is_the_distance_in_units_of_the_normals(blobs) -> None:
    X, y, X_test, _ = blobs
    model = AISVDD(**SMALL).fit(X, y)
    distance = np.linalg.norm(network.phi(X_test, model.weights_, "leaky_relu") - model.center_, axis=1)
    np.testing.assert_allclose(model.anomaly_score(X_test), distance / model.scale_, rtol=1e-9)
    assert np.sqrt(np.mean(model.anomaly_score(X[y > 0]) ** 2)) == pytest.approx(1)


def test_no_labels_is_equation_4(blobs) -> None:
    X = blobs[0]
    model = AISVDD(**SMALL).fit(X)
    z = network.phi(X, model.weights_, "leaky_relu")
    np.testing.assert_allclose(model.center_, z.mean(0), rtol=1e-6)
    assert np.array_equal(model.anomaly_score(X), AISVDD(**SMALL).fit(X, np.ones(len(X))).anomaly_score(X))


def test_training_lowers_the_loss(blobs) -> None:
    X, y, *_ = blobs
    loss = AISVDD(**SMALL, epochs=30, learning_rate=1e-3).fit(X, y).loss_
    assert loss[-1] < loss[0] - 0.1 * abs(loss[0])
    by_default = AISVDD(random_state=0).fit(X, y)
    assert by_default.loss_[-1] < by_default.loss_[0]
    start = network.initial_weights([24, 1024, 32], np.random.default_rng(0))[0]
    moved = np.linalg.norm(by_default.weights_[0] - start / np.linalg.norm(start))
    assert moved > 0.1  # of norm 1: Adam's epsilon once stopped all learning unnoticed


def test_labels_help_and_shuffled_labels_hurt(blobs) -> None:
    X, y, X_test, y_test = blobs
    shuffled = np.random.default_rng(0).permutation(y)
    settings = {**SMALL, "epochs": 30, "learning_rate": 1e-3}
    learned = auc(y_test, AISVDD(**settings).fit(X, y).anomaly_score(X_test))
    blind = auc(y_test, AISVDD(**settings).fit(X[y > 0]).anomaly_score(X_test))
    misled = auc(y_test, AISVDD(**settings).fit(X, shuffled).anomaly_score(X_test))
    assert learned > 0.9
    assert learned > blind + 0.05
    assert learned > misled + 0.1


@given(
    n_normal=st.integers(1, 200),
    n_anomaly=st.integers(0, 200),
    batch_size=st.integers(1, 64),
    seed=st.integers(0, 1000),
    reuse=st.booleans(),
)
@settings(deadline=None)
def test_batches_hold_every_row_and_a_positive_mass(
    n_normal: int, n_anomaly: int, batch_size: int, seed: int, reuse: bool
) -> None:
    y = np.r_[np.ones(n_normal), -np.ones(n_anomaly)]
    batches = list(stratified_batches(y, batch_size, np.random.default_rng(seed), reuse=reuse))
    rows = np.concatenate(batches)
    assert set(rows.tolist()) == set(range(len(y)))
    assert np.bincount(rows, minlength=len(y))[:n_normal].max() == 1
    for batch in batches:
        normals, anomalies = (y[batch] > 0).sum(), (y[batch] < 0).sum()
        assert normals >= 1
        if reuse or n_anomaly == 0:
            assert len(batch) <= batch_size + 1 + n_anomaly * (n_anomaly > n_normal)
        assert anomalies >= 1 or not reuse or n_anomaly == 0
        if n_normal > n_anomaly and not reuse:
            assert normals > anomalies


def test_anomalies_that_outweigh_normals_are_reweighted_or_refused(blobs) -> None:
    X, y, X_test, y_test = blobs
    few = np.r_[np.flatnonzero(y > 0)[:30], np.flatnonzero(y < 0)]  # 30 normals against 40 anomalies
    model = AISVDD(**SMALL).fit(X[few], y[few])
    assert auc(y_test, model.anomaly_score(X_test)) > 0.55
    with pytest.raises(DataError, match="40 anomalies against 30 normal"):
        AISVDD(**SMALL, anomaly_weight=None).fit(X[few], y[few])


def test_a_collapsed_network_is_said(blobs) -> None:
    """All-negative hidden inputs kill every ReLU: what the network gives is one point."""
    X = np.abs(blobs[0])
    model = AISVDD(**SMALL, activation="relu", learning_rate=0.05, epochs=200)
    with pytest.raises(CollapseError, match=r"collapsed.*leaky_relu"):
        model.fit(X)
    assert not hasattr(model, "offset_")


def test_a_few_anomalies_are_enough(blobs) -> None:
    X, y, X_test, _ = blobs
    one = np.where(np.arange(len(y)) == np.flatnonzero(y < 0)[0], -1, 0)
    assert np.isfinite(AISVDD(**SMALL).fit(X, one).anomaly_score(X_test)).all()


def test_the_papers_settings() -> None:
    model = AISVDD.from_paper("5.2-ag", random_state=3)
    assert (model.hidden_size, model.latent_size, model.batch_size) == (1024, 128, 256)
    assert (model.learning_rate, model.epochs, model.anomaly_weight, model.activation) == (1e-3, 3, None, "relu")
    assert model.random_state == 3
    assert list(PAPER_SIZES) == ["5.1", "5.2-ag", "5.2-yelp", "5.2-rct", "5.3"]
    with pytest.raises(UsageError, match=r"5\.1, 5\.2-ag"):
        AISVDD.from_paper("6")


def test_the_papers_learning_rate_needs_adam_to_move_the_weights(blobs) -> None:
    X, y, *_ = blobs
    X = X / np.linalg.norm(X, axis=1, keepdims=True)

    def moved(optimizer: str) -> float:
        model = AISVDD.from_paper("5.2-rct", random_state=0).set_params(optimizer=optimizer).fit(X, y)
        start = network.initial_weights([24, 512, 256], np.random.default_rng(0))[0]
        return float(np.linalg.norm(model.weights_[0] - start / np.linalg.norm(start)))

    assert moved("sgd") < 1e-3 < 0.1 < moved("adam")
