"""Files of rows out: csv, tsv, json, jsonl, parquet or xlsx, gzip-compressed where the name ends in .gz, or stdout.

A file appears under its name only when it is complete: it is written beside it and then renamed, so that a failure
leaves whatever was there before.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from numbers import Number
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from strays.errors import DataError, UsageError, first_line
from strays.files import real_path, replace_file
from strays.tables.delimiter import DELIMITERS
from strays.tables.formats import format_of
from strays.tables.safe_cells import disarm_for
from strays.tables.table import JSON_ROW, JSON_TEXT
from strays.tables.values import as_json, cell_text, pieces
from strays.tables.write_xlsx import count_xlsx_rows, xlsx_writer

OUTPUT_FORMATS = ("csv", "tsv", "json", "jsonl", "parquet", "xlsx")
# Rows of one parquet row group, and bytes, so that long rows do not pile up; more than any part of a job has.
ROW_GROUP, ROW_GROUP_BYTES = 65_536, 2**27
# Bytes read back at once to count rows.
BLOCK = 2**20

WriteBatch = Callable[[pa.RecordBatch], None]


@contextmanager
def open_writer(
    path: str,
    schema: pa.Schema,
    format: str | None = None,
    *,
    safe_cells: bool = False,
    delimiter: str | None = None,
) -> Iterator[WriteBatch]:
    """A function that writes record batches to a file; '-' is stdout. The file is complete or not there at all.

    safe_cells puts an apostrophe before whatever a spreadsheet would run as a formula in csv and tsv (safe_cells.py); a
    delimiter is used where values are separated by one.
    """
    format = output_format(path, format)
    make = {"parquet": _parquet_writer, "jsonl": _jsonl_writer, "json": _json_writer, "xlsx": xlsx_writer}.get(format)
    with complete_file(path) as file, ExitStack() as stack:
        writer = make(file, schema) if make else _csv_writer(file, schema, delimiter or DELIMITERS[format], safe_cells)
        with _named(path):
            write_batch = stack.enter_context(writer)

        def write(batch: pa.RecordBatch) -> None:
            with _named(path):
                write_batch(batch)

        yield write


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Say with an error which file could not be written."""
    try:
        yield
    except (DataError, pa.ArrowException) as error:
        raise DataError(f"{path}: could not be written: {first_line(error)}") from error


def output_format(path: str, format: str | None = None) -> str:
    """The format to write, from the name or as asked; an error where it is none that holds columns."""
    format = format or format_of(path)
    if format not in OUTPUT_FORMATS:
        raise UsageError(f"{path}: cannot write {format}; expected one of {', '.join(OUTPUT_FORMATS)}")
    if format in ("parquet", "xlsx") and path.endswith(".gz"):
        raise UsageError(f"{path}: {format} is compressed already; remove .gz from the name")
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
            if real_path(path).suffix == ".gz" and file.seekable():  # what a pipe or device gets is as it is
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
    import pyarrow.parquet as pq

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
    objects = _as_objects(schema)

    def write(batch: pa.RecordBatch) -> None:
        for line in objects(batch):
            file.write(line + b"\n")

    yield write


@contextmanager
def _json_writer(file: IO[bytes], schema: pa.Schema) -> Iterator[WriteBatch]:
    """One list, with an object on every line but the first and the last."""
    objects, before = _as_objects(schema), b"\n"

    def write(batch: pa.RecordBatch) -> None:
        nonlocal before
        for line in objects(batch):
            file.write(before + line)
            before = b",\n"

    file.write(b"[")
    yield write
    file.write(b"\n]\n")


def _as_objects(schema: pa.Schema) -> Callable[[pa.RecordBatch], Iterator[bytes]]:
    if JSON_ROW.name in schema.names:
        return _with_fields(schema)
    json_columns = [field.name for field in schema if field.metadata == JSON_TEXT]

    def objects(batch: pa.RecordBatch) -> Iterator[bytes]:
        for rows in pieces(batch):
            for values in rows:
                row = dict(zip(schema.names, values, strict=True))
                for name in json_columns:
                    row[name] = None if row[name] is None else json.loads(row[name])
                yield json.dumps(as_json(row), ensure_ascii=False, allow_nan=False).encode("utf-8")

    return objects


def _with_fields(schema: pa.Schema) -> Callable[[pa.RecordBatch], Iterator[bytes]]:
    """The rows' own texts, to whose objects the columns behind JSON_ROW are added; every other byte stays."""
    at = schema.names.index(JSON_ROW.name)
    names = schema.names[at + 1 :]

    def objects(batch: pa.RecordBatch) -> Iterator[bytes]:
        for rows in pieces(batch.select(range(at, len(schema)))):
            for text, *values in rows:
                before, _, after = text.rpartition("}")
                added = json.dumps(as_json(dict(zip(names, values, strict=True))), ensure_ascii=False, allow_nan=False)
                comma = "" if before.strip() == "{" else ", "
                yield f"{before}{comma}{added[1:]}{after}".encode()

    return objects


@contextmanager
def _csv_writer(file: IO[bytes], schema: pa.Schema, delimiter: str, safe_cells: bool) -> Iterator[WriteBatch]:
    # The csv module leaves a lone carriage return unquoted, and then cannot read its own line again.
    needs_quotes = re.compile(f'[{re.escape(delimiter)}"\r\n]').search
    disarm = disarm_for(delimiter)

    def cell(value: Any) -> str:
        text = cell_text(value)
        if safe_cells and not isinstance(value, Number):
            text = disarm(text)
        return '"' + text.replace('"', '""') + '"' if needs_quotes(text) else text

    def put(rows: Iterable[Iterable[Any]]) -> None:
        lines = (delimiter.join(map(cell, row)) or '""' for row in rows)
        file.write("".join(line + "\n" for line in lines).encode("utf-8"))

    def write(batch: pa.RecordBatch) -> None:
        for rows in pieces(batch):
            put(rows)

    put([schema.names])
    yield write


def count_rows(path: str, format: str) -> int:
    """How many rows a written file holds: parquet says so itself, and the others have one line end a row."""
    try:
        if format == "parquet":
            import pyarrow.parquet as pq

            return int(pq.read_metadata(path).num_rows)
        if format == "xlsx":
            return count_xlsx_rows(path)
        with gzip.open(path, "rb") if path.endswith(".gz") else Path(path).open("rb") as file:
            blocks = iter(partial(file.read, BLOCK), b"")
            if format == "jsonl":
                return sum(block.count(b"\n") for block in blocks)
            if format == "json":
                return sum(block.count(b"\n") for block in blocks) - 2  # without the brackets
            return _csv_lines(blocks) - 1  # without the names of the columns
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, pa.ArrowException) as error:
        raise DataError(f"{path}: could not be read back to check it ({first_line(error)}); score again") from error


def _csv_lines(blocks: Iterable[bytes]) -> int:
    """Line ends outside quotes: those after an even number of quotes, since a quote inside a value is doubled."""
    lines, inside = 0, 0
    for block in blocks:
        pieces = block.split(b'"')
        lines += sum(piece.count(b"\n") for piece in pieces[inside::2])
        inside ^= (len(pieces) - 1) % 2
    return lines
