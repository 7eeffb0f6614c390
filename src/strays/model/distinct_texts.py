"""Equal texts count once: in fitting, so that copies do not vouch for each other, and in calibration.

Near copies are left to the detector (detectors/copies.py), which sees how near they are, but not how often each is
there: texts that are alike and make up a twentieth of the pile together keep their copies, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strays.detectors.copies import CLASS_SHARE, LEAST_CLASS, in_classes, unit_of_length
from strays.detectors.sampling import evenly

# Texts that are looked at for alike ones: of more, evenly spaced ones.
MOST_LOOKED_AT = 4096


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

    def with_classes(self, X: np.ndarray) -> tuple[DistinctTexts, np.ndarray]:
        """With the copies of texts of which nearly equal ones make up a twentieth of the pile, too; X are embeddings.

        >>> once = DistinctTexts.of(["cat", "dog", "hi", "hi", "hi!", "hi!", "hi?", "hi?"], np.zeros(8, dtype=int))
        >>> alike, X = once.with_classes(np.array([[0.0], [1], [9], [9.001], [9.002]]))
        >>> len(once.texts), len(alike.texts), X.ravel()
        (5, 8, array([0.   , 1.   , 9.   , 9.   , 9.001, 9.001, 9.002, 9.002]))
        """
        looked_at = evenly(self.place[self.y[self.place] >= 0], MOST_LOOKED_AT)
        different, count = np.unique(looked_at, return_counts=True)
        if len(different) in (1, len(looked_at)):
            return self, X
        Z = X[different]
        alike = different[in_classes((Z - Z.mean(axis=0)) / unit_of_length(Z), count)]
        keeps = np.isin(self.place, alike)
        keeps[self.row] = True
        row = np.flatnonzero(keeps)
        of = self.place[row]
        place = np.searchsorted(row, self.row[self.place])
        return DistinctTexts([self.texts[i] for i in of], self.y[of], row, place), X[of]
