"""Files of rows out: csv, tsv, jsonl or parquet, gzip-compressed where the name ends in .gz, or stdout.

A file appears under its name only when it is complete: it is written beside it and then renamed, so that a failure
leaves whatever was there before.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from functools import partial
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from strays.errors import DataError, UsageError, first_line
from strays.files import replace_file
from strays.tables.read import format_of
from strays.tables.read_csv import SEPARATORS
from strays.tables.table import JSON_TEXT

OUTPUT_FORMATS = ("csv", "tsv", "jsonl", "parquet")
# A spreadsheet runs a cell that begins with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
# Rows of one parquet row group, and bytes, so that long rows do not pile up; more than any part of a job has.
ROW_GROUP, ROW_GROUP_BYTES = 65_536, 2**27
# What is turned into Python's values at once.
WRITTEN_BYTES, WRITTEN_CELLS = 2**22, 200_000
# Bytes read back at once to count rows.
BLOCK = 2**20

WriteBatch = Callable[[pa.RecordBatch], None]


@contextmanager
def open_writer(
    path: str, schema: pa.Schema, format: str | None = None, *, safe_cells: bool = False
) -> Iterator[WriteBatch]:
    """A function that writes record batches to a file; '-' is stdout. The file is complete or not there at all.

    safe_cells puts an apostrophe before csv and tsv texts that a spreadsheet would run as formulas.
    """
    format = output_format(path, format)
    make = {"parquet": _parquet_writer, "jsonl": _jsonl_writer}.get(format)
    with (
        complete_file(path) as file,
        make(file, schema) if make else _csv_writer(file, schema, SEPARATORS[format], safe_cells) as write_batch,
    ):

        def write(batch: pa.RecordBatch) -> None:
            try:
                write_batch(batch)
            except (DataError, pa.ArrowException) as error:
                raise DataError(f"{path}: could not be written: {first_line(error)}") from error

        yield write


def output_format(path: str, format: str | None = None) -> str:
    """The format to write, from the name or as asked; an error where it is none that holds columns."""
    format = format or format_of(path)
    if format not in OUTPUT_FORMATS:
        raise UsageError(f"{path}: cannot write {format}; expected one of {', '.join(OUTPUT_FORMATS)}")
    if format == "parquet" and path.endswith(".gz"):
        raise UsageError(f"{path}: parquet is compressed already; remove .gz from the name")
    return format


@contextmanager
def complete_file(path: str) -> Iterator[IO[bytes]]:
    """A file to write bytes to, compressed where its name ends in .gz; '-' is stdout.

    The file appears complete when the block ends, or not at all.
    """
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if Path(path).is_dir():
        raise DataError(f"{path}: is a folder; expected the name of a file")
    try:
        with replace_file(Path(path)) as file:
            if Path(path).resolve().suffix == ".gz" and file.seekable():  # what a pipe or device gets is as it is
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            else:
                yield file
    except BrokenPipeError:
        raise  # whoever read the pipe has gone, and nobody needs to be told
    except OSError as error:
        raise DataError(f"{path}: could not be written ({error.strerror or error}); it was not changed") from error


@contextmanager
def _parquet_writer(file: IO[bytes], schema: pa.Schema) -> Iterator[WriteBatch]:
    waiting: list[pa.RecordBatch] = []

    def flush() -> None:
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting, schema))
            waiting.clear()

    def write(batch: pa.RecordBatch) -> None:
        waiting.append(batch)
        if sum(len(b) for b in waiting) >= ROW_GROUP or sum(b.nbytes for b in waiting) >= ROW_GROUP_BYTES:
            flush()

    with pq.ParquetWriter(file, schema) as writer:
        yield write
        flush()


@contextmanager
def _jsonl_writer(file: IO[bytes], schema: pa.Schema) -> Iterator[WriteBatch]:
    json_columns = [field.name for field in schema if field.metadata == JSON_TEXT]

    def write(batch: pa.RecordBatch) -> None:
        for rows in _pieces(batch):
            for values in rows:
                row = dict(zip(schema.names, values, strict=True))
                for name in json_columns:
                    row[name] = None if row[name] is None else json.loads(row[name])
                line = json.dumps(_plain(row), ensure_ascii=False, allow_nan=False)
                file.write(line.encode("utf-8") + b"\n")

    yield write


@contextmanager
def _csv_writer(file: IO[bytes], schema: pa.Schema, separator: str, safe_cells: bool) -> Iterator[WriteBatch]:
    # The csv module leaves a lone carriage return unquoted, and then cannot read its own line again.
    needs_quotes = re.compile(f'[{separator}"\r\n]').search

    def cell(value: Any) -> str:
        text = _cell_text(value)
        if safe_cells and isinstance(value, str) and text.startswith(FORMULA_STARTS):
            text = "'" + text
        return '"' + text.replace('"', '""') + '"' if needs_quotes(text) else text

    def put(rows: Iterable[Iterable[Any]]) -> None:
        lines = (separator.join(map(cell, row)) or '""' for row in rows)
        file.write("".join(line + "\n" for line in lines).encode("utf-8"))

    def write(batch: pa.RecordBatch) -> None:
        for rows in _pieces(batch):
            put(rows)

    put([schema.names])
    yield write


def _pieces(batch: pa.RecordBatch) -> Iterator[Iterable[tuple[Any, ...]]]:
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


def _cell_text(value: Any) -> str:
    if value is None:
        return ""
    plain = repr(value) if isinstance(value, float) else _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A value as JSON can hold it: dates by their ISO form, bytes by their base64, NaN and infinity as null."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return value if value is None or isinstance(value, str | int) else str(value)


def count_rows(path: str, format: str) -> int:
    """How many rows a written file holds: parquet says so itself, and the others have one line end a row."""
    try:
        if format == "parquet":
            return int(pq.read_metadata(path).num_rows)
        with gzip.open(path, "rb") if path.endswith(".gz") else Path(path).open("rb") as file:
            blocks = iter(partial(file.read, BLOCK), b"")
            if format == "jsonl":
                return sum(block.count(b"\n") for block in blocks)
            return _csv_lines(blocks) - 1  # without the names of the columns
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise DataError(f"{path}: could not be read back to check it ({first_line(error)}); score again") from error


def _csv_lines(blocks: Iterable[bytes]) -> int:
    """Line ends outside quotes: those after an even number of quotes, since a quote inside a value is doubled."""
    lines, inside = 0, 0
    for block in blocks:
        pieces = block.split(b'"')
        lines += sum(piece.count(b"\n") for piece in pieces[inside::2])
        inside ^= (len(pieces) - 1) % 2
    return lines
