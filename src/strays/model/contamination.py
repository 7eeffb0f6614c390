"""Contamination: what share of scored texts is odd beyond chance, with an interval.

Of texts that are all normal a share of the rate is flagged by chance, so that flags alone are no finding. Let K of n
texts be flagged because they score above the r-th highest of m held-out normals, r = floor(rate (m + 1)). If all n + m
texts are alike, every order of them is equally likely, and k or fewer of the n are above the r-th highest of the m
where at least r of the r + k highest of all are among the m:

    P(K0 <= k) = P(H >= r),   H hypergeometric: r + k draws from n + m texts, m of them held out

Both samples are finite, and both count. If s of the n texts are odd and flagged, the other K - s flags are due to
chance. The interval holds each s for which neither tail of K0, among n - s texts, is below 5 %: it claims an odd text
where there is none at most once in 20 times, whatever the scores look like.

It takes held-out texts other than those scored. A file compared with itself has its own strays among the held-out ones:
its p-values are spread evenly whatever is in it, and say nothing of how many there are. No shape of the scores does
either: normal texts of one corpus have longer tails than those of another with a tenth of strays
(benchmarks/beyond_chance.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# Chance of each end of the interval to be wrong.
TAIL = 0.05
# Fewer texts than this are no pile with a share of odd ones: each is odd or not.
FEWEST = 20
_LIKE_FITTED = "texts like those the model was fitted on"


@dataclass(frozen=True)
class Contamination:
    """The share of texts that are odd beyond chance: an estimate, and an interval meant to hold it 9 times of 10.

    Odd texts that look as normal as the others are not in it. "Chance" is what the same rate flags of texts like the
    held-out ones: if these have strays among them too, the share is of what comes on top.

    >>> found = estimate_contamination(n_flagged=40, n=300, n_held_out=300, rate=0.05)
    >>> str(found).partition(":")[0]
    'About 9 % of the rows (6 to 11 %) are odder than texts like those the model was fitted on'
    >>> estimate_contamination(n_flagged=16, n=300, n_held_out=300, rate=0.05).beyond_chance
    False
    """

    share: float
    low: float
    high: float
    rate: float
    n: int
    n_flagged: int

    @property
    def beyond_chance(self) -> bool:
        """Whether chance alone does not explain the flags."""
        return self.low > 0

    def __str__(self) -> str:
        counts = (
            f"{self.n_flagged:,} {'has' if self.n_flagged == 1 else 'have'} a p-value of at most {self.rate:.2g}, "
            f"{self.rate * self.n:,.0f} would by chance"
        )
        share, low, high = (_percent(share) for share in (self.share, self.low, self.high))
        if self.beyond_chance:
            return f"About {share} % of the rows ({low} to {high} %) are odder than {_LIKE_FITTED}: {counts}."
        at_most = f" (at most {high} % are odder)" if self.high else ""
        return f"No more rows are odd than among {_LIKE_FITTED}{at_most}: {counts}."


def estimate_contamination(n_flagged: int, n: int, n_held_out: int, rate: float) -> Contamination | None:
    """From how many of n texts have a p-value up to a rate, by so many held-out normals; None if they are too few."""
    r = math.floor(rate * (n_held_out + 1) + 1e-9)
    if n < FEWEST or not 0 < r <= n_held_out:
        return None
    chance = r / (n_held_out + 1)

    def at_most(k: int, texts: int) -> float:
        """The chance that k or fewer of so many normal texts are flagged."""
        return at_least(r, n_held_out, texts, r + k) if k < texts else 1.0

    fewest = _first(lambda s: s == n_flagged or 1 - at_most(n_flagged - s - 1, n - s) > TAIL, n_flagged)
    most = n_flagged - _first(lambda k: at_most(k, n - n_flagged + k) > TAIL, n_flagged)
    share = max(0.0, n_flagged / n - chance) / (1 - chance)
    return Contamination(share, fewest / n, max(most, fewest) / n, chance, n, n_flagged)


def at_least(r: int, marked: int, others: int, draws: int) -> float:
    """P(H >= r) of a hypergeometric H: how many of so many draws, from marked ones and others, are marked.

    scipy.stats says the same, and takes longer to import than a small file to be scored.

    >>> round(at_least(2, marked=3, others=3, draws=3), 6)  # (9 + 1) / 20
    0.5
    """
    h = np.arange(max(0, draws - others), min(marked, draws) + 1, dtype=np.float64)
    ratio = (marked - h) * (draws - h) / ((h + 1) * (others - draws + h + 1))  # of P(H = h + 1) to P(H = h)
    log_p = np.r_[0, np.log(ratio[:-1]).cumsum()]
    p = np.exp(log_p - log_p.max())
    return float(p[h >= r].sum() / p.sum())


def _first(holds: Callable[[int], bool], end: int) -> int:
    """The first number up to `end` from which something holds, found by halving; `end` where it never does."""
    start = 0
    while start < end:
        middle = (start + end) // 2
        if holds(middle):
            end = middle
        else:
            start = middle + 1
    return end


def _percent(share: float) -> str:
    """A share in percent, with a digit more where it is small."""
    return f"{100 * share:.0f}" if share >= 0.02 or share == 0 else f"{100 * share:.2g}"
