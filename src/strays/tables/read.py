"""Files of rows in: csv, tsv, jsonl, parquet and txt (one text a line), plain or gzip-compressed, or stdin.

A table is read as a stream of Arrow record batches, so that a file larger than memory can be worked through. Nothing
is interpreted on the way: csv and txt values stay strings, and what JSON holds beyond plain values is carried as its
JSON text. Errors name the file and the line. Whatever a file unpacks to, a row, a batch and the number of columns have
bounds, so that memory has.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path

from strays.errors import DataError, NoRowsError, UsageError
from strays.tables.read_csv import SEPARATORS, open_csv, open_txt
from strays.tables.read_jsonl import open_jsonl
from strays.tables.read_parquet import open_parquet
from strays.tables.source import Source, first_bytes, is_gzip, require_file, unpacked
from strays.tables.table import Table

FORMATS = ("csv", "tsv", "jsonl", "parquet", "txt")
PARQUET_MAGIC = b"PAR1"


def open_table(path: str, format: str | None = None, *, text_column: str | None = None) -> Table:
    """The table in a file; '-' is stdin. Its format is told by its name, or for stdin by its first bytes.

    text_column helps to recognise csv on stdin, where a line of it looks like a text.
    """
    if format is not None and format not in FORMATS:
        raise UsageError(f"no such format: {format!r}; expected one of {', '.join(FORMATS)}", param="format")
    if path == "-":
        source: Source = sys.stdin.buffer.read()
        name = "stdin"
        if not source:
            raise DataError("stdin: there is nothing in it; expected rows")
        format = format or _sniff(first_bytes(source, name), text_column)
    else:
        source, name = Path(path), path
        require_file(source)
        format = format or format_of(path)
        if not source.is_file():
            source = source.read_bytes()  # a pipe can be read only once
    if format == "parquet" and is_gzip(source):
        source = unpacked(source, name)
    opener = {"parquet": open_parquet, "jsonl": open_jsonl, "txt": open_txt}.get(format)
    return _nonempty(opener(source, name) if opener else open_csv(source, name, format))


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
            "(and .gz), or the format given as {format}",
            param="format",
        )
    return ending


def _nonempty(table: Table) -> Table:
    """The table, if it has rows, and columns with names of their own."""
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
