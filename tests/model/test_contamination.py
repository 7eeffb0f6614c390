"""What share of texts is odd beyond chance: exact under chance, and no claim without a cause."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from strays.model.calibration import Calibration
from strays.model.contamination import at_least, estimate_contamination


def drawn(rng: np.random.Generator, n: int, m: int, odd: int) -> tuple[Calibration, np.ndarray]:
    """A calibration on m normal scores, and the p-values of n texts of which some are odder than all normals."""
    calibration = Calibration.from_scores(rng.normal(size=m), np.zeros(1))
    return calibration, calibration.p_value(np.r_[rng.normal(size=n - odd), np.full(odd, 9.0)])


@pytest.mark.parametrize(("n", "m"), [(100, 300), (300, 100), (1000, 60)])
def test_chance_is_seldom_taken_for_odd_texts(n: int, m: int) -> None:
    rng = np.random.default_rng(0)
    claims = [
        calibration.contamination(p).beyond_chance for calibration, p in (drawn(rng, n, m, 0) for _ in range(600))
    ]
    assert np.mean(claims) < 0.05 + 3 * 0.009  # at most 5 %, and three standard errors


@pytest.mark.parametrize(("n", "m", "odd"), [(300, 300, 6), (300, 300, 30), (2000, 100, 40)])
def test_the_interval_holds_the_truth_nine_times_of_ten(n: int, m: int, odd: int) -> None:
    rng = np.random.default_rng(1)
    found = [calibration.contamination(p) for calibration, p in (drawn(rng, n, m, odd) for _ in range(400))]
    held = np.mean([one.low <= odd / n <= one.high for one in found])
    assert held > 0.9 - 3 * 0.015
    assert np.mean([one.share for one in found]) == pytest.approx(odd / n, abs=0.01)


def test_the_interval_is_that_of_counting() -> None:
    """The ends by brute force: draw orders of 40 held-out and n - s normal texts."""
    n_flagged, n, m, rate = 12, 60, 40, 0.1
    found = estimate_contamination(n_flagged, n, m, rate)
    rng = np.random.default_rng(2)
    r = int(rate * (m + 1))

    def by_chance(s: int) -> np.ndarray:
        scores = rng.random((20_000, m + n - s))
        edge = np.sort(scores[:, :m], axis=1)[:, -r]
        return (scores[:, m:] > edge[:, None]).sum(axis=1)

    allowed = [
        s
        for s in range(n_flagged + 1)
        if (by_chance(s) >= n_flagged - s).mean() > 0.05 and (by_chance(s) <= n_flagged - s).mean() > 0.05
    ]
    assert (round(found.low * n), round(found.high * n)) == (allowed[0], allowed[-1])


def test_ends_and_what_cannot_be_told() -> None:
    assert estimate_contamination(0, 0, 100, 0.05) is None
    assert estimate_contamination(1, 1, 300, 0.05) is None  # one text is no pile, and not "100 % of the rows"
    assert estimate_contamination(3, 100, 10, 0.01) is None  # ten held-out texts know no p-value of 1 %
    assert estimate_contamination(0, 50, 100, 0.05).high == 0
    assert estimate_contamination(50, 50, 100, 0.05).high == 1
    many = estimate_contamination(600_000, 10_000_000, 100_000, 0.05)
    assert 0.009 < many.low < many.share < many.high < 0.012


def test_it_says_what_it_found() -> None:
    assert str(estimate_contamination(40, 300, 300, 0.05)) == (
        "About 9 % of the rows (6 to 11 %) are odder than texts like those the model was fitted on: 40 have a p-value "
        "of at most 0.05, 15 would by chance."
    )
    assert str(estimate_contamination(16, 300, 300, 0.05)) == (
        "No more rows are odd than among texts like those the model was fitted on (at most 3 % are odder): 16 have a "
        "p-value of at most 0.05, 15 would by chance."
    )


@given(st.integers(1, 400), st.integers(1, 400), st.integers(0, 800), st.integers(0, 400))
@settings(deadline=None)
def test_the_hypergeometric_tail_is_scipys(marked: int, others: int, draws: int, r: int) -> None:
    draws = min(draws, marked + others)
    expected = hypergeom.sf(r - 1, marked + others, marked, draws)
    assert at_least(r, marked, others, draws) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_hypergeometric_tail_of_ten_million_texts() -> None:
    for r, marked, others, draws in ((100, 10_000, 10_000_000, 100_500), (1000, 100_000, 10_000_000, 101_000)):
        expected = hypergeom.sf(r - 1, marked + others, marked, draws)
        assert at_least(r, marked, others, draws) == pytest.approx(expected, rel=1e-6)
