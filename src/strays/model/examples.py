"""Texts that a model keeps, and saves, to explain others with: the nearest of them show what a text is like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from strays.detectors.array_spec import BYTES, LARGEST_EMBEDDED, SIGNS, WHOLE, ArraySpec, check_arrays
from strays.detectors.base import FOUND
from strays.detectors.sampling import evenly
from strays.errors import ModelError
from strays.model.text_copies import ALIKE, nearly_same, plain


@dataclass(frozen=True)
class Neighbour:
    """A kept text, the cosine of its embedding's angle to that of the explained text, and how often else it is kept."""

    text: str
    similarity: float
    n_copies: int = 0


@dataclass(frozen=True)
class Examples:
    """Texts kept to explain with: their embeddings X, and labels y as detectors take them.

    >>> X = np.array([[1, 0], [0, 1]])
    >>> kept = Examples.choose(["a rope", "cheap pills"], X, np.array([1, -1]), most=10)
    >>> kept.nearest("a pill", np.array([3, 4]), anomalies=True, n=1)
    [Neighbour(text='cheap pills', similarity=0.8..., n_copies=0)]
    """

    texts: list[str]
    X: np.ndarray
    y: np.ndarray

    @classmethod
    def choose(cls, texts: Sequence[str], X: np.ndarray, y: np.ndarray, most: int) -> Examples:
        """Up to `most` normals and as many known anomalies, evenly spaced."""
        rows = np.concatenate([evenly(np.flatnonzero(side), most) for side in (y >= 0, y < 0)])
        return cls([texts[i] for i in rows], X[rows].astype(np.float32), y[rows].astype(np.int8))

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
            "y": ArraySpec(("n",), SIGNS, low=FOUND, high=1, fewest=0),
        }
        check_arrays(arrays, expected)
        data, ends = arrays["text"].tobytes(), arrays["end"].tolist()
        if len(data) != (ends[-1] if ends else 0):
            raise ModelError(f"the kept texts are of {len(data)} bytes and end at {ends[-1:]}; fit the model again")
        texts = [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise([0, *ends])]
        return cls(texts, arrays["embedding"], arrays["y"])

    def nearest(self, text: str, x: np.ndarray, *, anomalies: bool, n: int) -> list[Neighbour]:
        """The n kept texts, anomalies or normals, whose embeddings point most nearly where x, the text's own, does.

        Copies of the text are no neighbours, and of copies of one another one is.
        """
        side = (self.y < 0) == anomalies
        similarity = self._cosines(x)
        similarity[~side] = -np.inf
        order = np.argsort(-similarity, kind="stable")[: np.count_nonzero(side)]
        order = order[~self._copies(plain(text), similarity)[order]]
        neighbours: list[Neighbour] = []
        while len(neighbours) < n and len(order):
            first = order[0]
            copies = self._copies(self._plain[first], self._cosines(self.X[first]))[order]
            neighbours.append(Neighbour(self.texts[first], float(similarity[first]), int(copies.sum()) - 1))
            order = order[~copies]
        return neighbours

    def n_copies(self, text: str, x: np.ndarray, *, anomalies: bool) -> int:
        """How many of the kept anomalies or normals are copies of a text with the embedding x, besides the text."""
        copies = self._copies(plain(text), self._cosines(x)) & ((self.y < 0) == anomalies)
        return int(copies.sum()) - any(self.texts[i] == text for i in np.flatnonzero(copies))

    def _cosines(self, x: np.ndarray) -> np.ndarray:
        return self.X @ x.astype(self.X.dtype) / np.maximum(self._lengths * np.linalg.norm(x), 1e-12)

    def _copies(self, of: str, cosines: np.ndarray) -> np.ndarray:
        """Which of the kept texts are copies of a plain text, given the cosines to its embedding."""
        same = np.array([kept == of for kept in self._plain], dtype=bool)
        for i in np.flatnonzero((cosines >= ALIKE) & ~same):
            same[i] = nearly_same(self._plain[i], of)
        return same

    @cached_property
    def _plain(self) -> list[str]:
        return [plain(text) for text in self.texts]

    @cached_property
    def _lengths(self) -> np.ndarray:
        return np.linalg.norm(self.X, axis=1)
