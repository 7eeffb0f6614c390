"""Equal texts count once: in fitting, so that copies do not vouch for each other, and in calibration.

Near copies are left to the detector (detectors/copies.py), which sees how near they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strays.detectors.copies import CLASS_SHARE, LEAST_CLASS


@dataclass(frozen=True)
class DistinctTexts:
    """Texts to fit on and to calibrate by, in which equal ones count once, and where each given text is among them.

    An unlabelled text that equals a labelled one takes its label; of two labels, anomaly. A text that makes up a
    twentieth of the pile or more, and at least 6 texts, is a class of its own, such as a form letter or a greeting, and
    keeps its copies.

    >>> DistinctTexts.of(["a cat", "a dog", "a cat"], np.array([0, 0, -1]))
    DistinctTexts(texts=['a cat', 'a dog'], y=array([-1,  0]), row=array([0, 1]), place=array([0, 1, 0]))
    """

    texts: list[str]
    y: np.ndarray
    # The given text that each of `texts` is, and which of `texts` each given one is.
    row: np.ndarray
    place: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[str], y: np.ndarray) -> DistinctTexts:
        """From texts and their labels: +1, -1 or 0."""
        labels: dict[str, int] = {}
        for text, label in zip(texts, y.tolist(), strict=True):
            if label:
                labels[text] = min(label, labels.get(text, label))
        n_copies = Counter(texts)
        many = max(CLASS_SHARE * len(texts), LEAST_CLASS)
        kept: list[tuple[str, int]] = []
        rows: list[int] = []
        first: dict[tuple[str, int], int] = {}
        place = np.empty(len(texts), dtype=int)
        for i, (text, label) in enumerate(zip(texts, y.tolist(), strict=True)):
            row = text, label or labels.get(text, 0)
            if row not in first or n_copies[text] >= many:
                first.setdefault(row, len(kept))
                kept.append(row)
                rows.append(i)
            place[i] = first[row]
        found = np.array([label for _, label in kept], dtype=y.dtype)
        return cls([text for text, _ in kept], found, np.array(rows), place)
