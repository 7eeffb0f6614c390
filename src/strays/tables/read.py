"""Files of rows in: csv, tsv, jsonl, parquet and txt (one text a line), plain or gzip-compressed, or stdin.

A table is read as a stream of Arrow record batches, so that a file larger than memory can be worked through. Nothing
is interpreted on the way: csv and txt values stay strings, and what JSON holds beyond plain values is carried as its
JSON text. Errors name the file and the line.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from strays.errors import DataError, NoRowsError, UsageError, first_line
from strays.tables.table import JSON_TEXT, Table

FORMATS = ("csv", "tsv", "jsonl", "parquet", "txt")
ROWS_AT_ONCE = 2048
READ_BUFFER = 2**20
SEPARATORS = {"tsv": "\t", "csv": ","}
GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
# A text may be as long as it likes; the csv module's own limit is 128 KiB and can only be set for the whole process.
csv.field_size_limit(min(sys.maxsize, 2**31 - 1))


def open_table(path: str, format: str | None = None, *, text_column: str | None = None) -> Table:
    """The table in a file; '-' is stdin. Its format is told by its name, or for stdin by its first bytes.

    text_column helps to recognise csv on stdin, where a line of it looks like a text.
    """
    if format is not None and format not in FORMATS:
        raise UsageError(f"no such format: {format!r}; expected one of {', '.join(FORMATS)}")
    if path == "-":
        data = _plain_bytes(sys.stdin.buffer.read())
        if not data:
            raise DataError("stdin: there is nothing in it; expected rows")
        format = format or _sniff(data, text_column)
        source: Path | bytes = data
        name = "stdin"
    else:
        source, name = Path(path), path
        _require_file(source)
        format = format or format_of(path)
        if not source.is_file() or (format == "parquet" and _is_gzip(source)):
            source = _plain_bytes(source.read_bytes())  # a pipe can be read only once
    opener = {"parquet": _open_parquet, "jsonl": _open_jsonl, "txt": _open_txt}.get(format)
    if opener:
        return opener(source, name)
    return _open_csv(source, name, format)


def format_of(path: str) -> str:
    """The format that a file's name tells."""
    suffixes = [s.lower() for s in Path(path).suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    ending = suffixes[-1][1:] if suffixes else ""
    ending = {"ndjson": "jsonl", "pq": "parquet", "tab": "tsv"}.get(ending, ending)
    if ending not in FORMATS:
        raise DataError(
            f"{path}: its name does not tell its format; expected it to end in .csv, .tsv, .jsonl, .parquet or .txt "
            "(and .gz), or the format named with --format"
        )
    return ending


# ---- reading ---------------------------------------------------------------------------------------------------------


def _require_file(path: Path) -> None:
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if path.is_dir():
        raise DataError(f"{path}: is a folder; expected a file")
    if path.is_file() and path.stat().st_size == 0:
        raise NoRowsError(f"{path}: the file is empty; expected rows")
    if not os.access(path, os.R_OK):
        raise DataError(f"{path}: may not be read; check its permissions")


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == GZIP_MAGIC


def _plain_bytes(data: bytes) -> bytes:
    if not data.startswith(GZIP_MAGIC):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"the gzip data is cut off or damaged ({error}); get it again") from error


def _lines(source: Path | bytes, name: str) -> Iterator[str]:
    """Decoded lines, each with its line end; an error names the line."""
    number = 0
    try:
        with _open_binary(source) as file:
            for number, raw in enumerate(file, 1):
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                yield line
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        encoding = "UTF-16" if number == 1 and byte in (0xFE, 0xFF) else "WINDOWS-1252"
        raise DataError(
            f"{name}, line {number}: byte 0x{byte:02x} is not UTF-8. Expected UTF-8; convert the file first, for "
            f"example: iconv -f {encoding} -t UTF-8 FILE > NEW"
        ) from error
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(
            f"{name}: could not be read past line {number} ({error}); the file is cut off or damaged"
        ) from error


def _open_binary(source: Path | bytes) -> IO[bytes]:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    return gzip.open(source, "rb") if _is_gzip(source) else source.open("rb")  # type: ignore[return-value]


def _open_txt(source: Path | bytes, name: str) -> Table:
    schema = pa.schema([("text", pa.string())])

    def batches(first_row: int) -> Iterator[pa.RecordBatch]:
        rows = (line.removesuffix("\n").removesuffix("\r") for line in _lines(source, name))
        for block in _blocks(islice(rows, first_row, None)):
            yield pa.record_batch([pa.array(block, pa.string())], schema=schema)

    return _nonempty(Table(name, "txt", schema, batches))


def _open_csv(source: Path | bytes, name: str, format: str) -> Table:
    separator = SEPARATORS[format]
    first = next(_lines(source, name), "")
    if format == "csv" and ";" in first and "," not in first:
        separator = ";"  # what spreadsheets write where the comma is the decimal point

    def rows() -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(_lines(source, name), delimiter=separator, strict=True)
        while True:
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise DataError(
                    f"{name}, line {reader.line_num}: not readable as {format} ({error}); expected quotes around "
                    'values that hold line breaks or separators, and "" for a quote inside them'
                ) from error
            yield reader.line_num, row

    header = next((row for _, row in rows() if row), [])
    if not header:
        raise NoRowsError(f"{name}: the file is empty; expected a line of column names and rows")
    schema = pa.schema([(column, pa.string()) for column in header])

    def records() -> Iterator[list[str]]:
        seen_header = False
        for number, row in rows():
            if not row and (len(header) > 1 or not seen_header):
                continue  # a blank line is no row, except where a row is one value
            if not seen_header:
                seen_header = True
                continue
            if len(row) != len(header) and (row or len(header) > 1):
                raise DataError(
                    f"{name}, line {number}: {len(row)} values, expected {len(header)} as in the first line; "
                    "a value with a separator or line break in it needs quotes"
                )
            yield row or [""]

    def batches(first_row: int) -> Iterator[pa.RecordBatch]:
        for block in _blocks(islice(records(), first_row, None)):
            yield pa.record_batch([pa.array(column, pa.string()) for column in zip(*block, strict=True)], schema=schema)

    return _nonempty(Table(name, format, schema, batches))


def _open_jsonl(source: Path | bytes, name: str) -> Table:
    def records() -> Iterator[dict[str, Any]]:
        for number, line in enumerate(_lines(source, name), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line, parse_constant=_no_constant)
                if "\\ud" in line.lower():  # half a surrogate pair fits in no UTF-8 file; it becomes a question mark
                    record = json.loads(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"))
            except (ValueError, RecursionError) as error:
                raise DataError(f"{name}, line {number}: not JSON ({error}); expected one object a line") from error
            if not isinstance(record, dict):
                raise DataError(
                    f"{name}, line {number}: a JSON {type(record).__name__}; expected an object such as "
                    '{"text": "..."} on every line'
                )
            yield record

    # Columns and their types are known only when every line has been seen, so the file is read twice.
    kinds: dict[str, set[str]] = {}
    for record in records():
        for key, value in record.items():
            kinds.setdefault(key, set()).add(_kind(value))
    schema = pa.schema([_json_field(key, found) for key, found in kinds.items()])

    def batches(first_row: int) -> Iterator[pa.RecordBatch]:
        for block in _blocks(islice(records(), first_row, None)):
            columns = []
            for field in schema:
                values = [record.get(field.name) for record in block]
                if field.metadata == JSON_TEXT:
                    values = [None if v is None else json.dumps(v, ensure_ascii=False) for v in values]
                columns.append(pa.array(values, field.type))
            yield pa.record_batch(columns, schema=schema)

    return _nonempty(Table(name, "jsonl", schema, batches))


def _open_parquet(source: Path | bytes, name: str) -> Table:
    @contextmanager
    def reading() -> Iterator[pq.ParquetFile]:
        try:
            whole = pa.BufferReader(source) if isinstance(source, bytes) else source
            # Without a buffer a whole column of a row group is read at once, and row groups may be of any size.
            with pq.ParquetFile(whole, buffer_size=READ_BUFFER) as file:
                yield file
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{name}: not readable as parquet ({first_line(error)}); the file is cut off or damaged"
            ) from error

    with reading() as file:
        schema = file.schema_arrow

    def batches(first_row: int) -> Iterator[pa.RecordBatch]:
        with reading() as file:
            groups, skip = list(range(file.num_row_groups)), first_row
            while groups and skip >= (rows := file.metadata.row_group(groups[0]).num_rows):
                skip, groups = skip - rows, groups[1:]
            for batch in file.iter_batches(ROWS_AT_ONCE, groups):
                if skip < len(batch):
                    yield batch.slice(skip)
                skip = max(0, skip - len(batch))

    return _nonempty(Table(name, "parquet", schema, batches))


def _blocks(rows: Iterator[Any]) -> Iterator[list[Any]]:
    block: list[Any] = []
    for row in rows:
        block.append(row)
        if len(block) == ROWS_AT_ONCE:
            yield block
            block = []
    if block:
        yield block


def _nonempty(table: Table) -> Table:
    repeated = sorted({column for column in table.columns if table.columns.count(column) > 1})
    if repeated:
        raise DataError(f"{table.name}: two columns are called {repeated[0]!r}; give every column a name of its own")
    if not table.columns or not any(len(batch) for batch in table.batches()):
        raise NoRowsError(f"{table.name}: there are no rows in it; expected at least one")
    return table


def _sniff(data: bytes, text_column: str | None) -> str:
    """The format of data that has no name: parquet by its mark, jsonl by its brace, csv by its header, else txt."""
    if data.startswith(PARQUET_MAGIC):
        return "parquet"
    lines = data[:1_000_000].decode("utf-8-sig", "replace").splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.lstrip().startswith("{"):
        return "jsonl"
    for format, separator in SEPARATORS.items():
        header = next(csv.reader([first], delimiter=separator))
        if "text" in header or text_column in header:
            return format
    return "txt"


def _no_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _kind(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return "big"
    return type(value).__name__


def _json_field(name: str, kinds: set[str]) -> pa.Field:
    kinds = kinds - {"NoneType"}
    if not kinds:
        return pa.field(name, pa.null())
    plain = {"str": pa.string(), "bool": pa.bool_(), "int": pa.int64(), "float": pa.float64()}
    if len(kinds) == 1 and (kind := next(iter(kinds))) in plain:
        return pa.field(name, plain[kind])
    return pa.field(name, pa.string(), metadata=JSON_TEXT)
