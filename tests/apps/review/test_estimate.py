"""How many are left."""

from __future__ import annotations

import numpy as np
import pytest

from strays.apps.review.estimate import FEWEST, FEWEST_OF_EACH, NoEstimate, RemainingAnomalies, estimate_remaining


def pile(rng: np.random.Generator, n: int, hidden: int, sharp: float) -> tuple[np.ndarray, np.ndarray]:
    """p-values: uniform ones of normals, and those of anomalies, the nearer to 0 the sharper."""
    p = np.r_[rng.random(n - hidden), rng.random(hidden) ** sharp].clip(1e-4, 1)
    return p, np.r_[np.ones(n - hidden), -np.ones(hidden)]


def look(p: np.ndarray, y: np.ndarray, judged: int) -> tuple[RemainingAnomalies | NoEstimate, int]:
    """After the texts of the lowest p-values were judged: the estimate, and the truth."""
    order = np.argsort(p)
    seen, rest = order[:judged], order[judged:]
    return estimate_remaining(p[seen], y[seen], p[rest]), int((y[rest] < 0).sum())


@pytest.mark.parametrize("slope", [0.8, 1.2, 1.6])
def test_the_interval_mostly_holds_the_truth_where_there_is_one(slope: float) -> None:
    """Piles as the estimate takes them to be: log odds fall with log p, until the anomalies have run out."""
    held = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.random(5000).clip(2e-4, 1)
        odds = 5 - slope * (np.log(p) - np.log(2e-4))
        found, truth = look(p, np.where(rng.random(5000) < 1 / (1 + np.exp(-odds)), -1, 1), 400)
        if isinstance(found, RemainingAnomalies):
            held.append(found.low <= truth <= found.high)
    assert sum(held) >= 0.8 * len(held)


def test_p_values_that_say_nothing_give_no_estimate() -> None:
    rng = np.random.default_rng(3)
    p, y = rng.random(5000), np.where(rng.random(5000) < 0.1, -1, 1)
    found, _ = look(p, y, 100)
    assert "mixed" in found.why


def test_where_the_anomalies_have_run_out_few_are_expected() -> None:
    p, y = pile(np.random.default_rng(1), 5000, 30, 12)
    early, late = (look(p, y, n)[0] for n in (30, 400))
    assert isinstance(early, NoEstimate) or late.high < early.high
    assert late.high <= 60


def test_what_is_left_is_never_more_than_twice_what_was_found() -> None:
    p_open = np.linspace(0.01, 1, 3000)
    p_judged = np.linspace(0.0005, 0.01, 60)
    for k in (2, 3, 5, 10):
        y = np.where(np.arange(60) % k == 0, -1, 1)
        found = estimate_remaining(p_judged, y, p_open)
        assert isinstance(found, NoEstimate) or 0 <= found.low <= found.estimate <= found.high <= 2 * (y < 0).sum()


def test_where_nearly_all_or_none_are_anomalies_the_reason_says_so() -> None:
    p_open = np.linspace(0.01, 1, 300)
    y = np.where(np.arange(30) < FEWEST_OF_EACH - 1, 1, -1)
    assert "nearly all" in estimate_remaining(np.full(30, 0.004), y, p_open).why
    assert "nearly all" not in estimate_remaining(np.full(31, 0.004), np.r_[y, 1], p_open).why
    assert "5 anomalies" in estimate_remaining(np.full(30, 0.004), -y, p_open).why


def test_too_few_verdicts_and_nothing_left() -> None:
    few = np.full(FEWEST - 1, 0.1)
    assert "20 verdicts" in estimate_remaining(few, np.ones(len(few)), np.linspace(0.1, 1, 50)).why
    many = np.full(FEWEST, 0.1)
    y = np.where(np.arange(FEWEST) % 2, 1, -1)
    assert "every text" in estimate_remaining(many, y, np.array([])).why
    estimate_remaining(many, y, np.full(50, 0.1))  # all p-values equal
