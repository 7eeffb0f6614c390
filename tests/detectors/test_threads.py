"""Threads: few while a detector is fitted, and afterwards as many as before, whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from strays.detectors import AutoDetector, kernel_ridge
from strays.detectors.threads import FEW, few_threads


def threads() -> tuple[int, set[int]]:
    """Of PyTorch, and of the libraries that NumPy multiplies with."""
    return torch.get_num_threads(), {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def three() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    with threadpool_limits(2, "blas"):
        yield
    torch.set_num_threads(before)


def test_few_rows_have_one_thread_and_many_have_pytorchs() -> None:
    for n, pytorch in ((FEW, 1), (FEW + 1, 3)):
        with few_threads(n):
            assert threads() == (pytorch, {1})
        assert threads() == (3, {2})


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
    leave.set()
    thread.join()
    assert threads() == (3, {2})
    with few_threads(10):
        assert threads() == (1, {1})


def test_other_threads_keep_pytorchs() -> None:
    found: list[int] = []
    with few_threads(10):
        other = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        other.start()
        other.join()
    assert found == [3]


def test_a_large_fit_beside_a_small_one() -> None:
    with few_threads(FEW + 1), few_threads(FEW):
        assert threads() == (1, {1})
    assert threads() == (3, {2})


def test_a_fit_has_few_and_gives_them_back_also_when_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(60, 8))
    seen = []
    fit_ridge = kernel_ridge.fit_ridge
    monkeypatch.setattr(kernel_ridge, "fit_ridge", lambda *given: seen.append(threads()) or fit_ridge(*given))
    AutoDetector().fit(X, np.r_[np.zeros(57), -np.ones(3)])
    assert set(map(str, seen)) == {str((1, {1}))}
    assert threads() == (3, {2})
    monkeypatch.setattr(kernel_ridge, "fit_ridge", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        AutoDetector().fit(X)
    assert threads() == (3, {2})
