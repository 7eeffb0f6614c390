"""Texts that a model keeps, and saves, to explain others with: the nearest of them show what a text is like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise

import numpy as np

from strays.detectors.array_spec import BYTES, LARGEST_EMBEDDED, SIGNS, WHOLE, ArraySpec, check_arrays
from strays.detectors.sampling import evenly
from strays.errors import ModelError


@dataclass(frozen=True)
class Neighbour:
    """A kept text and the cosine of its embedding's angle to that of the explained text."""

    text: str
    similarity: float


@dataclass(frozen=True)
class Examples:
    """Texts kept to explain with: their embeddings X, and labels y, -1 for known anomalies.

    >>> X = np.array([[1, 0], [0, 1]])
    >>> kept = Examples.choose(["a rope", "cheap pills"], X, np.array([1, -1]), most=10)
    >>> kept.nearest(np.array([3, 4]), anomalies=True, n=1, besides="a pill")
    [Neighbour(text='cheap pills', similarity=0.8...)]
    """

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
