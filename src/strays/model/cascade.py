"""A cheap head that tells which texts an expensive model could flag.

The head h estimates the full model's anomaly score s from z, a static embedding and the length of a text: kernel ridge
regression on every text of the corpus, with some of them as landmarks z_j (Nystroem),

    h(z) = b + sum_j c_j exp(-|z - z_j|^2),   c = argmin |K c - (s - b)|^2 + penalty c' K_m c

A text goes to the full model where h reaches a cut. For a recall r of what the full model flags (s > t), the cut is the
k-th lowest out-of-fold h among the n held-out texts with s > t, k = (1 - r)(n + 1): a fresh text that would be flagged
stays below with a chance of at most 1 - r, if it is like those (conformal prediction, as in calibration). Where that k
is no whole number the texts with the next highest s take part until it is. They are harder to tell from the rest than
what is flagged: on the cautious side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from strays.detectors.array_spec import LARGEST_EMBEDDED, ArraySpec, check_arrays
from strays.detectors.exact import ComparedRows, Prepared, weighted_sums
from strays.detectors.sampling import evenly
from strays.detectors.threads import in_blocks
from strays.encoders import Encoder, LoadedEncoder, load_encoder
from strays.encoders.identity import EncoderIdentity
from strays.encoders.sources import is_static
from strays.errors import ModelError, UsageError
from strays.model.calibration import MOST_KEPT
from strays.model.scoring import require_same_encoder

RECALL = 0.98
LANDMARKS, PENALTY, FOLDS = 2048, 0.3, 5
# Keeps the equations solvable where landmarks are equal.
JITTER = 1e-4
# Few enough for the caches of a processor.
ROWS_AT_ONCE = 512
# What a saved cascade is made of.
ARRAYS = {
    "landmarks": ArraySpec(("m", "z"), ("float32",), -LARGEST_EMBEDDED, LARGEST_EMBEDDED),
    "coefficients": ArraySpec(("m",)),
    "intercept": ArraySpec(),
    "values": ArraySpec(("n",)),
    "scores": ArraySpec(("n",)),
}


def check_recall(recall: float) -> float:
    """The same number; UsageError unless it is a share that a cut can promise."""
    if not 0 < recall < 1:
        raise UsageError(
            f"{{recall}} is {recall:g}; must be strictly between 0 and 1, such as {RECALL}", param="recall"
        )
    return recall


@dataclass(frozen=True)
class Cut:
    """Texts whose h is at least `value` go to the full model: about `share` of texts like those held out.

    `recall` of what the full model would flag is then among them; the promise rests on `n_held_out` texts.
    """

    value: float
    recall: float
    share: float
    n_held_out: int


@dataclass(frozen=True, eq=False)
class Head:
    """A regression of full scores on static embeddings.

    >>> Z = np.linspace(0, 1, 50, dtype=np.float32)[:, None]
    >>> head, out_of_fold = Head.fit(Z, scores=np.sin(3 * Z[:, 0]))
    >>> low, high = head.values(Z[[0, 25]])
    >>> bool(low < 0.3 < 0.8 < high), out_of_fold.shape
    (True, (50,))
    """

    landmarks: np.ndarray
    coefficients: np.ndarray
    intercept: float

    @classmethod
    def fit(cls, Z: np.ndarray, scores: np.ndarray) -> tuple[Head, np.ndarray]:
        """The head of rows Z and their full scores, and its values at the rows when fitted without their fold."""
        landmarks = evenly(Z, LANDMARKS)
        intercept = float(scores.mean())
        penalty = PENALTY * _kernel(landmarks, landmarks).astype(np.float64)
        penalty[np.diag_indices_from(penalty)] += JITTER * len(Z)
        parts = [np.arange(fold, len(Z), FOLDS) for fold in range(min(FOLDS, len(Z)))]
        sums = [_normal_equations(Z[part], scores[part] - intercept, landmarks) for part in parts]
        A, b = sum(a for a, _ in sums), sum(b for _, b in sums)
        out_of_fold = np.empty(len(Z))
        for part, (a_part, b_part) in zip(parts, sums, strict=True):
            left = np.linalg.solve(A - a_part + penalty, b - b_part)
            out_of_fold[part] = cls(landmarks, left, intercept).values(Z[part])
        return cls(landmarks, np.linalg.solve(A + penalty, b), intercept), out_of_fold

    def values(self, Z: np.ndarray) -> np.ndarray:
        """The head's value of every row; it does not depend on the other rows."""
        if Z.shape[1] != self.landmarks.shape[1]:
            raise ModelError(
                f"the cascade's encoder gives embeddings of {Z.shape[1] - 1} numbers; expected "
                f"{self.landmarks.shape[1] - 1}. Use the encoder it was fitted with, or fit again"
            )
        return in_blocks(self._values, Z, ROWS_AT_ONCE) + self.intercept if len(Z) else np.empty(0)

    def _values(self, Z: np.ndarray) -> np.ndarray:
        compared = _COMPARED.of(self)
        K = compared.squared_distances(compared.placed(Z))
        np.negative(K, out=K)
        return weighted_sums(np.exp(K, out=K), self.coefficients)


_COMPARED = Prepared(lambda head: ComparedRows.of(head.landmarks), "landmarks")


@dataclass(frozen=True)
class Cascade:
    """A fitted head with its encoder, and of held-out texts the head's `values` and the full `scores`, in pairs."""

    encoder: Encoder
    head: Head
    values: np.ndarray
    scores: np.ndarray
    # Where the cascade was saved: the encoder it was fitted with.
    expected: EncoderIdentity | None = None

    @classmethod
    def fit(cls, encoder: Encoder, texts: list[str], scores: np.ndarray, held_out: np.ndarray) -> Cascade:
        """From the corpus and its full scores; `held_out` says which scores are those of texts the model had not seen.

        Where a held-out text's honest score differs from what `scores` has, put the honest one there.
        """
        head, values = Head.fit(_embed(encoder, texts), scores)
        rows = evenly(np.flatnonzero(held_out), MOST_KEPT)
        return cls(encoder, head, values[rows], scores[rows])

    def value(self, texts: list[str]) -> np.ndarray:
        """The head's value of every text."""
        require_same_encoder(self.encoder, self.expected, "cascade")
        return self.head.values(_embed(self.encoder, texts)) if texts else np.empty(0)

    def cut(self, offset: float, recall: float = RECALL) -> Cut:
        """Where to cut so that `recall` of what scores above `offset` is sent to the full model."""
        check_recall(recall)
        k = math.ceil((1 - recall) * (int((self.scores > offset).sum()) + 1) - 1e-9)
        n = math.ceil(k / (1 - recall) - 1e-9) - 1
        if n > len(self.scores):
            return Cut(-math.inf, recall, 1.0, len(self.scores))
        flagged = np.sort(self.values[np.argsort(-self.scores, kind="stable")[:n]])
        value = float(flagged[k - 1])
        return Cut(value, recall, float((self.values >= value).mean()), n)

    def estimate(self, values: np.ndarray, normal_scores: np.ndarray) -> np.ndarray:
        """Scores that rank among `normal_scores` (ascending) as `values` rank among those of held-out texts."""
        share = np.linspace(0, 1, min(1001, len(self.values)))
        return np.interp(values, np.quantile(self.values, share), np.quantile(normal_scores, share))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """As plain arrays, for a model's folder."""
        head = self.head
        return {
            "landmarks": head.landmarks,
            "coefficients": head.coefficients,
            "intercept": np.array(head.intercept),
            "values": self.values,
            "scores": self.scores,
        }

    @classmethod
    def from_arrays(cls, encoder: Encoder, arrays: dict[str, np.ndarray], expected: EncoderIdentity) -> Cascade:
        """From what to_arrays gave, and the encoder it was fitted with."""
        check_arrays(arrays, ARRAYS)
        head = Head(arrays["landmarks"], arrays["coefficients"], float(arrays["intercept"]))
        return cls(encoder, head, arrays["values"], arrays["scores"], expected)


def static_encoder_of(encoder: Encoder) -> LoadedEncoder:
    """The static encoder distilled from a model's encoder, which says itself what there is to say of the texts."""
    settings = getattr(encoder, "settings", None)
    if settings is None:
        raise UsageError(
            f"a cascade needs an encoder that strays loads by name, to distil it; got {encoder!r:.60}. Pass a cheap "
            "encoder object as {cascade}",
            param="cascade",
        )
    if is_static(settings.name):
        raise UsageError(f"the encoder {settings.name!r} is static already, so that a cascade would gain nothing")
    name = "fast" if settings.name == "default" else f"fast:{settings.name}"
    return load_encoder(name, revision=settings.revision, pooling=settings.pooling).without_warnings()


def _embed(encoder: Encoder, texts: list[str]) -> np.ndarray:
    """Static embeddings and, since those have lost it, how long the texts are."""
    length = np.log1p([len(text) for text in texts])
    return np.c_[encoder.encode(texts), 0.5 * length].astype(np.float32)


def _kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """exp(-|a - b|^2) of all rows, in float32."""
    # The squares ride along in two more columns, so that one product makes the exponent.
    left = np.c_[2 * A, np.einsum("ij,ij->i", A, A), np.ones(len(A), np.float32)]
    right = np.c_[B, -np.ones(len(B), np.float32), -np.einsum("ij,ij->i", B, B)]
    K = left @ right.T
    np.minimum(K, 0, out=K)
    return np.asarray(np.exp(K, out=K))


def _normal_equations(Z: np.ndarray, target: np.ndarray, landmarks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    A, b = np.zeros((len(landmarks), len(landmarks))), np.zeros(len(landmarks))
    for start in range(0, len(Z), ROWS_AT_ONCE):
        K = _kernel(Z[start : start + ROWS_AT_ONCE], landmarks)
        A += K.T @ K
        b += K.T @ target[start : start + ROWS_AT_ONCE]
    return A, b
