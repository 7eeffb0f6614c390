"""csv, tsv and txt (one text a line) in: every value stays a string."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator

import pyarrow as pa

from strays.errors import DataError, NoRowsError
from strays.tables.lines import Lines, line_table
from strays.tables.source import Source
from strays.tables.table import Table, require_few_columns

SEPARATORS = {"tsv": "\t", "csv": ","}
# A text may be as long as it likes; the csv module's own limit is 128 KiB and can only be set for the whole process.
csv.field_size_limit(min(sys.maxsize, 2**31 - 1))


def open_txt(source: Source, name: str) -> Table:
    """A text a line, as one column called text."""

    def rows(lines: Lines) -> Iterator[str]:
        for line in lines:
            lines.end_row()
            yield line.removesuffix("\n").removesuffix("\r")

    return line_table(source, name, "txt", pa.schema([("text", pa.string())]), rows, lambda block: [block])


def open_csv(source: Source, name: str, format: str) -> Table:
    """Rows under a line of column names, with the separator of the format, or the one spreadsheets may put."""
    separator = SEPARATORS[format]
    first = next(iter(Lines(source, name)), "")
    if format == "csv" and ";" in first and "," not in first:
        separator = ";"  # what spreadsheets write where the comma is the decimal point

    def numbered(lines: Lines) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(lines, delimiter=separator, strict=True)
        try:
            for row in reader:
                yield reader.line_num, row
                lines.end_row()
        except csv.Error as error:
            raise DataError(
                f"{name}, line {reader.line_num}: not readable as {format} ({error}); expected quotes around "
                'values that hold line breaks or separators, and "" for a quote inside them'
            ) from error

    header = next((row for _, row in numbered(Lines(source, name)) if row), [])
    if not header:
        raise NoRowsError(f"{name}: the file is empty; expected a line of column names and rows")
    require_few_columns(len(header), name)

    def rows(lines: Lines) -> Iterator[list[str]]:
        found = numbered(lines)
        next(row for _, row in found if row)  # the header
        for number, row in found:
            if not row and len(header) > 1:
                continue  # a blank line is no row, except where a row is one value
            if row and len(row) != len(header):
                raise DataError(
                    f"{name}, line {number}: {len(row)} values, expected {len(header)} as in the first line; "
                    "a value with a separator or line break in it needs quotes"
                )
            yield row or [""]

    schema = pa.schema([(column, pa.string()) for column in header])
    return line_table(source, name, format, schema, rows, lambda block: zip(*block, strict=True))
