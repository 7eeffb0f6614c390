"""xlsx in: the rows of one sheet under a row of column names, numbers and dates as what they are."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from strays.errors import DataError, NoRowsError, Note, first_line
from strays.tables.lines import Reading, row_table
from strays.tables.source import Source, size_of
from strays.tables.table import BLOCK_CELLS, LONGEST_ROW, MOST_LISTED, Table, require_few_columns
from strays.tables.xlsx_parts import SHEET_UNPACKED, Attributes, BadWorkbookError, Sheet, Text, Workbook

# What a sheet holds at most.
MOST_ROWS, MOST_CELLS = 2**20, 2**14
REFERENCE = re.compile(r"([A-Z]{1,3})[0-9]*")
WHOLE = re.compile(r"-?[0-9]{1,15}")
DAY = 24 * 60 * 60 * 1000
# Days are counted from here; the first sixty are one off, as in the spreadsheets of old.
EPOCH, EPOCH_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)
TYPES = {
    ("str",): pa.string(),
    ("bool",): pa.bool_(),
    ("int",): pa.int64(),
    ("float",): pa.float64(),
    ("float", "int"): pa.float64(),
    ("date",): pa.date32(),
    ("datetime",): pa.timestamp("us"),
    ("date", "datetime"): pa.timestamp("us"),
    ("time",): pa.time64("us"),
    (): pa.null(),
}
Row = dict[int, Any]
WRONG = (
    BadWorkbookError,
    zipfile.BadZipFile,
    expat.ExpatError,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    LookupError,
    ValueError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
)


def open_xlsx(source: Source, name: str, sheet: str | None = None) -> Table:
    """The rows of a sheet, which is the first that is not hidden unless it is named; rows without a cell are none."""
    with _reading(source, name) as workbook:
        chosen = _chosen(workbook.sheets, name, sheet)
    place = f"{name}, sheet {chosen.name!r:.60}"
    names: dict[int, str] = {}
    kinds: dict[int, set[str]] = {}
    for row in SheetRows(source, name, chosen):
        if not names:
            names = {column: _as_text(value) for column, value in row.items()}
            continue
        for column, value in row.items():
            kinds.setdefault(column, set()).add(_kind(value))
    if not names:
        hint = "; {sheet} names another sheet" if len(workbook.sheets) > 1 else ""
        raise NoRowsError(f"{place}: is empty; expected a row of column names and rows{hint}", param="sheet")
    if not kinds:
        raise NoRowsError(f"{place}: there are no rows below its column names; expected at least one")
    columns = sorted(names.keys() | kinds.keys())
    require_few_columns(len(columns), name)
    if 2 * len(names) < len(columns):
        raise DataError(
            f"{place}: its first row names {len(names)} of {len(columns)} columns; expected a row of column names "
            "first. Remove what is above it"
        )
    types = [TYPES.get(tuple(sorted(kinds.get(column, ()))), pa.string()) for column in columns]
    schema = pa.schema([(names.get(c, column_letters(c)), type_) for c, type_ in zip(columns, types, strict=True)])

    def in_columns(block: list[Row]) -> Iterator[list[Any]]:
        for column, type_ in zip(columns, types, strict=True):
            values = [row.get(column) for row in block]
            if type_ == pa.string():
                values = [None if value is None else _as_text(value) for value in values]
            yield values

    def reading() -> Reading:
        rows = SheetRows(source, name, chosen)
        data = iter(rows)
        next(data)  # the names
        return Reading(data, lambda: rows.bytes_read)

    table = row_table(name, "xlsx", schema, reading, in_columns, BLOCK_CELLS // len(columns))
    return replace(table, notes=_notes(workbook.sheets, chosen, name) if sheet is None else ())


def _chosen(sheets: list[Sheet], name: str, asked: str | None) -> Sheet:
    if not sheets:
        raise DataError(f"{name}: there is no sheet of cells in this workbook; expected one with a row of column names")
    if asked is None:
        return next((sheet for sheet in sheets if not sheet.hidden), sheets[0])
    for sheet in sheets:
        if sheet.name == asked:
            return sheet
    raise DataError(
        f"{name}: there is no sheet {asked!r:.60} ({{sheet}}); its sheets are {_listed(sheets)}", param="sheet"
    )


def _notes(sheets: list[Sheet], chosen: Sheet, name: str) -> tuple[Note, ...]:
    others = [sheet for sheet in sheets if sheet is not chosen]
    if not others:
        return ()
    words = f"{name}: the sheet {chosen.name!r:.60} is read, one of {len(sheets)} sheets"
    return (Note(f"{words}; {{sheet}} names another: {_listed(others)}.", param="sheet"),)


def _listed(sheets: list[Sheet]) -> str:
    more = f" and {len(sheets) - MOST_LISTED:,} more" if len(sheets) > MOST_LISTED else ""
    return ", ".join(f"{sheet.name!r:.60}" for sheet in sheets[:MOST_LISTED]) + more


@contextmanager
def _reading(source: Source, name: str) -> Iterator[Workbook]:
    """The workbook; whatever is wrong with it is said with the file's name."""
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
            yield Workbook(archive, size_of(source))
    except DataError:
        raise
    except WRONG as error:
        what = f"not readable as an Excel workbook ({first_line(error):.200})"
        raise DataError(
            f"{name}: {what}; open it in a spreadsheet program and save it again. A file of another format is read "
            "with {format}",
            param="format",
        ) from error


class SheetRows:
    """The rows of a sheet that have a value, each as values by the number of their column."""

    def __init__(self, source: Source, name: str, sheet: Sheet) -> None:
        self.source, self.name, self.sheet = source, name, sheet
        self.bytes_read = 0
        self._found: list[tuple[Row, int]] = []
        self._row: Row = {}
        self._n = self._column = self._size = 0
        self._type, self._style = "", ""
        self._text = Text()

    def __iter__(self) -> Iterator[Row]:
        with _reading(self.source, self.name) as workbook:
            self._strings, self._dates = workbook.strings(), workbook.date_styles()
            self._epoch = EPOCH_1904 if workbook.since_1904 else EPOCH
            for _ in workbook.parsing(self.sheet.part, self._start, self._end, self._text.add, SHEET_UNPACKED):
                found, self._found = self._found, []
                for row, size in found:
                    self.bytes_read += size
                    yield row

    def _start(self, name: str, attributes: Attributes) -> None:
        self._text.start(name)
        if name == "row":
            self._row, self._column, self._size = {}, 0, 0
            self._n += 1
            if self._n > MOST_ROWS:
                raise BadWorkbookError(f"a sheet of more than {MOST_ROWS:,} rows")
        elif name == "c":
            self._text.take()
            told = REFERENCE.fullmatch(attributes.get("r", ""))
            self._column = column_number(told[1]) if told else self._column + 1
            self._type, self._style = attributes.get("t", "n"), attributes.get("s", "")
            if self._column > MOST_CELLS:
                raise BadWorkbookError(f"a row of more than {MOST_CELLS:,} cells")

    def _end(self, name: str) -> None:
        self._text.end(name)
        if name == "c":
            value = self._value(self._text.take())
            if value is not None and value != "":
                self._row[self._column] = value
                self._size += len(value) if isinstance(value, str) else 8
                if self._size > LONGEST_ROW:
                    raise BadWorkbookError(f"a row of more than {LONGEST_ROW:,} characters")
        elif name == "row" and self._row:
            self._found.append((self._row, self._size))

    def _value(self, text: str) -> Any:
        """What a cell holds; None for nothing and for a formula's error."""
        if self._type in ("inlineStr", "str"):
            return text
        if not text or self._type == "e":
            return None
        if self._type == "s":
            if not text.isdecimal():
                raise BadWorkbookError(f"a cell refers to the string {text!r:.60}")
            return self._strings[int(text[:12])]
        if self._type == "b":
            return text.strip() == "1"
        if self._type == "d":
            return _day(datetime.fromisoformat(text))
        try:
            number = int(text) if WHOLE.fullmatch(text) else float(text)
        except ValueError:
            return text
        if self._style.isdecimal() and int(self._style[:9]) in self._dates:
            return _date(number, self._epoch)
        return number


def _date(number: float, epoch: datetime) -> Any:
    """The date that a number of days stands for; the number where it stands for none."""
    if 0 <= number < 1:
        return (EPOCH + timedelta(milliseconds=min(round(number * DAY), DAY - 1))).time()
    if epoch is EPOCH and number < 60:
        number += 1
    try:
        return _day(epoch + timedelta(milliseconds=round(number * DAY)))
    except (OverflowError, ValueError):
        return number


def _day(moment: datetime) -> date | datetime:
    moment = moment.replace(tzinfo=None)
    return moment if moment.time() != time(0) else moment.date()


def _kind(value: Any) -> str:
    return type(value).__name__


def _as_text(value: Any) -> str:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


def column_number(letters: str) -> int:
    """The number of a column: A is 1, Z is 26, AA is 27."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def column_letters(number: int) -> str:
    """The letters of a column.

    >>> column_letters(28), column_number("AB")
    ('AB', 28)
    """
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
