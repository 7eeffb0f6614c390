"""A file of rows in: csv, tsv, json, jsonl, parquet, xlsx or txt (one text a line), plain or gzip-compressed, or stdin.

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
from strays.tables.delimiter import DELIMITERS, TRIED, parse_delimiter
from strays.tables.formats import FORMATS, checked_format, kind_of
from strays.tables.read_csv import open_csv, open_txt
from strays.tables.read_json import open_json
from strays.tables.read_jsonl import open_jsonl
from strays.tables.read_parquet import open_parquet
from strays.tables.read_xlsx import open_xlsx
from strays.tables.source import Source, first_bytes, is_gzip, require_file, unpacked
from strays.tables.table import Table


def open_file(
    path: str,
    format: str | None = None,
    *,
    text_column: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> Table:
    """The table in a file; '-' is stdin. Its format is told by its name, or for stdin by its first bytes.

    text_column helps to recognise csv on stdin, where a line of it looks like a text.
    """
    require_format(format)
    delimiter = parse_delimiter(delimiter) if delimiter is not None else None
    if path == "-":
        source: Source = sys.stdin.buffer.read()
        name = "stdin"
        if not source:
            raise DataError("stdin: there is nothing in it; expected rows")
        format = checked_format(name, source, format or _sniff(source, name, text_column, delimiter))
    else:
        source, name = Path(path), path
        require_file(source)
        if not source.is_file():
            source = source.read_bytes()  # a pipe can be read only once
        format = checked_format(path, source, format)
    if delimiter is not None and format not in DELIMITERS:
        raise UsageError(f"{name}: {{delimiter}} is for csv and tsv, and this is {format}; omit it", param="delimiter")
    if sheet is not None and format != "xlsx":
        raise UsageError(f"{name}: {{sheet}} is for xlsx, and this is {format}; omit it", param="sheet")
    if format in ("parquet", "xlsx") and is_gzip(source):
        source = unpacked(source, name)
    if format == "xlsx":
        return _nonempty(open_xlsx(source, name, sheet))
    opener = {"parquet": open_parquet, "json": open_json, "jsonl": open_jsonl, "txt": open_txt}.get(format)
    return _nonempty(opener(source, name) if opener else open_csv(source, name, format, delimiter))


def require_format(format: str | None, formats: tuple[str, ...] = FORMATS) -> None:
    """Raise where a format is asked for that is none."""
    if format is not None and format not in formats:
        raise UsageError(f"no such format: {format!r}; expected one of {', '.join(formats)}", param="format")


def _nonempty(table: Table) -> Table:
    """The table, if it has rows, and columns with names of their own."""
    repeated = sorted(column for column, n in Counter(table.columns).items() if n > 1)
    if repeated:
        raise DataError(
            f"{table.name}: two columns are called {repeated[0]!r:.60}; give every column a name of its own"
        )
    if not table.columns or not any(len(batch) for batch in table.batches()):
        below = " below its line of column names" if table.format in DELIMITERS else ""
        raise NoRowsError(f"{table.name}: there are no rows in it{below}; expected at least one")
    return table


def _sniff(source: Source, name: str, text_column: str | None, delimiter: str | None) -> str:
    """The format of data that has no name: by its mark, its first bracket, or a header that names the texts; or txt."""
    kind = kind_of(source, name)
    if kind and kind.format:
        return kind.format
    if delimiter:
        return "csv"
    lines = first_bytes(source, name).decode("utf-8-sig", "replace").splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.lstrip().startswith("{"):
        several = sum(bool(line.strip()) for line in lines) > 1
        return "jsonl" if several and first.rstrip().endswith("}") else "json"
    if first.lstrip().startswith("["):
        rest = "".join(lines[:2]).lstrip()[1:].lstrip()
        if rest[:1] in ('"', "{"):
            return "json"
    for separator in TRIED:
        header = next(csv.reader([first], delimiter=separator))
        if "text" in header or (text_column and text_column in header):
            return "tsv" if separator == "\t" else "csv"
    return "txt"
