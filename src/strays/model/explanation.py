"""Why a text scores as it does: which of its segments raise the score, and which kept texts it is like.

    effect of segment i = 2/3 (mean over j of T(text without j) - T(text without i))
                        + 1/3 (T(segment i alone) - mean over j of T(segment j alone))

how much less odd the text is without it than without another, and how much odder it is itself: the first alone prefers
rare but fitting words, the second short ones. (The whole text is no yardstick where the model was fitted on it: its
shortened forms are like a text the model knows, while it is scored as if the model did not.)

A segment is a clause, or a word where there are no clauses to tell apart; in scripts without spaces a few characters.
All pieces are scored in one go, so that any encoder and any detector can be explained.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import Any

import numpy as np

from strays.detectors.array_spec import BYTES, LARGEST_EMBEDDED, SIGNS, WHOLE, ArraySpec, check_arrays
from strays.detectors.sampling import evenly
from strays.errors import ModelError

# More segments than this tell a reader nothing; a long text's clauses are joined to as many.
MOST_SEGMENTS = 32
# A clause of more words (or pairs of characters, without spaces) than this is cut into even pieces.
LONGEST_CLAUSE = 12
# Marks that are no part of a word: ASCII's, Latin and general ones, full-width ones, Arabic ones, the danda.
_MARK = re.escape(string.punctuation) + (
    r"\u00a1\u00ab\u00bb\u00bf\u2010-\u2027\u2030-\u205e\u3000-\u3020\u3030\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40"
    r"\uff5b-\uff65\u060c\u061b\u061f\u06d4\u0964\u0965"
)
# Scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Kana, Han. Two characters at a time are a unit.
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = rf"[^\s{_MARK}{_UNSPACED}]+"
_UNIT = re.compile(rf"[{_UNSPACED}]{{1,2}}|{_WORD}(?:['\u2019.\-]{_WORD})*")
# Where a clause ends: Latin marks before a space or the end, so that 3.14 stays whole; other marks and line breaks
# anywhere; dashes between spaces.
_ENDS = r".!?;:,)\]\u2026\u2014"
_OTHER_ENDS = r"\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f\uff09\u300d\u300f\u060c\u061b\u061f\u06d4\u0964\u0965"
_CLAUSE_END = re.compile(
    rf"(?<![{_ENDS}])[{_ENDS}]++(?=\s|$)|[\r\n]+|[{_OTHER_ENDS}\u2026]+|\s[\u2013\u2014\-]++(?=\s)"
)


@dataclass(frozen=True)
class Segment:
    """A piece text[start:end], and how much it raises the score, beside the other pieces."""

    start: int
    end: int
    text: str
    effect: float


@dataclass(frozen=True)
class Neighbour:
    """A kept text and the cosine of its embedding's angle to that of the explained text."""

    text: str
    similarity: float


@dataclass(frozen=True)
class Explanation:
    """What a model says of one text and why; segments with the largest effect come first.

    `flagged` is None where that depends on what else is scored.
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


@dataclass(frozen=True)
class Examples:
    """Texts kept to explain with: their embeddings X, and labels y, -1 for known anomalies."""

    texts: list[str]
    X: np.ndarray
    y: np.ndarray

    @classmethod
    def choose(cls, texts: Sequence[str], X: np.ndarray, y: np.ndarray, most: int) -> Examples:
        """Up to `most` normals and as many known anomalies, evenly spaced."""
        rows = np.concatenate([evenly(np.flatnonzero(side), most) for side in (y >= 0, y < 0)])
        return cls([texts[i] for i in rows], X[rows].astype(np.float32), np.sign(y[rows]).astype(np.int8))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """For safetensors, which holds no strings: all texts as UTF-8 in one array, with where each one ends."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in self.texts]
        ends = np.cumsum([len(part) for part in encoded], dtype=np.int64)
        return {"text": np.frombuffer(b"".join(encoded), dtype=np.uint8), "end": ends, "embedding": self.X, "y": self.y}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], dimension: int) -> Examples:
        """What to_arrays gave, with embeddings of that length; ValueError where a text is no text."""
        expected = {
            "text": ArraySpec(("bytes",), BYTES, low=0, fewest=0),
            "end": ArraySpec(("n",), WHOLE, low=0, fewest=0, ascending=True),
            "embedding": ArraySpec(("n", dimension), ("float32",), -LARGEST_EMBEDDED, LARGEST_EMBEDDED, fewest=0),
            "y": ArraySpec(("n",), SIGNS, low=-1, high=1, fewest=0),
        }
        check_arrays(arrays, expected)
        data, ends = arrays["text"].tobytes(), arrays["end"].tolist()
        if len(data) != (ends[-1] if ends else 0):
            raise ModelError(f"the kept texts are of {len(data)} bytes and end at {ends[-1:]}; fit the model again")
        texts = [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise([0, *ends])]
        return cls(texts, arrays["embedding"], arrays["y"])

    def nearest(self, x: np.ndarray, *, anomalies: bool, n: int, besides: str) -> list[Neighbour]:
        """The n kept texts, anomalies or normals, whose embeddings point most nearly where x does."""
        side = (self.y < 0) == anomalies
        similarity = self.X @ x.astype(self.X.dtype) / np.maximum(self._lengths * np.linalg.norm(x), 1e-12)
        similarity[~side] = -np.inf
        order = np.argsort(-similarity, kind="stable")[: np.count_nonzero(side)]
        nearest = islice((i for i in order if self.texts[i] != besides), n)
        return [Neighbour(self.texts[i], float(similarity[i])) for i in nearest]

    @cached_property
    def _lengths(self) -> np.ndarray:
        return np.linalg.norm(self.X, axis=1)


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


def split(text: str) -> list[tuple[int, int]]:
    """Where the segments of a text start and end, in order; between them is white space, or what has no word in it.

    A text of one segment has none: there is nothing to tell it apart from.
    """
    edges = [0, *(match.end() for match in _CLAUSE_END.finditer(text)), len(text)]
    clauses = [(a, b) for a, b in pairwise(edges) if _UNIT.search(text, a, b)]
    longest = LONGEST_CLAUSE if len(clauses) > 1 else 1
    cut = [piece for a, b in clauses for piece in _cut(text, a, b, longest)]
    together = -(-len(cut) // MOST_SEGMENTS) or 1
    groups = [cut[i : i + together] for i in range(0, len(cut), together)]
    return [_trimmed(text, group[0][0], group[-1][1]) for group in groups] if len(groups) > 1 else []


def _cut(text: str, start: int, end: int, longest: int) -> list[tuple[int, int]]:
    """A clause in even pieces of at most `longest` words or pairs of characters."""
    units = [match.start() for match in _UNIT.finditer(text, start, end)]
    n = -(-len(units) // longest)
    first = [units[len(units) * i // n] for i in range(1, n)]
    edges = [start, *first, end]
    return list(pairwise(edges))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def _without(text: str, start: int, end: int) -> str:
    before, after = text[:start].rstrip(), text[end:].lstrip()
    space = " " if text[:start] != before or text[end:] != after else ""
    return f"{before}{space}{after}".strip()
