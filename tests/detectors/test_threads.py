"""Threads: few while a detector is fitted on few rows, and afterwards as many as before, whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from strays.detectors import AutoDetector, kernel_ridge
from strays.detectors.threads import FEW, _pools, few_threads


def threads() -> set[int]:
    """Of the libraries that a fit sees; others, such as SciPy's, may be loaded later."""
    return {pool["num_threads"] for pool in _pools().info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two() -> Iterator[None]:
    with threadpool_limits(2, "blas"):
        yield


def test_few_rows_have_one_thread_and_many_have_all() -> None:
    for n, expected in ((FEW, {1}), (FEW + 1, {2})):
        with few_threads(n):
            assert threads() == expected
        assert threads() == {2}


def test_fits_beside_one_another_leave_what_was_there() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with few_threads(10):
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(60)
    with few_threads(10):
        pass
    assert threads() == {1}
    leave.set()
    thread.join()
    assert threads() == {2}
    with few_threads(10):
        assert threads() == {1}


def test_a_small_fit_inside_a_large_one() -> None:
    with few_threads(FEW + 1), few_threads(FEW):
        assert threads() == {1}
    assert threads() == {2}


def test_a_fit_has_few_and_gives_them_back_also_when_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(60, 8))
    seen = []
    fit_ridge = kernel_ridge.fit_ridge
    monkeypatch.setattr(kernel_ridge, "fit_ridge", lambda *given: seen.append(threads()) or fit_ridge(*given))
    AutoDetector().fit(X, np.r_[np.zeros(57), -np.ones(3)])
    assert set(map(str, seen)) == {"{1}"}
    assert threads() == {2}
    monkeypatch.setattr(kernel_ridge, "fit_ridge", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        AutoDetector().fit(X)
    assert threads() == {2}
