"""Files of rows in: csv, tsv, jsonl, parquet and txt (one text a line), plain or gzip-compressed, or stdin.

A table is read as a stream of Arrow record batches, so that a file larger than memory can be worked through. Nothing
is interpreted on the way: csv and txt values stay strings, and what JSON holds beyond plain values is carried as its
JSON text. Errors name the file and the line. Whatever a file unpacks to, a row, a batch and the number of columns have
bounds, so that memory has.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from strays.errors import DataError, NoRowsError, UsageError, first_line
from strays.tables.chunks import row_bytes
from strays.tables.table import JSON_TEXT, Table

FORMATS = ("csv", "tsv", "jsonl", "parquet", "txt")
ROWS_AT_ONCE = 2048
READ_BUFFER = 2**20
# Few, since a dictionary makes any number of long values of one.
PARQUET_ROWS = 32
# A row longer than this is a mistake or an attack: encoders read the first few hundred words of a text.
LONGEST_ROW = 2**24
# Lines and columns read together; cells also of rows that have few of the columns.
BLOCK_BYTES, BLOCK_CELLS = 2**24, 2_000_000
MOST_COLUMNS = 5_000
# What can be read must be written again, and Python's own limit is that of its stack.
DEEPEST_JSON = 100
# What gzip may make of a parquet file, which can only be read unpacked: so many times its size, and some more.
MOST_UNPACKED, UNPACKED_AT_LEAST = 20, 2**26
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
        source: Path | bytes = sys.stdin.buffer.read()
        name = "stdin"
        if not source:
            raise DataError("stdin: there is nothing in it; expected rows")
        format = format or _sniff(_first_bytes(source, name), text_column)
    else:
        source, name = Path(path), path
        _require_file(source)
        format = format or format_of(path)
        if not source.is_file():
            source = source.read_bytes()  # a pipe can be read only once
    if format == "parquet" and _is_gzip(source):
        source = _unpacked(source, name)
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


def _is_gzip(source: Path | bytes) -> bool:
    if isinstance(source, bytes):
        return source.startswith(GZIP_MAGIC)
    with source.open("rb") as file:
        return file.read(2) == GZIP_MAGIC


def _unpacked(source: Path | bytes, name: str) -> bytes:
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    most = max(MOST_UNPACKED * size, UNPACKED_AT_LEAST)
    data = _first_bytes(source, name, most + 1)
    if len(data) > most:
        raise DataError(f"{name}: unpacks to more than {MOST_UNPACKED} times its size; unpack it first, with gunzip")
    return data


def _first_bytes(source: Path | bytes, name: str, most: int = 1_000_000) -> bytes:
    """The first bytes of what a source holds, unpacked."""
    try:
        with _open_binary(source) as file:
            return file.read(most)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{name}: the gzip data is cut off or damaged ({error}); get it again") from error


class _Meter:
    """How many bytes were read, and where the row at hand has to end, which readers move on behind every row."""

    __slots__ = ("limit", "read")

    def __init__(self) -> None:
        self.read, self.limit = 0, LONGEST_ROW


def _lines(source: Path | bytes, name: str, meter: _Meter) -> Iterator[str]:
    """Decoded lines, each with its line end; an error names the line, also of a row that has become too long."""
    number = 0
    try:
        with _open_binary(source) as file:
            for number, raw in enumerate(iter(partial(file.readline, LONGEST_ROW + 1), b""), 1):
                meter.read += len(raw)
                if meter.read > meter.limit:
                    raise _too_long(name, number)
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
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


def _too_long(name: str, line: int) -> DataError:
    return DataError(
        f"{name}, line {line}: a row of more than {LONGEST_ROW:,} bytes; expected shorter ones. If it is no mistake (a "
        "quote without its end, line ends that are missing), cut the text"
    )


def _open_binary(source: Path | bytes) -> IO[bytes]:
    if _is_gzip(source):
        return gzip.open(io.BytesIO(source) if isinstance(source, bytes) else source, "rb")  # type: ignore[return-value]
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def _open_txt(source: Path | bytes, name: str) -> Table:
    schema = pa.schema([("text", pa.string())])

    def rows(meter: _Meter) -> Iterator[str]:
        for line in _lines(source, name, meter):
            meter.limit = meter.read + LONGEST_ROW
            yield line.removesuffix("\n").removesuffix("\r")

    def batches(first_row: int) -> Iterator[pa.RecordBatch]:
        meter = _Meter()
        for block in _blocks(islice(rows(meter), first_row, None), meter):
            yield pa.record_batch([pa.array(block, pa.string())], schema=schema)

    return _nonempty(Table(name, "txt", schema, batches))


def _open_csv(source: Path | bytes, name: str, format: str) -> Table:
    separator = SEPARATORS[format]
    first = next(_lines(source, name, _Meter()), "")
    if format == "csv" and ";" in first and "," not in first:
        separator = ";"  # what spreadsheets write where the comma is the decimal point

    def rows(meter: _Meter) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(_lines(source, name, meter), delimiter=separator, strict=True)
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
            meter.limit = meter.read + LONGEST_ROW

    header = next((row for _, row in rows(_Meter()) if row), [])
    if not header:
        raise NoRowsError(f"{name}: the file is empty; expected a line of column names and rows")
    schema = pa.schema([(column, pa.string()) for column in header])

    _require_few_columns(len(header), name)

    def records(meter: _Meter) -> Iterator[list[str]]:
        seen_header = False
        for number, row in rows(meter):
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
        meter = _Meter()
        for block in _blocks(islice(records(meter), first_row, None), meter):
            yield pa.record_batch([pa.array(column, pa.string()) for column in zip(*block, strict=True)], schema=schema)

    return _nonempty(Table(name, format, schema, batches))


def _open_jsonl(source: Path | bytes, name: str) -> Table:
    def records(meter: _Meter) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(_lines(source, name, meter), 1):
            meter.limit = meter.read + LONGEST_ROW
            if not line.strip():
                continue
            try:
                record = json.loads(line, parse_constant=_no_constant)
                if line.count("[") + line.count("{") > DEEPEST_JSON and _depth(record) > DEEPEST_JSON:
                    raise ValueError(f"nested more than {DEEPEST_JSON} deep")
                if "\\ud" in line.lower():  # half a surrogate pair fits in no UTF-8 file; it becomes a question mark
                    record = json.loads(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"))
            except (ValueError, RecursionError) as error:
                raise DataError(
                    f"{name}, line {number}: not JSON ({first_line(error):.200}); expected one object a line"
                ) from error
            if not isinstance(record, dict):
                raise DataError(
                    f"{name}, line {number}: a JSON {type(record).__name__}; expected an object such as "
                    '{"text": "..."} on every line'
                )
            yield record

    # Columns and their types are known only when every line has been seen, so the file is read twice.
    kinds: dict[str, set[str]] = {}
    for record in records(_Meter()):
        for key, value in record.items():
            kinds.setdefault(key, set()).add(_kind(value))
        _require_few_columns(len(kinds), name)
    schema = pa.schema([_json_field(key, found) for key, found in kinds.items()])

    def batches(first_row: int) -> Iterator[pa.RecordBatch]:
        meter = _Meter()
        for block in _blocks(islice(records(meter), first_row, None), meter, BLOCK_CELLS // max(len(schema), 1)):
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
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DataError(
                f"{name}: not readable as parquet ({first_line(error):.300}); the file is cut off or damaged"
            ) from error

    with reading() as file:
        schema = file.schema_arrow
        _require_few_columns(len(schema), name)
        _require_short_lists(file, name)

    def batches(first_row: int) -> Iterator[pa.RecordBatch]:
        with reading() as file:
            groups, skip = list(range(file.num_row_groups)), first_row
            while groups and skip >= (rows := file.metadata.row_group(groups[0]).num_rows):
                skip, groups = skip - rows, groups[1:]
            for batch in _joined(file.iter_batches(PARQUET_ROWS, groups)):
                _require_whole(batch, name)
                if skip < len(batch):
                    yield batch.slice(skip)
                skip = max(0, skip - len(batch))

    return _nonempty(Table(name, "parquet", schema, batches))


def _require_short_lists(file: pq.ParquetFile, name: str) -> None:
    """Raise where rows have lists too long for a row, before they are unpacked: a few bytes can stand for millions."""
    lists = [i for i in range(len(file.schema)) if file.schema.column(i).max_repetition_level]
    for i in range(file.num_row_groups if lists else 0):
        group = file.metadata.row_group(i)
        for column in lists:
            if group.column(column).num_values > LONGEST_ROW // 8 * max(group.num_rows, 1):
                raise _row_too_long(name)


def _row_too_long(name: str) -> DataError:
    return DataError(f"{name}: has a row of more than {LONGEST_ROW:,} bytes; expected shorter ones. Cut the text")


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches put together to some of a good size."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= ROWS_AT_ONCE or size >= BLOCK_BYTES:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting, rows, size = [], 0, 0
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def _require_whole(batch: pa.RecordBatch, name: str) -> None:
    """Raise where values are none, since Arrow itself takes any bytes for strings, or a row is too long."""
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        raise DataError(
            f"{name}: holds strings that are not UTF-8, or other damaged values ({first_line(error):.200}); write the "
            "file anew"
        ) from error
    if batch.nbytes > LONGEST_ROW and row_bytes(batch).max() > LONGEST_ROW:
        raise _row_too_long(name)


def _blocks(rows: Iterator[Any], meter: _Meter, most_rows: int = ROWS_AT_ONCE) -> Iterator[list[Any]]:
    """So many rows together that a batch is neither small nor large."""
    most_rows = max(1, min(most_rows, ROWS_AT_ONCE))
    block: list[Any] = []
    full = BLOCK_BYTES
    for row in rows:
        block.append(row)
        if len(block) == most_rows or meter.read >= full:
            yield block
            block, full = [], meter.read + BLOCK_BYTES
    if block:
        yield block


def _require_few_columns(n: int, name: str) -> None:
    if n > MOST_COLUMNS:
        raise DataError(
            f"{name}: more than {MOST_COLUMNS:,} columns; expected fewer. Leave away those that need not pass through"
        )


def _nonempty(table: Table) -> Table:
    repeated = sorted(column for column, n in Counter(table.columns).items() if n > 1)
    if repeated:
        raise DataError(
            f"{table.name}: two columns are called {repeated[0]!r:.60}; give every column a name of its own"
        )
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


def _depth(value: Any) -> int:
    """How deep lists and objects are nested in one another."""
    depth, level = 0, [value]
    while level:
        inner = (part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list))
        level, depth = [part for parts in inner for part in parts if isinstance(part, dict | list)], depth + 1
    return depth


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
