"""A table cut into chunks of rows: small enough to hold, and the same ones whatever the reader's batches are.

A chunk is full with a number of rows or of bytes, whichever comes first. Both are counted row by row, so that cutting
from the middle of a file gives the chunks that cutting from its start gives from there on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from strays.tables.table import JSON_ROW, Table
from strays.tables.values import integers

PART_ROWS = 50_000
PART_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a table; `last` where the table ends with them.

    >>> table = Table.of(pa.table({"text": ["a", "b", "c"]}))
    >>> [(chunk.first_row, len(chunk.rows), chunk.last) for chunk in cut(table, most_rows=2)]
    [(0, 2, False), (2, 1, True)]
    """

    first_row: int
    rows: pa.Table
    last: bool

    def digest(self) -> str:
        """A hash of the values, the same however the rows were read."""
        hashed = hashlib.blake2b(digest_size=16)
        for field, column in zip(self.rows.schema, self.rows.columns, strict=True):
            hashed.update(f"{field.name}\0{field.type}\0{len(column)}\0".encode())
            _feed(hashed, pa.concat_arrays([_simplified(piece) for piece in column.chunks]))
        return hashed.hexdigest()


def cut(
    table: Table, first_row: int = 0, *, most_rows: int = PART_ROWS, most_bytes: int = PART_BYTES
) -> Iterator[Chunk]:
    """The chunks of a table from a row on, which must be one that a chunk starts with."""
    at, size = first_row, 0
    waiting: list[pa.RecordBatch] = []
    n = 0
    for batch in table.batches(first_row):
        bytes_to = np.cumsum(row_bytes(batch))  # up to and with each row
        start = 0
        while start < len(batch):
            before = bytes_to[start - 1] if start else 0
            fitting = int(np.searchsorted(bytes_to[start:], before + most_bytes - size, side="right"))
            take = min(fitting, most_rows - n, len(batch) - start)
            if take == 0 and n:  # full, and more follow
                yield Chunk(at, pa.Table.from_batches(waiting, table.schema), last=False)
                at, n, size, waiting = at + n, 0, 0, []
                continue
            take = max(take, 1)  # a row larger than a chunk is a chunk of its own
            waiting.append(batch.slice(start, take))
            n, size, start = n + take, size + int(bytes_to[start + take - 1] - before), start + take
    if waiting:
        yield Chunk(at, pa.Table.from_batches(waiting, table.schema), last=True)


def row_bytes(batch: pa.RecordBatch) -> np.ndarray:
    """About how many bytes each row takes; its own text does not count, so that chunks are those of other formats."""
    columns = [column for field, column in zip(batch.schema, batch.columns, strict=True) if field != JSON_ROW]
    return np.add.reduce([np.zeros(len(batch)), *map(_entry_bytes, columns)])


def _entry_bytes(array: pa.Array) -> np.ndarray:
    """About how many bytes each entry takes: a string's own and those that say where it is, eight for anything else."""
    array = _simplified(array)
    if pa.types.is_struct(array.type):
        return np.add.reduce([np.zeros(len(array)), *map(_entry_bytes, array.flatten())])
    if pa.types.is_large_list(array.type):
        inner = np.r_[0, np.cumsum(_entry_bytes(array.flatten()))]
        ends = np.r_[0, np.cumsum(_lengths(array))]
        return inner[ends[1:]] - inner[ends[:-1]]
    return _lengths(array) + 4 if pa.types.is_large_binary(array.type) else np.full(len(array), 8)


def _feed(hashed: hashlib.blake2b, array: pa.Array) -> None:
    """Every value into the hash; what lies in memory under a null is not one."""
    array = _simplified(array)
    hashed.update(integers(array.is_null().cast(pa.uint8())).tobytes())
    if pa.types.is_struct(array.type):
        for child in array.flatten():
            _feed(hashed, child)
    elif pa.types.is_large_list(array.type):
        hashed.update(_lengths(array).tobytes())
        _feed(hashed, array.flatten())
    elif pa.types.is_large_binary(array.type):
        array = _filled(array, b"")
        hashed.update(_lengths(array).tobytes())
        _, ends, data = array.buffers()
        if len(array) and data is not None:
            at = np.frombuffer(ends, np.int64)
            hashed.update(memoryview(data)[at[array.offset] : at[array.offset + len(array)]])
    elif pa.types.is_integer(array.type):
        hashed.update(integers(_filled(array, 0)).tobytes())
    elif not pa.types.is_null(array.type):
        hashed.update(repr(array.to_pylist()).encode("utf-8", "surrogatepass"))


def _simplified(array: pa.Array) -> pa.Array:
    """The same values as one of few types: large binary, integers, large lists, structs; others as they are."""
    is_ = pa.types
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if is_.is_dictionary(array.type):
        array = array.dictionary_decode()
    type_ = array.type
    if is_.is_string(type_) or is_.is_string_view(type_):
        array = array.cast(pa.large_string())
    if is_.is_map(type_):
        return array.cast(pa.large_list(pa.struct([("key", type_.key_type), ("value", type_.item_type)])))
    if is_.is_list(type_) or is_.is_list_view(type_) or is_.is_large_list_view(type_) or is_.is_fixed_size_list(type_):
        return array.cast(pa.large_list(type_.value_type))
    if is_.is_boolean(type_):
        return array.cast(pa.uint8())
    if is_.is_floating(type_) or is_.is_temporal(type_):
        whole = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(type_.bit_width)
        return array.view(whole) if whole else array
    binary = (is_.is_large_string, is_.is_binary, is_.is_binary_view, is_.is_fixed_size_binary)
    return array.cast(pa.large_binary()) if any(is_it(array.type) for is_it in binary) else array


def _filled(array: pa.Array, value: Any) -> pa.Array:
    return array.fill_null(value) if array.null_count else array  # a scalar, like an array of NumPy's, loads pandas


def _lengths(array: pa.Array) -> np.ndarray:
    import pyarrow.compute as pc  # takes as long to load as the rest of Arrow

    lengths = pc.binary_length(array) if pa.types.is_large_binary(array.type) else pc.list_value_length(array)
    return integers(_filled(lengths, 0))
