"""csv, tsv and txt (one text a line) in: every value stays a string."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from strays.errors import DataError, NoRowsError
from strays.tables.delimiter import DELIMITERS, SEP_LINE, delimiter_note, find_delimiter, in_words, wrong_delimiter_note
from strays.tables.lines import Lines, line_table
from strays.tables.source import Source
from strays.tables.table import Table, require_few_columns

# A text may be as long as it likes; the csv module's own limit is 128 KiB and can only be set for the whole process.
csv.field_size_limit(min(sys.maxsize, 2**31 - 1))


def open_txt(source: Source, name: str) -> Table:
    """A text a line, as one column called text."""

    def rows(lines: Lines) -> Iterator[str]:
        for line in lines:
            lines.end_row()
            yield line.removesuffix("\n").removesuffix("\r")

    return line_table(source, name, "txt", pa.schema([("text", pa.string())]), rows, lambda block: [block])


def open_csv(source: Source, name: str, format: str, delimiter: str | None = None) -> Table:
    """Rows under a line of column names; without a delimiter given, the first rows tell it."""
    usual = DELIMITERS[format]
    found = delimiter or find_delimiter(Lines(source, name), usual)

    def numbered(lines: Lines) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(_without_sep_line(lines), delimiter=found, strict=True)
        try:
            for row in reader:
                yield reader.line_num, row
                lines.end_row()
        except csv.Error as error:
            raise DataError(
                f"{name}, line {reader.line_num}: not readable as {format} ({error}); expected quotes around "
                'values that hold line breaks or delimiters, and "" for a quote inside them'
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
                raise _does_not_fit(f"{name}, line {number}", len(row), len(header))
            yield row or [""]

    def _does_not_fit(place: str, got: int, expected: int) -> DataError:
        remedy = f"a value with a {in_words(found)} or a line break in it needs quotes"
        if expected == 1:
            remedy += ", or, if every line is a text, read the file as txt ({format})"
        return DataError(
            f"{place}: {got} values, expected {expected} as in the first line, where {in_words(found)} separates them; "
            f"{remedy}; {{delimiter}} names another delimiter",
            param=("delimiter", "format"),
        )

    schema = pa.schema([(column, pa.string()) for column in header])
    note = None
    if delimiter is None and found != usual:
        note = delimiter_note(name, found)
    elif delimiter and len(header) == 1:
        note = wrong_delimiter_note(name, found, Lines(source, name))
    made = line_table(source, name, format, schema, rows, lambda block: zip(*block, strict=True))
    return replace(made, delimiter=found, notes=(note,) if note else ())


def _without_sep_line(lines: Lines) -> Iterator[str]:
    """The lines, but for a first one that tells spreadsheets the delimiter; it becomes a blank one."""
    for number, line in enumerate(lines):
        yield "\n" if number == 0 and SEP_LINE.fullmatch(line) else line
