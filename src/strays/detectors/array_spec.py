"""What the arrays of a saved model must be: shapes, types and limits as data, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from strays.errors import ModelError

FLOATS, WHOLE, SIGNS, BYTES = ("float32", "float64"), ("int32", "int64"), ("int8",), ("uint8",)
# No number of a fitted model is as large. Products and squares of numbers up to here stay finite.
LARGEST = 1e30
# The same for embeddings, whose squares are also taken in float32.
LARGEST_EMBEDDED = 1e15


@dataclass(frozen=True)
class ArraySpec:
    """An array's shape, the types it may have, and its lowest and highest value.

    A size is a number, or a name: whatever has the same name has the same size, at least `fewest`.

    >>> check_arrays({"center": np.zeros(3)}, {"center": ArraySpec((2,))})
    Traceback (most recent call last):
    strays.errors.ModelError: the array 'center' has the shape (3,) and type float64; expected (2) of float64. ...
    """

    shape: tuple[int | str, ...] = ()
    types: tuple[str, ...] = ("float64",)
    low: float = -LARGEST
    high: float = LARGEST
    fewest: int = 1
    ascending: bool = False
    may_be_nan: bool = False

    def check(self, name: str, array: np.ndarray, sizes: dict[str, int]) -> None:
        """Raise unless the array is so; sizes that are seen for the first time are noted."""
        for size, found in zip(self.shape, array.shape, strict=False):
            if isinstance(size, str) and len(self.shape) == array.ndim and found >= self.fewest:
                sizes.setdefault(size, found)
        expected = tuple(sizes.get(size, -1) if isinstance(size, str) else size for size in self.shape)
        if array.shape != expected or str(array.dtype) not in self.types:
            words = ", ".join(str(n) if n >= 0 else f"{self.fewest} or more" for n in expected)
            raise ModelError(
                f"the array {name!r:.60} has the shape {array.shape!r:.60} and type {array.dtype}; expected ({words}) "
                f"of {' or '.join(self.types)}. The model's files do not fit together; fit it again"
            )
        bad = self._first_bad(array.reshape(-1))
        if bad is not None:
            raise ModelError(
                f"the array {name!r:.60} holds {bad}; expected {'ascending ' * self.ascending}numbers from "
                f"{self.low:g} to {self.high:g}. The model is damaged; fit it again"
            )

    def _first_bad(self, values: np.ndarray) -> str | None:
        inside = (values >= self.low) & (values <= self.high)
        if self.may_be_nan:
            inside |= np.isnan(values)
        if not inside.all():
            return f"{values[np.argmin(inside)]}"
        falls = values[1:] < values[:-1] if self.ascending else np.zeros(0, dtype=bool)
        return f"{values[np.argmax(falls) + 1]} after {values[np.argmax(falls)]}" if falls.any() else None


def check_arrays(
    arrays: Mapping[str, np.ndarray], expected: Mapping[str, ArraySpec], sizes: dict[str, int] | None = None
) -> None:
    """Raise unless all expected arrays are there and as they should be. Others are not looked at."""
    sizes = {} if sizes is None else sizes
    for name, array in expected.items():
        if name not in arrays:
            raise ModelError(f"there is no array {name!r}: the model is incomplete; fit it again")
        array.check(name, arrays[name], sizes)
