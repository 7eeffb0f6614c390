"""Lines of a source, and tables of which a row is one line or several; rows and blocks of them are of bounded size."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa

from strays.errors import DataError
from strays.tables.encodings import check_nul, not_utf8
from strays.tables.source import Source, open_binary
from strays.tables.table import BLOCK_BYTES, LONGEST_ROW, ROWS_AT_ONCE, Table
from strays.tables.values import string_array


class Lines:
    """Decoded lines, each with its line end; an error names the line, also of a row that has become too long."""

    def __init__(self, source: Source, name: str) -> None:
        self.source, self.name = source, name
        self.bytes_read, self.limit, self.has_nul = 0, LONGEST_ROW, False

    def end_row(self) -> None:
        """Say that a row ends with the line at hand."""
        self.limit = self.bytes_read + LONGEST_ROW

    def __iter__(self) -> Iterator[str]:
        number = 0
        try:
            with open_binary(self.source) as file:
                for number, raw in enumerate(iter(partial(file.readline, LONGEST_ROW + 1), b""), 1):
                    self.bytes_read += len(raw)
                    if self.bytes_read > self.limit:
                        raise DataError(
                            f"{self.name}, line {number}: a row of more than {LONGEST_ROW:,} bytes; expected shorter "
                            "ones. Look for a quote that is never closed or for missing line ends; if there are none, "
                            "shorten the text"
                        )
                    if b"\0" in raw:
                        check_nul(f"{self.name}, line {number}", raw, warn=not self.has_nul)
                        self.has_nul = True
                    yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise not_utf8(f"{self.name}, line {number}", error) from error
        except (EOFError, OSError, zlib.error) as error:
            what = f"could not be read past line {number} ({error}); the file is cut off or damaged"
            raise DataError(f"{self.name}: {what}") from error


def line_table(
    source: Source,
    name: str,
    format: str,
    schema: pa.Schema,
    rows: Callable[[Lines], Iterator[Any]],
    columns: Callable[[list[Any]], Iterable[Any]],
    most_rows: int = ROWS_AT_ONCE,
) -> Table:
    """A table from two functions: `rows` makes rows of lines, and `columns` turns a block of rows into columns."""

    def reading() -> Reading:
        lines = Lines(source, name)
        return Reading(rows(lines), lambda: lines.bytes_read)

    return row_table(name, format, schema, reading, columns, most_rows)


@dataclass(frozen=True)
class Reading:
    """Rows as they are read, and how many bytes they have taken so far."""

    rows: Iterator[Any]
    bytes_read: Callable[[], int]


def row_table(
    name: str,
    format: str,
    schema: pa.Schema,
    reading: Callable[[], Reading],
    columns: Callable[[list[Any]], Iterable[Any]],
    most_rows: int = ROWS_AT_ONCE,
) -> Table:
    """A table whose rows are read one by one; `columns` turns a block of rows into columns."""

    def batches(first_row: int) -> Iterator[pa.RecordBatch]:
        begun = reading()
        for block in _blocks(begun, first_row, max(1, min(most_rows, ROWS_AT_ONCE))):
            arrays = [_array(values, field.type) for values, field in zip(columns(block), schema, strict=True)]
            yield pa.record_batch(arrays, schema=schema)

    return Table(name, format, schema, batches)


def _array(values: Any, type_: pa.DataType) -> pa.Array:
    return string_array(values) if type_ == pa.string() else pa.array(values, type_)


def _blocks(reading: Reading, first_row: int, most_rows: int) -> Iterator[list[Any]]:
    """So many rows together that a batch is neither small nor large."""
    block: list[Any] = []
    full = BLOCK_BYTES
    for row in islice(reading.rows, first_row, None):
        block.append(row)
        if len(block) == most_rows or reading.bytes_read() >= full:
            yield block
            block, full = [], reading.bytes_read() + BLOCK_BYTES
    if block:
        yield block
