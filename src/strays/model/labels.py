"""What a person said of a text: 'normal', 'anomaly', or nothing. In arrays +1, -1 and 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from strays.encoders.inputs import as_list, is_missing
from strays.errors import DataError

LABELS = {"normal": 1, "anomaly": -1, "": 0}
WORD = {1: "normal", -1: "anomaly", 0: None}


def parse_labels(
    labels: Sequence[Any] | None, n: int, place: Callable[[int], str] = lambda i: f"labels[{i}]"
) -> np.ndarray:
    """Labels as words to +1, -1 and 0; None, NaN and blank are no label. An error names the first that is none of them.

    >>> parse_labels(["normal", None, " Anomaly ", float("nan"), ""], 5)
    array([ 1,  0, -1,  0,  0], dtype=int8)
    """
    if labels is None:
        return np.zeros(n, dtype=np.int8)
    labels = as_list(labels, "labels")
    if len(labels) != n:
        raise DataError(f"got {len(labels)} labels for {n} texts; expected one label (or None) for each text")
    return np.fromiter((_parse(label, place, i) for i, label in enumerate(labels)), dtype=np.int8, count=n)


def _parse(label: Any, place: Callable[[int], str], i: int) -> int:
    if is_missing(label):
        return 0
    word = label.strip().lower() if isinstance(label, str) else None
    if word in LABELS:
        return LABELS[word]
    found = f"{place(i)} is {label!r:.60}; expected 'normal', 'anomaly', or nothing for unlabelled"
    if isinstance(label, Number):
        found += ". Numbers are not taken, since 1 is an anomaly in some files and normal in others"
    raise DataError(found)
