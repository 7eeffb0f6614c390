"""Copies do not vouch for each other, and large classes of alike rows stay normal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster import hierarchy
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from strays.detectors import AutoDetector, Detector, NearestNormals, copies
from strays.detectors.copies import connected, find_groups, nearest_others, unit_of_length

DETECTORS = [AutoDetector(), NearestNormals()]


def pile(n: int = 300, d: int = 32, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows that keep their distance, and a row off in a direction of its own."""
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(n, d))
    return normals, rng.normal(size=d) + 6 * np.eye(d)[0]


def near(row: np.ndarray, n: int, spread: float, seed: int = 1) -> np.ndarray:
    """Rows that are nearly the same."""
    return row + spread * np.random.default_rng(seed).normal(size=(n, len(row)))


def share_above(scores: np.ndarray, score: float) -> float:
    return float((scores >= score).mean())


@pytest.mark.parametrize("detector", DETECTORS, ids=repr)
@pytest.mark.parametrize("spread", [0.0, 0.2])
@pytest.mark.parametrize("n", [2, 3, 10])
def test_a_stray_that_is_repeated_stays_a_stray(detector: Detector, spread: float, n: int) -> None:
    normals, stray = pile()
    alone = clone(detector).fit(np.vstack([normals, stray])).anomaly_score([stray])[0]
    repeated = np.vstack([stray, near(stray, n - 1, spread)])
    scores = clone(detector).fit(np.vstack([normals, repeated])).anomaly_score(np.vstack([normals, repeated]))
    of_normals, of_copies = scores[: len(normals)], scores[len(normals) :]
    assert share_above(of_normals, of_copies.min()) < 0.02
    assert np.ptp(of_copies) == 0  # one text, one score
    assert of_copies[0] == pytest.approx(alone, rel=0.15)


@pytest.mark.parametrize("detector", DETECTORS, ids=repr)
@pytest.mark.parametrize("n", [8, 300])
def test_only_copies_tie_where_a_detector_says_so(detector: Detector, n: int) -> None:
    normals, stray = pile(n, d=512)  # so many dimensions that no row is near another
    y = np.where(np.arange(n) < 3, -1, 0)
    for labels in (None, y):
        fitted = clone(detector).fit(normals, labels)
        assert fitted.copies_tie
        assert (np.diff(np.sort(fitted.anomaly_score(np.vstack([normals, stray])))) > 1e-9).all()
    # With one neighbour, rows that are nearest to each other tie.
    assert not NearestNormals(n_neighbors=1).fit(normals).copies_tie


@pytest.mark.parametrize("detector", DETECTORS, ids=repr)
def test_two_rows_that_have_only_each_other_tie_and_are_no_copies(detector: Detector) -> None:
    one, other = np.eye(2)
    fitted = clone(detector).fit([one, one, other])
    assert np.ptp(fitted.anomaly_score([one, other])) == pytest.approx(0)
    assert not fitted.copies_tie


@pytest.mark.parametrize("detector", DETECTORS, ids=repr)
def test_the_pair_that_sets_the_radius_ties_whatever_the_rounding(
    detector: Detector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "OUTSKIRTS", 0.0)  # every pair has one row to compare with
    for seed in range(20):  # pairs of rows: the radius is the median distance within pairs, which one pair has
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(21, 32))
        X = np.vstack([rows, rows + 0.05 * rng.normal(size=rows.shape)])
        groups = find_groups((X - X.mean(axis=0)) / unit_of_length(X), trusted=np.zeros(len(X), dtype=bool))
        pairs = clone(detector).fit(X).anomaly_score(X).reshape(2, 21).T
        paired = groups.kept.reshape(2, 21).sum(axis=0) == 1
        assert paired.sum() == 11
        assert np.ptp(pairs[paired], axis=1).max() == 0


@pytest.mark.parametrize("detector", DETECTORS, ids=repr)
def test_a_fresh_copy_scores_like_the_one_it_was_fitted_on(detector: Detector) -> None:
    normals, stray = pile()
    detector = clone(detector).fit(np.vstack([normals, stray]))
    np.testing.assert_array_equal(*detector.anomaly_score(np.vstack([stray, near(stray, 1, 0.1)])).reshape(2, 1))


@pytest.mark.parametrize("detector", DETECTORS, ids=repr)
@pytest.mark.parametrize("spread", [0.0, 0.2])
def test_a_large_class_of_alike_rows_is_normal(detector: Detector, spread: float) -> None:
    normals, letter = pile()
    letters = np.vstack([letter, near(letter, 24, spread)])  # 25 of 325: more than a twentieth
    scores = clone(detector).fit(np.vstack([normals, letters])).anomaly_score(np.vstack([normals, letters]))
    assert share_above(scores[: len(normals)], scores[len(normals) :].max()) > 0.5


@pytest.mark.parametrize("detector", DETECTORS, ids=repr)
def test_a_group_that_a_person_called_normal_is_normal(detector: Detector) -> None:
    normals, stray = pile()
    X = np.vstack([normals, near(stray, 6, 0.1)])
    y = np.zeros(len(X), dtype=int)
    doubted = clone(detector).fit(X, y).anomaly_score(X)
    y[-1] = 1
    trusted = clone(detector).fit(X, y).anomaly_score(X)
    assert share_above(doubted[:300], doubted[-6:].min()) < 0.02
    assert share_above(trusted[:300], trusted[-6:].max()) > 0.5


@pytest.mark.parametrize("detector", DETECTORS, ids=repr)
def test_repeated_normals_change_little(detector: Detector) -> None:
    normals, stray = pile()
    once = clone(detector).fit(normals)
    thrice = clone(detector).fit(np.vstack([normals, normals[:50], normals[:50]]))
    fresh = np.vstack([pile(seed=5)[0], stray])
    np.testing.assert_allclose(thrice.anomaly_score(fresh), once.anomaly_score(fresh), rtol=0.05, atol=0.05)


def test_copies_tell_the_heads_what_is_normal_but_vouch_for_no_distance() -> None:
    normals, stray = pile()
    X = np.vstack([normals, near(normals[0], 4, 0.1), stray])
    detector = AutoDetector().fit(X, np.r_[np.zeros(len(X) - 1), -1].astype(int))
    assert detector.n_normals_ == 304
    assert detector.n_compared_ <= 300
    parts = detector._features(X[[0, 300, 301, 302, 303]])
    assert np.ptp(parts[:, :2], axis=0).max() == 0
    assert np.ptp(parts[:, 2:4], axis=0).min() > 0


def test_groups_are_those_of_single_linkage() -> None:
    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal(size=(80, 16)), *(near(rng.normal(size=16), 4, 0.15, seed) for seed in range(5))])
    X = (X - X.mean(axis=0)) / unit_of_length(X)
    groups = find_groups(X, trusted=np.zeros(len(X), dtype=bool))
    label = hierarchy.fcluster(hierarchy.linkage(X, "single"), groups.radius.max(), "distance")
    kept_of = np.bincount(label, weights=groups.kept)[1:]
    small = np.bincount(label)[1:] < 6
    assert (kept_of[small] == 1).all()
    assert (~groups.kept).sum() >= 15


@given(st.integers(1, 40), st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=60))
@settings(deadline=None)
def test_connected_rows_are_scipys_components(n: int, links: list[tuple[int, int]]) -> None:
    a, b = (np.array([link[side] % n for link in links], dtype=np.intp) for side in (0, 1))
    graph = coo_array((np.ones(len(a)), (a, b)), shape=(n, n))
    assert np.array_equal(connected(n, a, b), connected_components(graph, directed=False)[1])


def test_rows_with_many_equal_ones_are_still_linked_to_each_other() -> None:
    normals, letter = pile(500)
    X = np.vstack([normals, *[letter] * 17, *[near(letter, 1, 0.1)] * 17])  # 3 % each, 6 % together
    X = (X - X.mean(axis=0)) / unit_of_length(X)
    assert find_groups(X, np.zeros(len(X), dtype=bool)).kept[500:].all()


def test_nearest_others_are_those_of_a_full_table() -> None:
    X = np.random.default_rng(0).normal(size=(1100, 4))
    distance, neighbour = nearest_others(X, 3)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(D, np.inf)
    np.testing.assert_allclose(distance, np.sort(D, axis=1)[:, :3], atol=1e-3)
    np.testing.assert_allclose(np.take_along_axis(D, neighbour, axis=1), distance, atol=1e-3)


def test_distances_of_many_rows_are_computed_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(100, 4))
    whole = nearest_others(X, 3)
    monkeypatch.setattr(copies, "DISTANCES_AT_ONCE", 700)
    assert max(D.size for _, D in copies._distances(X)) == 700
    np.testing.assert_allclose(nearest_others(X, 3)[0], whole[0], atol=1e-3)


def test_hidden_anomalies_of_one_kind_vouch_less_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    normals, kind, fresh = rng.normal(size=(600, 16)), 0.7 * rng.normal(size=(60, 16)), rng.normal(size=(300, 16))
    kind[:, 0] += 6

    def normals_above() -> float:
        scores = AutoDetector().fit(np.vstack([normals, kind[:40]])).anomaly_score(np.vstack([fresh, kind[40:]]))
        return share_above(scores[:300], np.median(scores[300:]))

    without_them = normals_above()
    monkeypatch.setattr(copies, "OUTSKIRTS", 0.0)
    assert without_them < 0.6 * normals_above()


def test_rows_that_are_all_alike_are_all_compared_with() -> None:
    X = near(np.zeros(8), 5, 1.0)
    assert find_groups(X / 1e3, trusted=np.zeros(5, dtype=bool)).kept.all()
