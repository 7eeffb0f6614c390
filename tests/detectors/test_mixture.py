"""How mixtures are weighed: the prior with little evidence, the best part with much, and no harm from a useless one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strays.detectors import mixture
from strays.jobs.metrics import auc


def features(n: int, m: int, shifts: tuple[float, float, float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Independent features, those of anomalies shifted; with the bounded heads beside them."""
    rng = np.random.default_rng(0)
    normal, anomaly = rng.normal(size=(n, 5)), rng.normal(size=(m, 5)) + np.array(shifts)
    return mixture.with_bounded_heads(normal), mixture.with_bounded_heads(anomaly)


def test_bounded_heads_are_beside_the_features() -> None:
    out = mixture.with_bounded_heads(np.array([[1.0, 2, -3, 4, 5]]))
    assert out.tolist() == [[1, 2, -3, 4, 0, 4, 5]]


def test_the_second_distance_counts_as_far_as_the_two_agree() -> None:
    def weight(agreement: float, n: int = 1000) -> float:
        covariance = np.eye(mixture.N_FEATURES)
        covariance[0, 1] = covariance[1, 0] = agreement
        return mixture.second_distance(covariance, n)

    assert [weight(r) for r in (-1.0, 0.5, 0.7, 1.0)] == pytest.approx([0, 0, 0.5, 0.5])
    assert 0 < weight(0.55) < weight(0.65) < 0.5
    assert weight(0.6, 250) < weight(0.6) < weight(0.6, 4000)  # with more rows less agreement is to be expected
    one, _ = features(2000, 0, (0.0,) * 5)
    assert mixture.distances_alone(one)[1] == 0  # of two distances that have nothing to do with each other
    one[:, 1] = one[:, 0]
    assert mixture.distances_alone(one)[1] > 0.2


def test_with_much_evidence_the_part_that_tells_wins() -> None:
    for part in range(5):
        shifts = [0.0] * 5
        shifts[part] = 3.0
        normal, anomaly = features(2000, 400, tuple(shifts))
        weights = mixture.mix(normal, anomaly).weights
        size = np.abs(weights[[0, 1, 2, 3, 6]] + np.r_[0, 0, weights[4:6], 0])
        assert size.argmax() == part


def test_one_anomaly_changes_less_than_a_hundred() -> None:
    normal, anomaly = features(1000, 100, (0.0, 0.0, 3.0, 3.0, 0.0))
    heads = [np.abs(mixture.mix(normal, anomaly[:m]).weights[2:6]).sum() for m in (1, 10, 100)]
    assert heads[0] < heads[1] < heads[2]


def test_the_mixture_has_deviation_about_one_over_the_normals() -> None:
    normal, anomaly = features(3000, 50, (1.0, 1.0, 2.0, 1.0, 0.0))
    normal[:, 6] = anomaly[:, 6] = 0
    assert (normal @ mixture.distances_alone(normal)).std() == pytest.approx(1, abs=0.01)
    assert 0.5 < (normal @ mixture.mix(normal, anomaly).weights).std() < 1.3


def test_it_reports_the_auc_of_the_left_out_anomalies() -> None:
    normal, anomaly = features(800, 60, (0.5, 0.5, 2.0, 1.0, 0.5))
    mixed = mixture.mix(normal, anomaly)
    truth = np.r_[np.ones(800), -np.ones(60)].astype(int)
    for weights, reported in (
        (mixed.weights, mixed.auc),
        (mixture.distances_alone(normal), mixed.auc_of_distances),
    ):
        assert reported == pytest.approx(100 * auc(truth, np.r_[normal @ weights, anomaly @ weights]))


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 3)), min_size=1, max_size=10),
)
def test_auc_counts_ties_half_and_heavy_anomalies_several_times(
    normal: list[int], anomalies: list[tuple[int, int]]
) -> None:
    anomaly, counts = np.array(anomalies, dtype=float).T
    repeated = np.repeat(anomaly, counts.astype(int))
    truth = np.r_[np.ones(len(normal)), -np.ones(len(repeated))].astype(int)
    ours = mixture._auc(np.array([normal], dtype=float), anomaly[None], counts)
    assert ours[0] == pytest.approx(100 * auc(truth, np.r_[np.array(normal, dtype=float), repeated]))


def test_no_auc_is_above_100() -> None:
    """A hundred and a little is what sums of rounded shares come to."""
    normal, anomaly = features(60, 90, (50.0, 50.0, 50.0, 50.0, 50.0))
    found = [mixture.mix(normal, anomaly[:m]) for m in range(1, 91)]
    assert max(max(mixed.auc, mixed.auc_of_distances) for mixed in found) <= 100
    assert min(mixed.auc for mixed in found) > 99.9


def test_features_that_never_vary_are_no_problem() -> None:
    normal, anomaly = mixture.with_bounded_heads(np.zeros((5, 5))), mixture.with_bounded_heads(np.ones((1, 5)))
    assert np.isfinite(mixture.mix(normal, anomaly).weights).all()
