"""A row's score is the same, bit for bit, alone and in any batch, at any place in it, with any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from strays.detectors import DETECTORS, Detector, detector_class
from strays.detectors.exact import COMPARED, SCORED, ComparedRows, LinearMap, lowest, on_grid, weighted_sums
from tests.detectors.test_every_detector import make

SIZES = (1, 7, 64, 1000)
# (rows fitted on, features, known anomalies): sizes that no library's blocks divide.
FITS = ((203, 131, 6), (67, 384, 0), (333, 24, 9))


@cache
def fitted(name: str, fit: tuple[int, int, int], dtype: str) -> tuple[Detector, np.ndarray, np.ndarray]:
    """A detector, a thousand rows, some of them those it was fitted on and some equal, and their scores."""
    n, d, known = fit
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, d)) + rng.normal(size=d)).astype(dtype)
    X[20:24] = X[19]
    rows = (rng.normal(size=(1000, d)) * rng.uniform(0.1, 3, size=(1000, 1))).astype(dtype)
    rows[::50], rows[1::50] = X[-20:], X[19]
    detector = make(detector_class(name)).fit(X, np.where(np.arange(n) < known, -1, 0))
    return detector, rows, detector.anomaly_score(rows)


@pytest.mark.parametrize("name", DETECTORS)
class TestEveryDetector:
    @pytest.mark.parametrize("fit", FITS)
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_in_batches_of_every_size(self, name: str, fit: tuple[int, int, int], dtype: str) -> None:
        detector, rows, scores = fitted(name, fit, dtype)
        for size in SIZES:
            parts = [detector.anomaly_score(rows[start : start + size]) for start in range(0, len(rows), size)]
            np.testing.assert_array_equal(np.concatenate(parts), scores)

    def test_at_every_place(self, name: str) -> None:
        """Kernels of a matrix product take rows in groups, and those left over differently."""
        detector, rows, scores = fitted(name, FITS[0], "float32")
        for size in (7, 13, 64):
            for place in range(size):
                batch = np.roll(rows[:size], place, axis=0)
                np.testing.assert_array_equal(detector.anomaly_score(batch), np.roll(scores[:size], place))
        order = np.random.default_rng(1).permutation(len(rows))
        np.testing.assert_array_equal(detector.anomaly_score(rows[order]), scores[order])

    def test_however_the_rows_lie_in_memory(self, name: str) -> None:
        detector, rows, scores = fitted(name, FITS[0], "float32")
        np.testing.assert_array_equal(detector.anomaly_score(np.asfortranarray(rows)), scores)
        apart = np.empty((len(rows), 2 * rows.shape[1]), rows.dtype)[:, ::2]
        apart[:] = rows
        np.testing.assert_array_equal(detector.anomaly_score(apart), scores)

    @pytest.mark.parametrize("n_threads", [2, 3, 8])
    def test_with_any_number_of_threads(self, name: str, n_threads: int) -> None:
        detector, rows, scores = fitted(name, FITS[0], "float32")
        with threadpool_limits(n_threads):
            np.testing.assert_array_equal(detector.anomaly_score(rows), scores)
            np.testing.assert_array_equal(detector.anomaly_score(rows[:33]), scores[:33])

    def test_in_a_detector_that_was_saved(self, name: str) -> None:
        detector, rows, scores = fitted(name, FITS[0], "float32")
        state = {key: array.copy() for key, array in detector.get_state().items()}
        np.testing.assert_array_equal(make(type(detector)).set_state(state).anomaly_score(rows[5:12]), scores[5:12])


def rows_of_every_size(seed: int, n: int, d: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * 10.0 ** rng.integers(-6, 7, size=(n, 1)) * rng.lognormal(size=(n, d))


@pytest.mark.parametrize("d", [1, 3, 24, 384, 769])
class TestExact:
    """Against arithmetic with whole numbers, which does not round."""

    def test_products_of_rows_on_the_grid_are_exact(self, d: int) -> None:
        X, Z = on_grid(rows_of_every_size(0, 30, d), SCORED), on_grid(rows_of_every_size(1, 40, d), COMPARED)
        products = X @ Z.T
        for i, j in ((0, 0), (7, 39), (29, 13)):
            whole = sum(as_whole(x) * as_whole(z) for x, z in zip(X[i], Z[j], strict=True))
            assert as_whole(products[i, j]) * 2**SHIFT == whole

    def test_the_grid_keeps_a_row(self, d: int) -> None:
        X = rows_of_every_size(2, 50, d)
        for bits in (COMPARED, SCORED):
            assert (np.abs(on_grid(X, bits) - X).max(axis=1) <= 2.0**-bits * np.linalg.norm(X, axis=1)).all()

    def test_distances_are_those_of_full_precision_to_seven_digits(self, d: int) -> None:
        rng = np.random.default_rng(3)
        X, Z = rng.normal(size=(20, d)) + 100, rng.normal(size=(50, d)) + 100
        X[:5] = Z[:5]
        expected = np.linalg.norm(X[:, None] - Z, axis=2) / 3
        compared = ComparedRows.of(Z, scale=3.0)
        D = compared.squared_distances(compared.placed(X))
        np.testing.assert_allclose(np.sqrt(D), expected, atol=3e-7 * np.sqrt(d))
        distance, which = compared.nearest(X, D, 7)
        assert (distance[:5, 0] == 0).all()
        np.testing.assert_allclose(distance, np.sort(expected, axis=1)[:, :7], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(which, np.argsort(expected, axis=1, kind="stable")[:, :7])
        np.testing.assert_allclose(np.take_along_axis(np.sqrt(D), which, axis=1), distance, rtol=1e-12)

    def test_a_linear_map_is_the_product_to_ten_digits(self, d: int) -> None:
        W, X = rows_of_every_size(4, 33, d), rows_of_every_size(5, 20, d)
        lengths = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(W, axis=1)
        assert (np.abs(LinearMap.of(W)(X) - X @ W.T) / lengths).max() < 1e-9


SHIFT = 400


def as_whole(value: float) -> int:
    """2^SHIFT times a float, which must be whole."""
    numerator, denominator = float(value).as_integer_ratio()
    whole, rest = divmod(numerator << SHIFT, denominator)
    assert rest == 0
    return whole


@pytest.mark.parametrize("k", [1, 5, 32, 33, 60])
def test_the_lowest_are_those_of_a_stable_sort(k: int) -> None:
    D = np.random.default_rng(0).integers(0, 12, size=(40, 60)).astype(float)
    before = D.copy()
    values, where = lowest(D, k)
    np.testing.assert_array_equal(where, np.argsort(D, axis=1, kind="stable")[:, :k])
    np.testing.assert_array_equal(values, np.sort(D, axis=1)[:, :k])
    np.testing.assert_array_equal(D, before)


@pytest.mark.parametrize("function", [np.exp, np.sqrt, np.square, lambda x: 2**-x, lambda x: np.rint(1000 * x)])
def test_numpys_functions_see_a_number_alone(function: Callable[[np.ndarray], np.ndarray]) -> None:
    """What is left of an array after its last full vector goes through other instructions."""
    x = np.random.default_rng(0).exponential(3, size=2000)
    expected = function(x)
    for start in range(17):
        for size in (1, 2, 3, 7, 8, 9, 31, 64, 1000):
            np.testing.assert_array_equal(function(x[start : start + size]), expected[start : start + size])
            np.testing.assert_array_equal(function(x[start : start + size].copy()), expected[start : start + size])


@pytest.mark.parametrize("d", [1, 2, 6, 7, 8, 9, 128, 129, 384, 1000, 8193])
def test_numpys_sums_along_rows_see_a_row_alone(d: int) -> None:
    A, weights = rows_of_every_size(6, 70, d), np.random.default_rng(7).normal(size=d)
    expected = [weighted_sums(row[None].copy(), weights)[0] for row in A]
    for size in (2, 7, 64, 70):
        for start in range(0, 71 - size):
            part = weighted_sums(A[start : start + size].copy(), weights)
            np.testing.assert_array_equal(part, expected[start : start + size])
