"""Places on the map: finite, between 0 and 1, the same for the same seed, and near where embeddings are near."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.manifold import trustworthiness

from strays.jobs.report import layout as module
from strays.jobs.report.layout import layout
from tests.conftest import make_blobs

shapes = st.tuples(st.integers(1, 12), st.integers(1, 5))
numbers = st.floats(-1e3, 1e3, width=32) | st.just(0.0)


@settings(deadline=None, max_examples=40)
@given(arrays(np.float32, shapes, elements=numbers))
def test_any_embeddings_have_places(X: np.ndarray) -> None:
    places = layout(X, random_state=3)
    assert places.shape == (len(X), 2)
    assert places.dtype == np.float32
    assert np.isfinite(places).all()
    assert places.min() >= 0
    assert places.max() <= 1
    np.testing.assert_array_equal(places, layout(X, random_state=3))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 10])
def test_few_points_do_not_lie_on_one_another(n: int) -> None:
    places = layout(np.random.default_rng(0).normal(size=(n, 8)), random_state=0)
    assert len(np.unique(places, axis=0)) == n


def test_equal_embeddings_share_the_middle_and_copies_stay_close() -> None:
    np.testing.assert_array_equal(layout(np.ones((5, 3)), random_state=0), np.full((5, 2), 0.5, dtype=np.float32))
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 8)), 4, axis=0)
    places = layout(X, random_state=0).reshape(30, 4, 2)
    assert np.ptp(places, axis=1).max() < 0.02
    assert len(np.unique(places.reshape(-1, 2), axis=0)) > 100  # and yet each can be pointed at


def test_landmarks_place_the_others_near_their_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LANDMARKS", 100)
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, 600)
    X = 6 * np.eye(12)[group] + rng.normal(size=(600, 12)) * 0.5
    places = layout(X, random_state=0)
    centres = np.array([np.median(places[group == g], axis=0) for g in range(4)])
    nearest = np.linalg.norm(places[:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest == group).mean() > 0.98
    assert len(np.unique(places, axis=0)) == 600


def test_neighbours_are_kept_better_than_by_the_two_main_directions() -> None:
    X, _ = make_blobs(np.random.default_rng(0), 300, 30)
    X[:150] += 3 * np.eye(24)[2:5].sum(axis=0)
    plain = (X - X.mean(axis=0)) @ np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:2].T
    ours, theirs = (trustworthiness(X, places, n_neighbors=10) for places in (layout(X, random_state=0), plain))
    assert ours > theirs + 0.05


def test_global_random_state_is_left_alone() -> None:
    before = np.random.get_state()[1].copy()
    layout(np.random.default_rng(0).normal(size=(20, 4)), random_state=1)
    np.testing.assert_array_equal(before, np.random.get_state()[1])
