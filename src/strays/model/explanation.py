"""Why a text scores as it does: which of its segments raise the score, and which kept texts it is like.

    effect of segment i = 2/3 (mean over j of T(text without j) - T(text without i))
                        + 1/3 (T(segment i alone) - mean over j of T(segment j alone))

how much less odd the text is without it than without another, and how much odder it is itself: the first alone prefers
rare but fitting words, the second short ones. (The whole text is no yardstick where the model was fitted on it: its
shortened forms are like a text the model knows, while it is scored as if the model did not.)

All pieces are scored in one go, so that any encoder and any detector can be explained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from strays.errors import DataError
from strays.model.calibration import Calibration, Threshold
from strays.model.examples import Examples, Neighbour
from strays.model.segments import split


@dataclass(frozen=True)
class Segment:
    """A piece text[start:end], and how much it raises the score, beside the other pieces."""

    start: int
    end: int
    text: str
    effect: float


@dataclass(frozen=True)
class Explanation:
    """What a model says of one text and why; segments with the largest effect come first.

    `flagged` is None where that depends on what else is scored.

    >>> segments = [Segment(6, 12, "winner", 2.0), Segment(0, 5, "dear", -2.0)]
    >>> explanation = Explanation("dear winner", 3.5, 0.01, True, segments, [], [])
    >>> explanation.in_words()
    'odder than about 99 % of the normal texts (score 3.50, p-value 0.01): flagged'
    >>> [explanation.strength(segment) for segment in explanation.segments]
    [1.0, 0.0]
    """

    text: str
    anomaly_score: float
    p_value: float
    flagged: bool | None
    segments: list[Segment]
    nearest_normals: list[Neighbour]
    nearest_anomalies: list[Neighbour]

    def strength(self, segment: Segment) -> float:
        """How much a segment raises the score beside the one that raises it most: 0 (not at all) to 1."""
        strongest = max((segment.effect for segment in self.segments), default=0.0)
        return max(0.0, segment.effect / strongest) if strongest > 0 else 0.0

    def in_words(self) -> str:
        """Score and p-value in a sentence."""
        verdict = {True: ": flagged", False: ": not flagged", None: ""}[self.flagged]
        return f"{rank_in_words(self.p_value)} (score {self.anomaly_score:.2f}, p-value {self.p_value:.2g}){verdict}"

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data."""
        return asdict(self) | {"in_words": self.in_words()}


def explain_texts(
    texts: list[str],
    score: Callable[[list[str]], tuple[np.ndarray, np.ndarray]],
    calibration: Calibration,
    threshold: Threshold,
    examples: Examples,
    *,
    n_neighbours: int,
) -> list[Explanation]:
    """Explain texts; `score` gives the embeddings and scores of all their pieces and is called once."""
    if not all(text.strip() for text in texts):
        raise DataError("there is no text to explain; expected one that is not blank")
    if not texts:
        return []
    spans = [split(text) for text in texts]
    parts = [[text, *pieces(text, of)] for text, of in zip(texts, spans, strict=True)]
    X, scores = score([piece for part in parts for piece in part])
    ends = np.cumsum([len(part) for part in parts])
    found = []
    for text, of, first, end in zip(texts, spans, np.r_[0, ends[:-1]], ends, strict=True):
        itself = scores[first : first + 1]
        found.append(
            Explanation(
                text,
                anomaly_score=float(itself[0]),
                p_value=float(calibration.p_value(itself)[0]),
                flagged=None if threshold.together else bool(calibration.flagged(threshold, itself)[0]),
                segments=effects(text, of, scores[first + 1 : end]),
                nearest_normals=examples.nearest(X[first], anomalies=False, n=n_neighbours, besides=text),
                nearest_anomalies=examples.nearest(X[first], anomalies=True, n=n_neighbours, besides=text),
            )
        )
    return found


def rank_in_words(p_value: float) -> str:
    """What a p-value says of a text."""
    if p_value > 0.5:
        return "as ordinary as most of the normal texts"
    more = "more than" if p_value < 0.001 else "about"
    return f"odder than {more} {min(99.9, 100 * (1 - p_value)):.3g} % of the normal texts"


def pieces(text: str, spans: list[tuple[int, int]]) -> list[str]:
    """What to score to tell the effects of segments: the text without each, then each alone."""
    return [_without(text, *span) for span in spans] + [text[start:end] for start, end in spans]


def effects(text: str, spans: list[tuple[int, int]], scores: np.ndarray) -> list[Segment]:
    """The segments of a text with their effects, from the scores of its pieces; the strongest first."""
    if not spans:
        return []
    without, alone = np.split(scores, 2)
    effect = 2 / 3 * (without.mean() - without) + 1 / 3 * (alone - alone.mean())
    segments = [Segment(a, b, text[a:b], float(effect[i])) for i, (a, b) in enumerate(spans)]
    return sorted(segments, key=lambda segment: -segment.effect)


def _without(text: str, start: int, end: int) -> str:
    before, after = text[:start].rstrip(), text[end:].lstrip()
    space = " " if text[:start] != before or text[end:] != after else ""
    return f"{before}{space}{after}".strip()
