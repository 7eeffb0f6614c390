"""A file of rows, whatever its format: columns, and a stream of Arrow record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from strays.errors import DataError, Note
from strays.tables.text_column import TextColumn, choose_column, likeliest, strings_of
from strays.tables.values import strings

# Marks a column whose strings are JSON texts of values that Arrow has no one type for.
JSON_TEXT = {b"strays": b"json"}
# A last column with the JSON text of every row, as it was read, to which a file of JSON only adds what is new.
JSON_ROW = pa.field("strays: row", pa.string(), metadata={b"strays": b"row"})
JSON_FORMATS = ("json", "jsonl")
# Columns that an error lists.
MOST_LISTED = 20
# Bounds of what is read at once, so that memory is bounded whatever a file unpacks to. Cells: also empty ones.
ROWS_AT_ONCE, BLOCK_BYTES, BLOCK_CELLS = 2048, 2**24, 2_000_000
# A row longer than this is a mistake or an attack: encoders read the first few hundred words of a text.
LONGEST_ROW = 2**24
MOST_COLUMNS = 5_000


@dataclass(frozen=True)
class Table:
    """A file of rows: its columns, and a way to read its rows, as often as needed.

    >>> table = Table.of(pa.table({"id": ["1", "2"], "text": ["a cat", " "]}))
    >>> table.columns
    ['id', 'text']
    >>> list(table.texts(table.text_column()))
    [['a cat', None]]
    """

    name: str
    format: str
    schema: pa.Schema
    open_batches: Callable[[int], Iterator[pa.RecordBatch]]
    # What separates the values of a line, where that is how they are separated.
    delimiter: str | None = None
    # What a user should know about how it was read.
    notes: tuple[Note, ...] = ()
    # The same rows with JSON_ROW, where they were read from JSON.
    verbatim: Table | None = None

    def written_as(self, format: str) -> Table:
        """The table to read for an output of this format: JSON that comes from JSON keeps its rows' own text."""
        return self.verbatim if self.verbatim and format in JSON_FORMATS else self

    @classmethod
    def of(cls, rows: pa.Table, name: str = "table") -> Self:
        """Rows that are in memory already."""
        return cls(name, "parquet", rows.schema, lambda first_row: iter(rows.slice(first_row).to_batches()))

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.schema.names)

    def batches(self, first_row: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows in order from one on, a few thousand at a time."""
        return self.open_batches(first_row)

    def read(self) -> pa.Table:
        """All rows at once."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def text_column(self, asked: str | None = None, *, besides: tuple[str | None, ...] = ()) -> str:
        """The name of the column with the texts, see choose_text_column."""
        return self.choose_text_column(asked, besides=besides).name

    def choose_text_column(self, asked: str | None = None, *, besides: tuple[str | None, ...] = ()) -> TextColumn:
        """The column with the texts: the one asked for, the one called text, or what names and values tell.

        An error where that is not clear; `besides` are columns that hold something else.
        """
        if asked is not None:
            self.require_column(asked, param="text_column")
            return TextColumn(self._require_texts(asked))
        named = [name for name in self.columns if name.casefold() == "text"]
        if len(named) == 1:
            return TextColumn(self._require_texts(named[0]))
        possible = [n for n in self.columns if n not in besides and _is_text(self.schema.field(n))]
        possible = [name for name in possible if name.casefold() != "id"] or possible
        if len(self.columns) == len(possible) == 1:
            return TextColumn(possible[0])
        batch = next(self.batches(), None) if possible else None
        strings = strings_of(batch, possible) if batch is not None else dict[str, list[str | None]]()
        if chosen := choose_column(strings, of=len(self.columns)):
            return chosen
        what = "several columns could hold the texts" if strings else "no column holds texts"
        example = f", for example {likeliest(strings)!r:.60}" if strings else ""
        raise DataError(
            f"{self.name}: {what}; its columns are {self._listed()}. Name the right one with {{text_column}}{example}",
            param="text_column",
        )

    def _require_texts(self, name: str) -> str:
        field = self.schema.field(name)
        if _is_text(field):
            return name
        kind = "values of several kinds" if field.metadata == JSON_TEXT else str(field.type)
        raise DataError(
            f"{self.name}: column {name!r:.60} holds {kind:.200}, not texts alone; expected a column of strings. "
            f"Its columns are {self._listed()}"
        )

    def _listed(self) -> str:
        """The columns in words; of many the first."""
        words = ", ".join(f"{name!r:.60}" for name in self.columns[:MOST_LISTED])
        more = len(self.columns) - MOST_LISTED
        return f"{words} and {more:,} more" if more > 0 else words

    def texts(self, column: str) -> Iterator[list[str | None]]:
        """The texts of each batch; None where a row has none, or only blanks."""
        return (texts_of(batch, column) for batch in self.batches())

    def require_column(self, name: str, *, param: str | None = None) -> None:
        """Raise unless there is such a column; `param` is the parameter that names it."""
        if name not in self.columns:
            asked = f" ({{{param}}})" if param else ""
            raise DataError(
                f"{self.name}: there is no column {name!r:.60}{asked}; its columns are {self._listed()}",
                param=param or (),
            )


def require_few_columns(n: int, name: str) -> None:
    """Raise where a table has more columns than it may."""
    if n > MOST_COLUMNS:
        raise DataError(f"{name}: more than {MOST_COLUMNS:,} columns; expected fewer. Remove those you do not need")


def texts_of(batch: pa.RecordBatch, column: str) -> list[str | None]:
    """One batch's texts; None where a row has none, or only blanks."""
    return [text if text and not text.isspace() else None for text in strings(batch.column(column))]


def _is_text(field: pa.Field) -> bool:
    type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return field.metadata != JSON_TEXT and type_ in (pa.string(), pa.large_string(), pa.string_view())
