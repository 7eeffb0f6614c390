"""Products and distances of a row that depend on that row alone, bit for bit.

A matrix product adds its terms in an order that a library chooses by the shape of the matrices, a row's place in them,
the threads and the processor, and each order rounds differently. Here no order rounds at all. Every row is rounded
before, to whole multiples of a small power of two:

    x = u m,  m whole,  |m| <= 2^b,      so that  x . z = u_x u_z (m_x . m_z)

By Cauchy and Schwarz every partial sum of m_x . m_z is a whole number of at most |m_x| |m_z| <= 2^(b_x + b_z). While
b_x + b_z <= 52, with one bit to spare for the rounding of m, float64 holds each of them exactly: in any order, in
blocks, fused or not. Rows that are scored have 28 bits and those compared with 24 (`ComparedRows`): the errors of many
of these even out. Distances come out to about eight digits, and those to the nearest rows are then computed again in
full precision. Where more is needed, the fixed factor is cut into two pieces of 18 bits beside 34 (`LinearMap`).

What a score takes from a row beyond products must be elementwise, or a NumPy sum along rows that lie in memory one
number after another: the order of such a sum depends on the row's length alone. A product with a vector (`K @ a`) is
neither: use `weighted_sums`.

Ozaki, Ogita, Oishi and Rump, "Error-Free Transformations of Matrix Multiplication by Using Fast Routines of Matrix
Multiplication and Its Applications", 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

# Bits of a row that is scored and of a row that it is compared with; of a row that is mapped and of a piece of the map.
SCORED, COMPARED = 28, 24
MAPPED, PIECE = 34, 18
# Up to so many lowest values are found one after another.
FEW = 32

T = TypeVar("T")


def on_grid(X: np.ndarray, bits: int) -> np.ndarray:
    """Rows rounded to multiples of 2^-bits of their length, or rather of the power of two above it; float64.

    >>> on_grid(np.array([[1.0, 2.0, 1 / 3]]), bits=4)
    array([[1.  , 2.  , 0.25]])
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    unit = np.ldexp(1.0, np.frexp(lengths(X))[1] - bits)[:, None]
    grid = X / unit
    np.rint(grid, out=grid)
    return np.multiply(grid, unit, out=grid)


def lengths(X: np.ndarray) -> np.ndarray:
    """|x| of each row."""
    return np.sqrt(np.square(X, dtype=np.float64).sum(axis=1))


def weighted_sums(A: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The sum over each row of A times the weights, `A @ weights` but for rounding; A is overwritten."""
    return np.multiply(A, weights, out=A).sum(axis=1)


@dataclass(frozen=True)
class ComparedRows:
    """Rows that others are compared with; distances are in units of `scale`.

    They are centred first, as distances between rows far from the origin would lose digits.

    >>> compared = ComparedRows.of(np.array([[9.0, 0.0], [9.0, 4.0]]))
    >>> X = np.array([[9.0, 1.0]])
    >>> D = compared.squared_distances(compared.placed(X))
    >>> compared.nearest(X, D, k=1)
    (array([[1.]]), array([[0]]))
    """

    rows: np.ndarray
    center: np.ndarray
    scale: float
    # The placed rows on the grid, times -2: what a squared distance takes of the product.
    doubled: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, center: np.ndarray | None = None, scale: float = 1.0) -> Self:
        """Centred on the mean of the rows, unless a centre is given."""
        center = rows.mean(axis=0, dtype=np.float64) if center is None else center
        grid = on_grid(placed(rows, center, scale), COMPARED)
        return cls(rows, center, scale, -2 * grid, (grid**2).sum(axis=1))

    def placed(self, X: np.ndarray) -> np.ndarray:
        """Rows centred and scaled like those compared with."""
        return placed(X, self.center, self.scale)

    def squared_distances(self, Z: np.ndarray) -> np.ndarray:
        """|z_i - x_j|^2 as a matrix (placed rows, rows compared with)."""
        grid = on_grid(Z, SCORED)
        D = grid @ self.doubled.T
        D += self.squares
        D += (grid**2).sum(axis=1, keepdims=True)
        return np.maximum(D, 0, out=D)

    def k_nearest(self, X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Like `nearest`, where the other distances are of no use."""
        return self.nearest(X, self.squared_distances(self.placed(X)), k)

    def nearest(self, X: np.ndarray, D: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances of rows X to the k nearest rows compared with, nearest first, and which these are: both (rows, k).

        D has the squared distances to all, or to the first of them; it gets the full precision of those to the nearest.
        """
        _, which = lowest(D, k)
        away = X[:, None].astype(np.float64) - self.rows[which]  # (rows of X, k, features)
        distance = np.sqrt(np.multiply(away, away, out=away).sum(axis=2)) / self.scale
        np.put_along_axis(D, which, distance**2, axis=1)
        order = distance.argsort(axis=1, kind="stable")
        return np.take_along_axis(distance, order, axis=1), np.take_along_axis(which, order, axis=1)


def placed(X: np.ndarray, center: np.ndarray, scale: float) -> np.ndarray:
    """Rows centred and scaled, in float64."""
    Z = np.subtract(X, center, dtype=np.float64)
    return np.divide(Z, scale, out=Z)


@dataclass(frozen=True)
class LinearMap:
    """x -> W x, with W in two pieces; about ten digits are right.

    >>> LinearMap.of(np.array([[1.0, 2.0], [0.0, 0.1]]))(np.array([[3.0, 4.0]])).round(9)
    array([[11. ,  0.4]])
    """

    pieces: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, W: np.ndarray) -> Self:
        """Of a matrix (outputs, inputs)."""
        first = on_grid(W, PIECE)
        return cls((first, on_grid(W - first, PIECE)))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """W x for each row of X: (rows, outputs)."""
        grid = on_grid(X, MAPPED)
        first, second = self.pieces
        return grid @ first.T + grid @ second.T


def lowest(D: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k lowest values of each row of D, lowest first, and where they are; of equal ones the first.

    >>> lowest(np.array([[3.0, 1.0, 2.0, 1.0]]), 3)
    (array([[1., 1., 2.]]), array([[1, 3, 2]]))
    """
    if k > FEW:
        where = D.argsort(axis=1, kind="stable")[:, :k]
        return np.take_along_axis(D, where, axis=1), where
    rows = np.arange(len(D))
    values, where = np.empty((len(D), k)), np.empty((len(D), k), dtype=np.intp)
    for i in range(k):  # five passes take a fraction of the time of a partition
        where[:, i] = D.argmin(axis=1)
        values[:, i] = D[rows, where[:, i]]
        D[rows, where[:, i]] = np.inf
    np.put_along_axis(D, where, values, axis=1)
    return values, where


def rows_at_once(k: int, d: int) -> int:
    """How many rows to compare at once with others, so that what lies between stays in a processor's cache."""
    return max(1, min(64, 2**20 // (k * d)))


class Prepared(Generic[T]):
    """What scoring makes of an object's arrays, made once, as a single row would wait for it most.

    Kept beside the objects, which scoring does not change, and which are copied and saved without it; made anew where
    one of the attributes named was replaced.
    """

    def __init__(self, make: Callable[[Any], T], *attributes: str) -> None:
        self._make, self._attributes = make, attributes
        self._kept: WeakKeyDictionary[Any, tuple[list[Any], T]] = WeakKeyDictionary()

    def of(self, it: Any) -> T:
        """What was made of this object."""
        now = [getattr(it, name) for name in self._attributes]
        kept = self._kept.get(it)
        if kept is None or any(a is not b for a, b in zip(kept[0], now, strict=True)):
            kept = self._kept[it] = now, self._make(it)
        return kept[1]
