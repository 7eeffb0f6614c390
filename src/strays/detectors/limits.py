"""What parameters may be: numbers in an interval, one of some words, None. As in scikit-learn, without importing it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, cast

import numpy as np

from strays.errors import UsageError


@dataclass(frozen=True)
class Interval:
    """Numbers from `low` to `high`; `closed` says which of the two belong to them: left, right, both or neither.

    >>> str(Interval(Real, 0, 1, closed="right"))
    'a number above 0 and at most 1'
    """

    kind: type[Integral] | type[Real]
    low: float
    high: float | None
    closed: str

    def allows(self, value: Any) -> bool:
        """Whether a value is one of them; NaN and infinity are not."""
        if not isinstance(value, self.kind):
            return False
        x, high = cast(float, value), math.inf if self.high is None else self.high
        return self.low < x < high or (x == self.low and self._from_low) or (x == high and self._to_high)

    def __str__(self) -> str:
        kind = "a whole number" if self.kind is Integral else "a number"
        low = f"{'at least' if self._from_low else 'above'} {self.low}"
        return f"{kind} {low}" + (
            f" and {'at most' if self._to_high else 'below'} {self.high}" if self.high is not None else ""
        )

    @property
    def _from_low(self) -> bool:
        return self.closed in ("left", "both")

    @property
    def _to_high(self) -> bool:
        return self.closed in ("right", "both")


@dataclass(frozen=True)
class StrOptions:
    """One of some words."""

    options: frozenset[str] | set[str]

    def allows(self, value: Any) -> bool:
        """Whether a value is one of them."""
        return isinstance(value, str) and value in self.options

    def __str__(self) -> str:
        return " or ".join(repr(option) for option in sorted(self.options))


class RandomState:
    """A seed of NumPy's generators, an old generator of NumPy, or None for a seed by chance."""

    def allows(self, value: Any) -> bool:
        """Whether random numbers can be drawn from it."""
        return value is None or isinstance(value, np.random.RandomState) or _SEED.allows(value)

    def __str__(self) -> str:
        return f"{_SEED}, or a numpy.random.RandomState, or None"


Limit = Interval | StrOptions | RandomState | None

FLAG_RATE = Interval(Real, 0, 0.5, closed="neither")
_SEED = Interval(Integral, 0, 2**32 - 1, closed="both")
RANDOM_STATE = RandomState()
COUNT = Interval(Integral, 1, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


def check_params(params: Mapping[str, Any], limits: Mapping[str, Sequence[Limit]], owner: str) -> None:
    """Raise UsageError for a parameter that none of its limits allows; those without limits may be anything.

    >>> check_params({"rate": 2}, {"rate": [FLAG_RATE, None]}, "Detector")
    Traceback (most recent call last):
        ...
    strays.errors.UsageError: rate of Detector is 2; must be a number above 0 and below 0.5, or None
    """
    for name, value in params.items():
        allowed = limits.get(name)
        if allowed is not None and not any(
            value is None if limit is None else limit.allows(value) for limit in allowed
        ):
            words = ", or ".join(str(limit) for limit in allowed)
            raise UsageError(f"{{{name}}} of {owner} is {value!r:.80}; must be {words}", param=name)
