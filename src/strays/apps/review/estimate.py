"""How many anomalies are still to be found among the texts that nobody has judged, with an interval.

A text whose p-value is p is an anomaly with log odds

    u - s (log p - log p_min),  p_min the lowest p-value, u in [-8, 6], 0 <= s <= 2

What people said of the texts they were asked about, at the p-values these had then, tells which u and s are likely;
each likely pair tells how many anomalies to expect among the rest. Beforehand all are equally likely, but for s = 0,
p-values that say nothing of these anomalies, which has a chance of its own. That the asked texts are not drawn at
random does no harm as long as, at one p-value, asked and other texts are alike. As the model learns, p-values come to
mean more: older verdicts count for less.

Where the anomalies end is seen only once they run out: before that the interval is wide and, where the ranking is poor,
wrong. So an estimate is given only where its upper end is at most twice what was found, and five were; otherwise a
reason why there is none. benchmarks/desk_page.py tells how often the interval holds the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Verdicts, and normals and anomalies among them: where all are anomalies, nothing tells where they end; where hardly
# any are, nothing tells what p-values they have.
FEWEST, FEWEST_OF_EACH = 20, 5
# The upper end of an estimate is at most this many times the anomalies found.
MOST_LEFT = 2
# The verdict this many verdicts ago counts half.
HALF_LIFE = 100
LOG_ODDS = np.linspace(-8, 6, 43)
SLOPES = np.linspace(0, 2, 31)
# Chosen on dev corpora; see benchmarks/LOG.md.
CHANCE_OF_NO_SLOPE = 0.3
# p-values of open texts are counted in this many bins of their logarithm; futures drawn to get quantiles from.
BINS, DRAWS = 100, 4000


@dataclass(frozen=True)
class RemainingAnomalies:
    """An estimate, and an interval meant to hold the true number 9 times of 10.

    >>> p_judged, y_judged = np.linspace(0.001, 0.02, 40), np.where(np.arange(40) < 8, -1, 1)
    >>> found = estimate_remaining(p_judged, y_judged, p_open=np.linspace(0.02, 1, 500))
    >>> 0 <= found.low <= found.estimate <= found.high <= 16
    True
    """

    estimate: int
    low: int
    high: int


@dataclass(frozen=True)
class NoEstimate:
    """Why there is no estimate, as the end of a sentence.

    >>> estimate_remaining(np.full(7, 0.01), np.ones(7), p_open=np.linspace(0.02, 1, 500)).why
    'it takes 20 verdicts on texts that the desk asked about, and there are 7'
    """

    why: str


def estimate_remaining(
    p_judged: np.ndarray, y_judged: np.ndarray, p_open: np.ndarray
) -> RemainingAnomalies | NoEstimate:
    """From the p-values that texts had when a person judged them, oldest first, and what was said (+1 or -1).

    `p_open` are the present p-values of the texts that nobody has judged.
    """
    n_found, n_normal = int((y_judged < 0).sum()), int((y_judged > 0).sum())
    if not len(p_open):
        return NoEstimate("every text is judged")
    if len(y_judged) < FEWEST:
        so_far = f"and there are {len(y_judged)}"
        return NoEstimate(f"it takes {FEWEST} verdicts on texts that the desk asked about, {so_far}")
    if n_normal < FEWEST_OF_EACH:
        needed = f"it takes {FEWEST_OF_EACH} normal ones to see an end"
        return NoEstimate(f"nearly all texts asked about are anomalies; {needed}")
    if n_found < FEWEST_OF_EACH:
        return NoEstimate(f"it takes {FEWEST_OF_EACH} anomalies among the texts asked about")
    p_judged, y_judged = p_judged[-10 * HALF_LIFE :], y_judged[-10 * HALF_LIFE :]  # the others weigh nothing
    n_open, edges = np.histogram(np.log(p_open), BINS)
    t_open, t_judged = (edges[1:] + edges[:-1]) / 2, np.log(p_judged)
    t_min = min(t_open.min(), t_judged.min())
    u, s = (grid.ravel()[:, None] for grid in np.meshgrid(LOG_ODDS, SLOPES))  # (pairs, 1)

    odds = u - s * (t_judged - t_min)  # (pairs, judged)
    likelihood = np.where(y_judged < 0, odds, 0) - np.logaddexp(0, odds)
    weight = 0.5 ** (np.arange(len(y_judged))[::-1] / HALF_LIFE)
    likely = likelihood @ weight + np.log(np.where(s[:, 0] == 0, CHANCE_OF_NO_SLOPE * len(SLOPES), 1))
    share = np.exp(likely - likely.max())

    chance = 1 / (1 + np.exp(s * (t_open - t_min) - u))  # (pairs, bins)
    mean, variance = chance @ n_open, (chance * (1 - chance)) @ n_open
    rng = np.random.default_rng(0)
    drawn = rng.choice(len(share), DRAWS, p=share / share.sum())
    futures = rng.normal(mean[drawn], np.sqrt(variance[drawn])).clip(0, len(p_open))
    low, estimate, high = np.quantile(futures, (0.05, 0.5, 0.95)).round()
    if high > MOST_LEFT * n_found:
        return NoEstimate("anomalies and normal texts are still mixed among those asked about")
    return RemainingAnomalies(int(estimate), int(low), int(high))
