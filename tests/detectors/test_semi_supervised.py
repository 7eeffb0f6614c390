"""Deep SAD and the hypersphere classifier: their losses by hand, and that they learn."""

from __future__ import annotations

import numpy as np
import pytest

from strays.detectors import DeepSAD, HypersphereClassifier
from strays.detectors.semi_supervised import SemiSupervisedSphere
from strays.jobs.metrics import auc

METHODS = [DeepSAD, HypersphereClassifier]


def test_deep_sads_losses_by_hand() -> None:
    d2 = np.array([0.0, 1.0, 4.0])
    assert DeepSAD()._normal_loss(d2)[0].tolist() == [0, 1, 4]
    assert DeepSAD()._anomaly_loss(d2)[0].tolist() == pytest.approx([1000, 1, 0.25], rel=2e-3)


def test_the_hypersphere_classifiers_losses_are_a_cross_entropy() -> None:
    d2 = np.array([0.0, 3.0, 99.0])
    normal, anomaly = (
        loss(d2)[0] for loss in (HypersphereClassifier()._normal_loss, HypersphereClassifier()._anomaly_loss)
    )
    assert normal.tolist() == pytest.approx([0, 1, 9])  # sqrt(d^2 + 1) - 1
    p = np.exp(-normal)
    assert anomaly[1:].tolist() == pytest.approx((-np.log(1 - p[1:])).tolist(), abs=1e-5)
    assert np.isfinite(anomaly).all()


@pytest.mark.parametrize("cls", METHODS)
class TestLearning:
    def test_the_loss_falls(self, cls: type[SemiSupervisedSphere], blobs) -> None:
        X, y, *_ = blobs
        loss = cls(random_state=0).fit(X, y).loss_
        assert loss[-1] < 0.8 * loss[0]

    def test_labels_help_and_shuffled_labels_do_not(self, cls: type[SemiSupervisedSphere], blobs) -> None:
        X, y, X_test, y_test = blobs
        blind, taught, misled = (
            auc(y_test, cls(random_state=0, learning_rate=1e-3).fit(X, labels).anomaly_score(X_test))
            for labels in (None, y, np.random.default_rng(0).permutation(y))
        )
        assert taught > 0.95
        assert taught > max(blind, misled) + 0.1

    def test_anomalies_on_both_sides_are_far_from_the_centre(self, cls: type[SemiSupervisedSphere], blobs) -> None:
        X, y, *_ = blobs
        scores = cls(random_state=0, learning_rate=1e-3).fit(X, y).anomaly_score(X)
        left, right = X[:, 1] < -1, X[:, 1] > 1
        for side in (left & (y < 0), right & (y < 0)):
            assert np.median(scores[side]) > 2 * np.median(scores[y > 0])

    def test_a_heavier_anomaly_weight_pushes_harder(self, cls: type[SemiSupervisedSphere], blobs) -> None:
        X, y, *_ = blobs

        def push(weight: float) -> float:
            fitted = cls(random_state=0, anomaly_weight=weight).fit(X, y)
            return float(fitted.scale_ * fitted.anomaly_score(X[y < 0]).mean())

        assert push(10.0) > push(0.1)

    def test_scores_are_in_units_of_the_normals(self, cls: type[SemiSupervisedSphere], blobs) -> None:
        X, y, *_ = blobs
        scores = cls(random_state=0).fit(X, y).anomaly_score(X[y > 0])
        assert np.sqrt(np.mean(scores**2)) == pytest.approx(1)
