"""How many are left."""

from __future__ import annotations

import numpy as np
import pytest

from strays.apps.review.estimate import FEWEST, FEWEST_NORMALS, RemainingAnomalies, estimate_remaining


def pile(rng: np.random.Generator, n: int, hidden: int, sharp: float) -> tuple[np.ndarray, np.ndarray]:
    """p-values: uniform ones of normals, and those of anomalies, the nearer to 0 the sharper."""
    p = np.r_[rng.random(n - hidden), rng.random(hidden) ** sharp].clip(1e-4, 1)
    return p, np.r_[np.ones(n - hidden), -np.ones(hidden)]


def look(p: np.ndarray, y: np.ndarray, judged: int) -> tuple[RemainingAnomalies | None, int]:
    """After the texts of the lowest p-values were judged: the estimate, and the truth."""
    order = np.argsort(p)
    seen, rest = order[:judged], order[judged:]
    return estimate_remaining(p[seen], y[seen], p[rest]), int((y[rest] < 0).sum())


@pytest.mark.parametrize("sharp", [3, 6, 12])
@pytest.mark.parametrize("hidden", [20, 100, 400])
def test_the_interval_mostly_holds_the_truth(sharp: float, hidden: int) -> None:
    looks = [look(*pile(np.random.default_rng(seed), 5000, hidden, sharp), 150) for seed in range(30)]
    held = [found.low <= truth <= found.high for found, truth in looks if found]
    assert sum(held) >= 0.6 * len(held)  # 0.9 are meant; the sharpest are hardest, as the found say little of the rest


def test_p_values_that_say_nothing_are_reckoned_with() -> None:
    rng = np.random.default_rng(3)
    p, y = rng.random(5000), np.where(rng.random(5000) < 0.05, -1, 1)
    found, truth = look(p, y, 100)
    assert found.low <= truth <= found.high


def test_where_nothing_more_is_found_less_is_expected() -> None:
    rng = np.random.default_rng(1)
    p, y = pile(rng, 5000, 30, 12)
    early, late = (look(p, y, n)[0] for n in (40, 400))
    assert late.high < early.high
    assert late.estimate < 40


def test_more_hits_mean_more_hidden() -> None:
    p_open = np.linspace(0.01, 1, 3000)
    p_judged = np.linspace(0.0005, 0.01, 40)
    few, many = (estimate_remaining(p_judged, np.where(np.arange(40) % k == 0, -1, 1), p_open) for k in (20, 2))
    assert few.estimate < many.estimate
    for found in (few, many):
        assert 0 <= found.low <= found.estimate <= found.high <= 3000


def test_where_all_are_anomalies_nothing_tells_where_they_end() -> None:
    p_open = np.linspace(0.01, 1, 300)
    y = np.where(np.arange(30) < FEWEST_NORMALS - 1, 1, -1)
    assert estimate_remaining(np.full(30, 0.004), y, p_open) is None
    assert estimate_remaining(np.full(31, 0.004), np.r_[y, 1], p_open) is not None


def test_too_few_verdicts_and_nothing_left() -> None:
    few = np.full(FEWEST - 1, 0.1)
    assert estimate_remaining(few, np.ones(len(few)), np.linspace(0.1, 1, 50)) is None
    many = np.full(FEWEST, 0.1)
    assert estimate_remaining(many, np.ones(FEWEST), np.array([])) is None
    assert estimate_remaining(many, np.ones(FEWEST), np.full(50, 0.1)).low >= 0  # all p-values equal
