"""What a person said of a text: 'normal', 'anomaly', or nothing. In arrays +1, -1 and 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from strays.errors import DataError

LABELS = {"normal": 1, "anomaly": -1, "": 0, None: 0}
WORD = {1: "normal", -1: "anomaly", 0: None}


def parse_labels(
    labels: Sequence[Any] | None, n: int, place: Callable[[int], str] = lambda i: f"labels[{i}]"
) -> np.ndarray:
    """Labels as words to +1, -1 and 0; an error names the place of the first that is none of them."""
    if labels is None:
        return np.zeros(n, dtype=np.int8)
    if isinstance(labels, str) or len(labels) != n:
        raise DataError(f"got {len(labels)} labels for {n} texts; expected one label (or None) for each text")
    y = np.zeros(n, dtype=np.int8)
    for i, label in enumerate(labels):
        word = label.strip().lower() if isinstance(label, str) else label
        if not (word is None or isinstance(word, str)) or word not in LABELS:
            raise DataError(f"{place(i)} is {label!r:.60}; expected 'normal', 'anomaly', or nothing for unlabelled")
        y[i] = LABELS[word]
    return y
