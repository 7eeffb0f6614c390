"""A corpus in two dimensions: texts that are alike lie close together.

Up to some thousand points are laid out by t-SNE (van der Maaten and Hinton 2008), on the directions in which the
embeddings differ most; points beyond those are placed among the landmarks they are most like. Distances between groups
mean little, as with every such map; who is near whom means something.
"""

from __future__ import annotations

import numpy as np

from strays.detectors.sampling import evenly

# Points laid out by t-SNE itself; it takes some seconds for as many.
LANDMARKS = 1500
# Directions kept of the embeddings; the others are mostly noise to t-SNE, and slow.
DIRECTIONS = 50
PERPLEXITY = 30
# How many landmarks place another point.
NEIGHBOURS = 5
# Rows whose distances to all landmarks are held in memory at a time.
AT_ONCE = 4096


def layout(X: np.ndarray, *, random_state: int | None = 0) -> np.ndarray:
    """A place for each embedding, float32 (n, 2) between 0 and 1; the same seed gives the same places."""
    rng = np.random.default_rng(random_state)
    Z = _directions(np.asarray(X, dtype=np.float64))
    distinct, which = np.unique(Z, axis=0, return_inverse=True)
    which = which.reshape(-1)  # some versions of NumPy keep the axis
    # Landmarks are distinct, so that a thousand copies of one text do not take the map for themselves.
    chosen = np.sort(rng.permutation(len(distinct))[:LANDMARKS])
    landmarks = distinct[chosen]
    at = _tsne(landmarks, rng)
    if len(chosen) < len(distinct):
        at = _among(distinct, landmarks, at, rng)
    at = at[which]
    repeated = np.bincount(which)[which] > 1
    at[repeated] += _spread(repeated.sum(), rng) * 0.004 * np.ptp(at, axis=0).max(initial=0)
    return _unit(at)


def _directions(X: np.ndarray) -> np.ndarray:
    """The embeddings by the few directions in which they differ most, rounded so that equal ones stay equal."""
    X = X - X.mean(axis=0)
    scale = np.abs(X).max(initial=0)
    if scale == 0:
        return np.zeros((len(X), 1))
    X = X / scale
    # The covariance of a sample is enough to find the directions, and much faster.
    sample = evenly(X, 10_000)
    _, vectors = np.linalg.eigh(sample.T @ sample)
    kept = vectors[:, ::-1][:, :DIRECTIONS]
    return np.round(X @ kept, 6) + 0.0  # no -0.0, which np.unique takes for a number of its own


def _tsne(Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n = len(Z)
    if n <= 3:  # nothing to trade off: a point, a line, a triangle
        angle = 2 * np.pi * np.arange(n) / n
        return np.c_[np.cos(angle), np.sin(angle)]
    from sklearn.manifold import TSNE

    start = Z[:, :2] if Z.shape[1] > 1 else np.c_[Z, np.zeros(n)]
    spread = start[:, 0].std()
    start = (1e-4 * start / max(spread, 1e-12) + 1e-6 * _spread(n, rng)).astype(np.float32)
    perplexity, seed = min(PERPLEXITY, (n - 1) / 3), int(rng.integers(2**31))
    tsne = TSNE(perplexity=perplexity, init=start, max_iter=500, angle=0.8, random_state=seed)
    return np.asarray(tsne.fit_transform(Z.astype(np.float32)), dtype=np.float64)


def _among(Z: np.ndarray, landmarks: np.ndarray, at: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each point at the weighted mean of its nearest landmarks, a landmark at its own place."""
    placed = np.empty((len(Z), 2))
    squares = (landmarks**2).sum(axis=1)
    for start in range(0, len(Z), AT_ONCE):
        block = Z[start : start + AT_ONCE]
        far = np.maximum((block**2).sum(axis=1)[:, None] - 2 * block @ landmarks.T + squares, 0)
        near = np.argpartition(far, NEIGHBOURS, axis=1)[:, : NEIGHBOURS + 1]
        d = np.take_along_axis(far, near, axis=1)
        # Beyond the last of them a landmark has no say; a point on top of a landmark belongs to it alone.
        weight = np.maximum(1 - d / np.maximum(d.max(axis=1, keepdims=True), 1e-12), 0) / (d + 1e-9) + 1e-12
        # A landmark far on the map from the nearest one is left out: the middle between two groups is no place.
        first = at[np.take_along_axis(near, d.argmin(axis=1)[:, None], axis=1)]
        apart = ((at[near] - first) ** 2).sum(axis=2)
        weight *= np.exp(-apart / (2 * (0.04 * np.ptp(at, axis=0).max()) ** 2))
        place = (weight[:, :, None] * at[near]).sum(axis=1) / weight.sum(axis=1)[:, None]
        # As far from the mean as such landmarks lie from one another, so that points do not pile up.
        loose = np.sqrt((weight * apart).sum(axis=1) / weight.sum(axis=1))
        own = d.min(axis=1) < 1e-9
        placed[start : start + AT_ONCE] = place + np.where(own, 0, 0.35 * loose)[:, None] * _spread(len(block), rng)
    return placed


def _spread(n: int, rng: np.random.Generator) -> np.ndarray:
    """Steps in random directions, none longer than 1."""
    angle, length = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.uniform(0, 1, n))
    return np.c_[length * np.cos(angle), length * np.sin(angle)]


def _unit(at: np.ndarray) -> np.ndarray:
    """Places moved and scaled to between 0 and 1, the middle where all are one."""
    low, high = at.min(axis=0), at.max(axis=0)
    span = high - low
    if not span.max() > 0:
        return np.full(at.shape, 0.5, dtype=np.float32)
    flat = span <= 1e-9 * span.max()
    unit = np.where(flat, 0.5, (at - low) / np.where(flat, 1, span))
    return np.clip(unit, 0, 1).astype(np.float32)
