"""Which of many to keep."""

from __future__ import annotations

import numpy as np


def evenly(values: np.ndarray, most: int) -> np.ndarray:
    """The values, or `most` of them, evenly spaced, where there are more."""
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).round().astype(int)]
