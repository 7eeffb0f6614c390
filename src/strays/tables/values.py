"""Arrow's values as Python's, and as text and JSON can hold them."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa

from strays.errors import DataError, first_line

# What is turned into Python's values at once.
WRITTEN_BYTES, WRITTEN_CELLS = 2**22, 200_000
# Up to as many strings are an array before pandas is imported; a batch of more is one of many.
FEW_STRINGS = 2000


def string_array(values: Sequence[str | None]) -> pa.Array:
    """What pa.array makes of strings, which imports pandas, where it is installed, to see whether they are a Series.

    That takes longer than to read a small file.

    >>> string_array(["a", "", None, "bc"]).to_pylist()
    ['a', '', None, 'bc']
    """
    if len(values) > FEW_STRINGS:
        return pa.array(values, pa.string())
    encoded = [(value or "").encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    there = np.packbits(np.array([value is not None for value in values], dtype=bool), bitorder="little")
    buffers = (pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)), pa.py_buffer(there))
    return pa.StringArray.from_buffers(len(values), *buffers)


def masked_array(values: np.ndarray, absent: np.ndarray) -> pa.Array:
    """What pa.array makes of floats, booleans or strings of NumPy's, null where they are absent; without pandas too.

    >>> masked_array(np.array([0.5, 1.5]), absent=np.array([True, False])).to_pylist()
    [None, 1.5]
    """
    if values.dtype == object:
        return string_array([None if gone else value for value, gone in zip(values, absent, strict=True)])
    there = pa.py_buffer(np.packbits(~absent, bitorder="little"))
    data = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [there, pa.py_buffer(data)])


def integers(column: pa.Array) -> np.ndarray:
    """A column of whole numbers, none of them null, as NumPy's; Array.to_numpy would import pandas.

    >>> integers(pa.array([1, 2, 3], pa.int8())[1:])
    array([2, 3], dtype=int8)
    """
    dtype = np.dtype(column.type.to_pandas_dtype())
    _, data = column.buffers()
    return (
        np.frombuffer(data, dtype, len(column), column.offset * dtype.itemsize) if len(column) else np.empty(0, dtype)
    )


def strings(column: pa.Array) -> list[str | None]:
    """A column's values as strings; what is no string is cast, which loads more of Arrow."""
    values: list[str | None] = (column if column.type == pa.string() else column.cast(pa.string())).to_pylist()
    return values


def pieces(batch: pa.RecordBatch) -> Iterator[Iterable[tuple[Any, ...]]]:
    """The rows of a batch as Python's values, in pieces that take little memory."""
    cells = len(batch) * max(batch.num_columns, 1)
    pieces = 1 + max(batch.nbytes // WRITTEN_BYTES, cells // WRITTEN_CELLS)
    step = max(1, len(batch) // pieces)
    for start in range(0, len(batch), step):
        yield zip(*map(_values, batch.slice(start, step).columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    """A column's values; what Python has no value for, such as dates after the year 9999, as Arrow writes them."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, pa.ArrowException) as error:
        try:
            return list(column.cast(pa.string()).to_pylist())
        except pa.ArrowException:
            raise DataError(
                f"a column of {column.type!s:.200} has values that this format cannot hold ({first_line(error):.200}); "
                "write parquet, or remove the column"
            ) from error


def cell_text(value: Any) -> str:
    """A value as a cell of csv holds it."""
    if value is None:
        return ""
    simple = repr(value) if isinstance(value, float) else as_json(value)
    return simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)


def as_json(value: Any) -> Any:
    """A value as JSON can hold it: dates by their ISO form, bytes by their base64, NaN and infinity by their names.

    The names are those that protobuf's JSON uses, and that Spark, among others, reads as numbers.

    >>> as_json([1.5, float("nan"), float("-inf")])
    [1.5, 'NaN', '-Infinity']
    """
    if isinstance(value, dict):
        return {str(key): as_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return value if value is None or isinstance(value, str | int) else str(value)
