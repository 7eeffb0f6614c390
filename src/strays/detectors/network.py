"""The bias-free network phi(x; W) that AI-SVDD, Deep SVDD and their kin train, and the distances they score with.

    phi(x; W) = W^L a(W^(L-1) ... a(W^1 x))

Weights are plain arrays of shape (outputs, inputs): float32 while they are trained (training.py), float64 for scoring.
The products of `phi` depend on the batch by rounding, those of `latents`, which scores, do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from strays.detectors.exact import LinearMap
from strays.detectors.threads import in_blocks

# What is left of a negative input. A little keeps a unit that no row switches on alive: its gradient is never zero.
ACTIVATIONS = {"relu": 0.0, "leaky_relu": 0.1, "linear": 1.0}
# Rows pushed through the network at once when scoring: bounds memory, changes no score.
ROWS_AT_ONCE = 256


def phi(x: np.ndarray, weights: Sequence[np.ndarray], activation: str) -> np.ndarray:
    """Map rows x of shape (n, d) to latents of shape (n, latent_size)."""
    for w in weights[:-1]:
        x = rectify(x @ w.T, activation)
    return x @ weights[-1].T


def rectify(h: np.ndarray, activation: str) -> np.ndarray:
    """max(h, slope * h), with the slope of the activation."""
    return np.maximum(h, ACTIVATIONS[activation] * h)


def squared_distance(z: np.ndarray, center: np.ndarray) -> np.ndarray:
    """|z_i - c|^2 for each row of z."""
    return ((z - center) ** 2).sum(axis=1)


def weighted_center(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """c* = sum_i y_i z_i / sum_i y_i, the minimiser of sum_i y_i |z_i - c|^2 while sum y > 0."""
    return (y @ z) / y.sum()


def exact_layers(weights: Sequence[np.ndarray]) -> list[LinearMap]:
    """The layers for scoring, where what becomes of a row must not depend on its batch (exact.py)."""
    return [LinearMap.of(w) for w in weights]


def latents(X: np.ndarray, layers: Sequence[LinearMap], activation: str) -> np.ndarray:
    """Phi over many rows in NumPy, a block at a time; a row's latents depend on the row alone."""

    def block(x: np.ndarray) -> np.ndarray:
        for layer in layers[:-1]:
            x = rectify(layer(x), activation)
        return layers[-1](x)

    return in_blocks(block, X, ROWS_AT_ONCE)


def initial_weights(sizes: Sequence[int], rng: np.random.Generator) -> list[np.ndarray]:
    """Random orthogonal weights, one float32 array for each layer from sizes[0] to sizes[-1].

    They keep distances as well as a random map can, so that a network hardly trained still scores sensibly.
    """
    weights = []
    for inputs, outputs in pairwise(sizes):
        wide = max(inputs, outputs), min(inputs, outputs)
        q, _ = np.linalg.qr(rng.standard_normal(size=wide, dtype=np.float32))
        weights.append(np.ascontiguousarray(q if outputs >= inputs else q.T))
    return weights


def spread(X: np.ndarray, weights: Sequence[np.ndarray], activation: str) -> float:
    """Root mean square distance of the latents of (a thousand of) the rows to their mean; 1 where it is nothing."""
    z = phi(X[:: -(-len(X) // 1000)].astype(np.float64), weights, activation)
    return float(np.sqrt(squared_distance(z, z.mean(axis=0)).mean())) or 1.0


def stratified_batches(
    y: np.ndarray, batch_size: int, rng: np.random.Generator, *, reuse: bool
) -> Iterator[np.ndarray]:
    """One pass over the rows in batches that each hold normals and anomalies in the data's own proportion.

    With reuse, anomalies are taken again until every batch holds at least one. Without, batches grow past batch_size
    where they must for their normals to outnumber their anomalies.
    """
    normals, anomalies = np.flatnonzero(y >= 0), np.flatnonzero(y < 0)
    n_batches = min(-(-len(y) // batch_size), len(normals))
    while not reuse and n_batches > 1 and len(normals) // n_batches <= -(-len(anomalies) // n_batches):
        n_batches -= 1
    parts = [np.array_split(rng.permutation(normals), n_batches)]
    if len(anomalies):
        passes = -(-n_batches // len(anomalies)) if reuse else 1
        order = np.concatenate([rng.permutation(anomalies) for _ in range(passes)])
        parts.append(np.array_split(order[: max(n_batches, len(anomalies))], n_batches))
    for batch in zip(*parts, strict=True):
        yield np.concatenate(batch)
