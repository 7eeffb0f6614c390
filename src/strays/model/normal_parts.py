"""What the parts of normal texts are like, to compare the parts of a text with: which words are common, and how odd a
clause is on its own.

A clause is shorter than a text, and mostly scores higher alone; a short clause more so than a long one. So the score of
a clause is compared with those of clauses of normal texts that the model keeps, each scored alone, after taking away
what is usual for its number of words:

    p(clause) = (1 + how many of m clauses of normal texts score at least as high, for their length) / (m + 1)

Kept texts that the model itself finds odd give no clauses: some of them may be anomalies that nobody has labelled.
benchmarks/planted.py measures how often a clause of a fresh normal text is named as odd all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from strays.detectors.sampling import evenly
from strays.model.calibration import Calibration
from strays.model.common_words import FUNCTION_WORDS, common_words
from strays.model.examples import Examples
from strays.model.segments import clauses, words

# Normal texts whose clauses are scored, and clauses of them: some hundred tell one in a hundred, within a second.
MOST_TEXTS, MOST_CLAUSES = 300, 800
# Kept texts with a p-value of at most this are not taken for normal here.
TOO_ODD = 0.05
# Clauses of up to so many words, or more, are compared as ones of the same length, if there are enough of them.
LENGTHS, FEWEST = (2, 4, 7), 20


@dataclass(frozen=True)
class NormalParts:
    """The common words of normal texts, and how their clauses score alone, by themselves and for their length.

    >>> pieces = ["one two"] * 60 + ["one two three four five"] * 60
    >>> parts = NormalParts.from_scores(FUNCTION_WORDS, pieces, np.r_[np.arange(60) + 40, np.arange(60)])
    >>> parts.p_value(np.array([70])).round(2), parts.p_value_for_length(["a piece of five words"], np.array([70]))
    (array([0.26]), array([0.00826446]))
    """

    common: frozenset[str]
    scores: np.ndarray
    scores_for_length: np.ndarray
    usual: np.ndarray  # the mean score of clauses of each length

    @classmethod
    def from_scores(cls, common: frozenset[str], pieces: Sequence[str], scores: np.ndarray) -> NormalParts:
        """From clauses of normal texts and their scores alone."""
        length = _lengths(pieces)
        groups = [scores[length == group] for group in range(len(LENGTHS) + 1)]
        overall = scores.mean() if len(scores) else 0.0
        usual = np.array([group.mean() if len(group) >= FEWEST else overall for group in groups])
        return cls(common, np.sort(scores), np.sort(scores - usual[length]), usual)

    @classmethod
    def of(
        cls,
        examples: Examples,
        p_values: np.ndarray,
        score_parts: Callable[[list[str]], np.ndarray],
    ) -> NormalParts:
        """From the normal texts among the examples, whose p-values are given; `score_parts` is called at most once."""
        rows = np.flatnonzero(examples.y >= 0)
        if not len(rows):
            return cls.from_scores(FUNCTION_WORDS, [], np.array([]))
        normal = rows[p_values[rows] > TOO_ODD]
        texts = [examples.texts[i] for i in evenly(normal, MOST_TEXTS)]
        found = [text[a:b] for text in texts for a, b in clauses(text)]
        chosen = [found[i] for i in evenly(np.arange(len(found)), MOST_CLAUSES)]
        scores = score_parts(chosen) if chosen else np.array([])
        return cls.from_scores(common_words([examples.texts[i] for i in rows]), chosen, scores)

    def p_value(self, scores: np.ndarray) -> np.ndarray:
        """The share of the clauses of normal texts expected to score at least this high."""
        return _p_value(self.scores, scores)

    def p_value_for_length(self, pieces: Sequence[str], scores: np.ndarray) -> np.ndarray:
        """The share of the clauses of normal texts expected to score at least this high for their length."""
        return _p_value(self.scores_for_length, scores - self.usual[_lengths(pieces)])


def _lengths(pieces: Sequence[str]) -> np.ndarray:
    return np.searchsorted(LENGTHS, [len(words(piece)) for piece in pieces])


def _p_value(ascending: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return Calibration(ascending, ascending).p_value(scores)
