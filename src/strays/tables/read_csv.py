"""csv, tsv and txt (one text a line) in: every value stays a string."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from itertools import islice

import pyarrow as pa

from strays.errors import DataError, NoRowsError
from strays.tables.limits import LONGEST_ROW, require_few_columns
from strays.tables.lines import Meter, blocks, lines
from strays.tables.source import Source
from strays.tables.table import Table

SEPARATORS = {"tsv": "\t", "csv": ","}
# A text may be as long as it likes; the csv module's own limit is 128 KiB and can only be set for the whole process.
csv.field_size_limit(min(sys.maxsize, 2**31 - 1))


def open_txt(source: Source, name: str) -> Table:
    """A text a line, as one column called text."""
    schema = pa.schema([("text", pa.string())])

    def rows(meter: Meter) -> Iterator[str]:
        for line in lines(source, name, meter):
            meter.limit = meter.read + LONGEST_ROW
            yield line.removesuffix("\n").removesuffix("\r")

    def batches(first_row: int) -> Iterator[pa.RecordBatch]:
        meter = Meter()
        for block in blocks(islice(rows(meter), first_row, None), meter):
            yield pa.record_batch([pa.array(block, pa.string())], schema=schema)

    return Table(name, "txt", schema, batches)


def open_csv(source: Source, name: str, format: str) -> Table:
    """Rows under a line of column names, with the separator of the format, or the one spreadsheets may put."""
    separator = SEPARATORS[format]
    first = next(lines(source, name, Meter()), "")
    if format == "csv" and ";" in first and "," not in first:
        separator = ";"  # what spreadsheets write where the comma is the decimal point

    def rows(meter: Meter) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(lines(source, name, meter), delimiter=separator, strict=True)
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

    header = next((row for _, row in rows(Meter()) if row), [])
    if not header:
        raise NoRowsError(f"{name}: the file is empty; expected a line of column names and rows")
    schema = pa.schema([(column, pa.string()) for column in header])
    require_few_columns(len(header), name)

    def records(meter: Meter) -> Iterator[list[str]]:
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
        meter = Meter()
        for block in blocks(islice(records(meter), first_row, None), meter):
            yield pa.record_batch([pa.array(column, pa.string()) for column in zip(*block, strict=True)], schema=schema)

    return Table(name, format, schema, batches)
