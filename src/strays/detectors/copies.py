"""Copies do not vouch for each other: which rows to compare with, so that a small group of alike rows counts once.

A row that is repeated, exactly or nearly, would have its copies as nearest neighbours and look like the most normal row
of all. So rows are linked that are nearer to each other than

    r = 2 median(d) - q95(d), at least 0.4, at most 0.7 and median(d),    d = distance of a row to its nearest other one

the mirror image of the farthest 5 %: nearer than nearly all rows are to any other. (The mean squared distance between
rows is 1.5 here. Equal rows do not count as another one in d.) Rows that are linked, directly or through others, form
a group. A group of less than a twentieth of all rows is represented by one row, the one with the closest links. A
larger group is a class of alike rows, such as form letters or greetings, and stays as it is. So does a group with a row
that a person called normal.

Anomalies of one kind need not be copies to vouch for each other. Where rows keep their distance, so that there are no
tight groups of normals, the rows with the lowest mean kernel exp(-4 |x - z|) are the outskirts of the pile; those among
them that have each other for neighbours are not compared with either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

# A group of at least this share of the rows, and of at least so many, is a class of normal rows that are alike.
CLASS_SHARE, LEAST_CLASS = 1 / 20, 6
# Chosen on ten corpora; see benchmarks/LOG.md.
LEAST_RADIUS, MOST_RADIUS = 0.4, 0.7
# The outskirts are this share of the rows at the higher evenness and above, none at the lower; a row there is not
# compared with where so many of its nearest rows are there, too.
OUTSKIRTS, EVENNESS, N_NEAREST, NEAREST_THERE = 0.1, (0.6, 0.8), 5, 2
# Nearest rows of a row that are looked at: enough to find all that hang together.
N_LINKS = 16
# Rows nearer than this share of their length are the same row: rounding leaves a little.
EQUAL = 1e-6
# Nearer than this, in float32, rows may well be equal.
NEARLY_EQUAL = 0.01
# A distance at the edge of the radius may come out this much larger when it is computed again.
ROUNDING = 1e-5
# Rows whose distances to all rows are computed at once; fewer where these are more numbers than so many.
ROWS_AT_ONCE, DISTANCES_AT_ONCE = 1024, 2**25


@dataclass(frozen=True)
class Groups:
    """Which rows to compare with (`kept`), and within which `radius` of each of them a row is a copy of it.

    The radius is 0 for rows of a class. `evenness` is 2 - q95(d) / median(d): near 1 where rows keep their distance,
    near 0 where they form tight groups. Rows that are copies of one another have the same number in `group`.
    """

    kept: np.ndarray
    group: np.ndarray
    radius: np.ndarray
    evenness: float


def unit_of_length(X: np.ndarray) -> float:
    """The unit of length in which the mean squared distance between rows is 1.5."""
    return float(np.sqrt(((X - X.mean(axis=0, dtype=np.float64)) ** 2).sum(axis=1).mean() / 0.75))


def nearest_others(X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances and indices of the k rows nearest to each row, itself left out, nearest first: both (n, at most k)."""
    k = min(k, len(X) - 1)
    distance, neighbour = np.empty((len(X), k), np.float32), np.empty((len(X), k), np.intp)
    for rows, D in _distances(X):
        D[np.arange(len(D)), np.arange(rows.start, rows.stop)] = np.inf
        near = np.argpartition(D, k - 1, axis=1)[:, :k]
        near = np.take_along_axis(near, np.take_along_axis(D, near, axis=1).argsort(axis=1, kind="stable"), axis=1)
        neighbour[rows], distance[rows] = near, np.take_along_axis(D, near, axis=1)
    return distance, neighbour


def _distances(X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Some rows at a time, and their distances to all rows, in float32."""
    X = np.ascontiguousarray(X, dtype=np.float32)
    squares = np.einsum("ij,ij->i", X, X)
    at_once = max(1, min(ROWS_AT_ONCE, DISTANCES_AT_ONCE // len(X)))
    for start in range(0, len(X), at_once):
        rows = slice(start, min(start + at_once, len(X)))
        D = squares[rows, None] + squares - 2 * X[rows] @ X.T
        yield rows, np.sqrt(D.clip(min=0, out=D), out=D)


class _Links(NamedTuple):
    """The group of each row and how closely it is linked, the radius, and the evenness."""

    group: np.ndarray
    closeness: np.ndarray
    radius: float
    evenness: float


def _link(X: np.ndarray) -> _Links:
    """Link rows X; equal ones are looked at once, so that none has only its equals for neighbours."""
    seen: dict[bytes, int] = {}
    place = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in X])
    first, count = np.unique(place, return_index=True, return_counts=True)[1:]
    X = X[first]
    n = len(X)
    if n < 2:
        return _Links(place, np.zeros(len(place)), 0.0, 0.0)
    distance, neighbour = nearest_others(X, N_LINKS)
    differs = distance > NEARLY_EQUAL
    nearest = np.where(differs.any(axis=1), distance[np.arange(n), differs.argmax(axis=1)], np.nan)[place]
    nearest = nearest[~np.isnan(nearest)]
    middle, far = np.quantile(nearest, (0.5, 0.95)) if len(nearest) else (1.0, 1.0)
    radius = float(min(max(2 * middle - far, LEAST_RADIUS), MOST_RADIUS, middle))
    linked = distance <= radius
    group = connected(n, np.nonzero(linked)[0], neighbour[linked])
    closeness = radius * (count - 1) + (count[neighbour] * np.where(linked, radius - distance, 0)).sum(axis=1)
    return _Links(group[place], closeness[place], radius, float(2 - far / middle))


def connected(n: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The group of each of n rows, of which each a[i] is linked to b[i], directly or through others; the first is 0.

    SciPy's connected_components gives the same, and takes longer to import than this to run.

    >>> connected(5, np.array([4, 1]), np.array([0, 4]))
    array([0, 0, 1, 2, 0])
    """
    first = np.arange(n)  # a row of the same group, none later
    while True:
        lower, nearer = np.minimum(first[a], first[b]), first.copy()
        np.minimum.at(nearer, first[a], lower)
        np.minimum.at(nearer, first[b], lower)
        nearer = nearer[nearer]
        if np.array_equal(nearer, first):
            return np.unique(first, return_inverse=True)[1]
        first = nearer


def _of_classes(group: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Which rows, each there `count` times, belong to a group that is a class."""
    return (np.bincount(group, weights=count) >= max(CLASS_SHARE * count.sum(), LEAST_CLASS))[group]


def in_classes(X: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Which of the rows X, each there `count` times, belong to a class of alike rows.

    >>> X = np.array([[0.0], [1], [2], [3], [4], [9], [9.001]])
    >>> in_classes(X, count=np.array([1, 1, 1, 1, 1, 5, 1]))
    array([False, False, False, False, False,  True,  True])
    """
    return _of_classes(_link(X).group, count)


def find_groups(X: np.ndarray, trusted: np.ndarray) -> Groups:
    """The groups of rows X, in units of `unit_of_length`; `trusted` says which of them a person called normal.

    >>> X = np.array([[0.0], [1], [2], [3], [4], [9], [9.001]])
    >>> find_groups(X, trusted=np.zeros(7, dtype=bool)).kept
    array([ True,  True,  True,  True,  True,  True, False])
    """
    n = len(X)
    group, closeness, radius, evenness = _link(X)
    stays = _of_classes(group, np.ones(n)) | np.isin(group, group[trusted])
    # The first row of each group, those with the closest links first, represents it.
    order = np.argsort(-closeness, kind="stable")
    kept = stays.copy()
    kept[order[np.unique(group[order], return_index=True)[1]]] = True
    if kept.sum() < 2:  # a handful of rows, all alike
        return Groups(np.ones(n, dtype=bool), np.arange(n), np.zeros(n), 0.0)
    alone = np.where(stays, n + np.arange(n), group)
    return Groups(kept, alone, np.where(stays, 0.0, radius + ROUNDING), evenness)


def outskirts(X: np.ndarray, presumed: np.ndarray, evenness: float) -> np.ndarray:
    """Which of the rows that are only `presumed` normal are far from most rows, and near others that are so."""
    low, high = EVENNESS
    n = int(OUTSKIRTS * np.clip((evenness - low) / (high - low), 0, 1) * len(X))
    outer = np.zeros(len(X), dtype=bool)
    if n == 0:
        return outer
    settled = np.concatenate([np.exp(-4 * D).mean(axis=1) for _, D in _distances(X)])  # the mean kernel
    settled[~presumed] = np.inf
    outer[np.argsort(settled, kind="stable")[:n]] = True
    outer &= presumed
    _, nearest = nearest_others(X, N_NEAREST)
    return outer & (outer[nearest].sum(axis=1) >= NEAREST_THERE)
