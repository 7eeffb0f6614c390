"""What a 95 % interval says of a part of a statement: it holds, it does not hold, or the interval leaves it unclear.

The interval is that of the mean over the runs, by Student's t; figures are subtracted within a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from strays.studies.paper.summary import interval

HOLDS, FAILS, UNCLEAR = "holds", "does not hold", "unclear"

# What gradient descent may leave of what is proved to be zero.
CONVERGED = 1e-6


@dataclass(frozen=True)
class Above:
    """Holds where the interval lies above a bound, fails where it lies below.

    >>> Above().verdict(0.1, 0.2), Above().verdict(-0.1, 0.2), Above().verdict(0.0, 0.0)
    ('holds', 'unclear', 'unclear')
    """

    bound: float = 0.0
    over = "runs"

    def bounds(self, samples: Sequence[float], chances: int = 1) -> tuple[float, float]:
        """The interval that is judged, wider where it is one of several chances to be wrong."""
        mean, half_width = interval(samples, chances)
        return mean - half_width, mean + half_width

    def verdict(self, low: float, high: float) -> str:
        """What the interval says."""
        return HOLDS if low > self.bound else FAILS if high < self.bound else UNCLEAR


ABOVE = Above()


@dataclass(frozen=True)
class Below(Above):
    """Holds where the interval lies below a bound, fails where it lies above.

    >>> Below().verdict(-0.2, -0.1), Below().verdict(0.1, 0.2)
    ('holds', 'does not hold')
    """

    def verdict(self, low: float, high: float) -> str:
        """What the interval says."""
        return HOLDS if high < self.bound else FAILS if low > self.bound else UNCLEAR


@dataclass(frozen=True)
class Within(Above):
    """No change to speak of: the whole interval lies within the bound of zero.

    >>> Within(1.5).verdict(-1, 0), Within(1.5).verdict(-2, 0), Within(1.5).verdict(-3, -2)
    ('holds', 'unclear', 'does not hold')
    """

    def verdict(self, low: float, high: float) -> str:
        """What the interval says."""
        if -self.bound < low and high < self.bound:
            return HOLDS
        return FAILS if low > self.bound or high < -self.bound else UNCLEAR


@dataclass(frozen=True)
class NoGain(Above):
    """Nothing to speak of is gained: the whole interval lies below the bound, which is what can be spoken of.

    >>> NoGain(1.5).verdict(-1, 1), NoGain(1.5).verdict(-1, 2), NoGain(1.5).verdict(2, 3)
    ('holds', 'unclear', 'does not hold')
    """

    def verdict(self, low: float, high: float) -> str:
        """What the interval says."""
        return FAILS if low > self.bound else HOLDS if high < self.bound else UNCLEAR


@dataclass(frozen=True)
class AtLeast(Above):
    """A lead as large as printed: it is clear, and the interval reaches the printed figure or lies above it.

    >>> AtLeast(3).verdict(2, 4), AtLeast(3).verdict(1, 2), AtLeast(3).verdict(-1, 4)
    ('holds', 'does not hold', 'unclear')
    """

    def verdict(self, low: float, high: float) -> str:
        """What the interval says."""
        return FAILS if high < self.bound else HOLDS if low > 0 else UNCLEAR


@dataclass(frozen=True)
class Equal(Above):
    """The printed figure lies in the interval.

    >>> Equal(6).verdict(5, 7), Equal(6).verdict(7, 8)
    ('holds', 'does not hold')
    """

    def verdict(self, low: float, high: float) -> str:
        """What the interval says."""
        return HOLDS if low <= self.bound <= high else FAILS


@dataclass(frozen=True)
class Drawn(Equal):
    """The printed figure, which is of one draw, lies among the central 95 % of the draws.

    >>> Drawn(2.0).bounds([1.0, 2.0, 3.0])[0] < 2.0
    True
    """

    over = "draws"

    def bounds(self, samples: Sequence[float], chances: int = 1) -> tuple[float, float]:
        """Where the central 95 % of the draws lie, or more where it is one of several chances to be wrong."""
        low, high = np.quantile(samples, [0.025 / chances, 1 - 0.025 / chances])
        return float(low), float(high)


@dataclass(frozen=True)
class Never(Above):
    """What follows from a proof: no draw exceeds the bound.

    >>> Never(1.0).verdict(0.2, 1.0), Never(1.0).verdict(0.2, 1.1)
    ('holds', 'does not hold')
    """

    over = "draws"

    def bounds(self, samples: Sequence[float], chances: int = 1) -> tuple[float, float]:
        """The least and the largest draw, however many chances there are."""
        return min(samples), max(samples)

    def verdict(self, low: float, high: float) -> str:
        """What the draws say."""
        return HOLDS if high <= self.bound else FAILS


def joined(verdicts: Iterable[str]) -> str:
    """The verdict on several parts: all must hold; one that is clearly contrary is enough to fail.

    >>> joined([HOLDS, HOLDS]), joined([HOLDS, UNCLEAR]), joined([HOLDS, FAILS, UNCLEAR])
    ('holds', 'unclear', 'does not hold')
    """
    found = set(verdicts)
    return FAILS if FAILS in found else UNCLEAR if UNCLEAR in found else HOLDS
