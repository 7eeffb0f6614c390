"""What a table's columns say of its rows beside the text: a label, and an id to call a row by."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from strays.errors import DataError, UsageError
from strays.model.labels import WORD, parse_labels
from strays.tables import Table
from strays.tables.table import JSON_TEXT
from strays.tables.values import strings

# How pandas, spreadsheets and databases write that a value is missing.
MISSING = frozenset(("", "nan", "none", "null", "na", "n/a", "<na>", "nat"))
# Values that an error lists, and the most that a column may have to look like one of categories.
MOST_LISTED, MOST_CATEGORIES = 5, 100


@dataclass(frozen=True)
class NormalValues:
    """Values of a column that make a row normal. Any other value makes it an anomaly, and an empty cell says nothing.

    Case and surrounding blanks make no difference.

    >>> NormalValues.parse(["topic=sports", "topic=chess"])
    NormalValues(column='topic', values=('sports', 'chess'))
    """

    column: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, pairs: Sequence[str]) -> Self:
        """From pairs of COLUMN=VALUE, all of one column; what follows the first equals sign is the value."""
        split = [pair.partition("=") for pair in pairs]
        columns = {column: None for column, _, _ in split}
        for pair, (column, equals, value) in zip(pairs, split, strict=True):
            if not (column and equals and value.strip()):
                raise UsageError(
                    f"{{normal}} is {pair!r:.60}; expected COLUMN=VALUE, such as topic=sports", param="normal"
                )
        if len(columns) > 1:
            listed = " and ".join(f"{column!r:.60}" for column in columns)
            raise UsageError(f"{{normal}} names the columns {listed}; expected values of one column", param="normal")
        return cls(next(iter(columns)), tuple(value.strip() for _, _, value in split))


class LabelReader:
    """Reads labels from a table's column, a batch of rows at a time: words, or categories of which some are normal."""

    def __init__(self, table: Table, label_column: str | None, normal: NormalValues | None) -> None:
        if label_column is not None and normal is not None:
            raise UsageError(
                "got {label_column} and {normal}; expected one of them: a column with the words normal and anomaly, or "
                "one with values of which some are normal",
                param=("label_column", "normal"),
            )
        self.column = normal.column if normal else label_column
        if self.column is not None:
            table.require_column(self.column, param="normal" if normal else "label_column")
        self._table = table.name
        self._normal = normal
        self._is_normal = {value.casefold() for value in normal.values} if normal else set()
        self._seen: Counter[str] = Counter()
        self._spelling: dict[str, str] = {}  # of each value, the first

    def read(self, batch: pa.RecordBatch, first_row: int) -> list[str | None]:
        """The labels of a batch whose first row is this one of the table."""
        if self.column is None:
            return [None] * len(batch)
        values = strings_of(batch, self.column)
        if self._normal:
            return [self._category(value) for value in values]
        values = [None if value is None or value.strip().casefold() in MISSING else value for value in values]

        def place(i: int) -> str:
            return f"{self._table}, row {first_row + i + 1}: the label in column {self.column!r}"

        try:
            return [WORD[y] for y in parse_labels(values, len(values), place).tolist()]
        except DataError as error:
            counts = Counter(value.strip() for value in values if value is not None)
            if not counts or len(counts) > MOST_CATEGORIES or counts.most_common(1)[0][1] == 1:  # no categories
                raise
            example = f"{self.column}={counts.most_common(1)[0][0]}"
            raise DataError(
                f"{error}. If the column holds categories ({_listed(counts)}), say which of them are normal with "
                f"{{normal}}, such as {example!r:.80}",
                param="normal",
            ) from error

    def _category(self, value: str | None) -> str | None:
        word = (value or "").strip()
        folded = word.casefold()
        if folded in MISSING and folded not in self._is_normal:
            return None
        self._seen[self._spelling.setdefault(folded, word)] += 1
        return "normal" if folded in self._is_normal else "anomaly"

    def require_all_seen(self) -> None:
        """Raise if no row had one of the values that were called normal."""
        for value in self._normal.values if self._normal else ():
            if value.casefold() not in self._spelling:
                raise DataError(
                    f"{self._table}: no row has {value!r:.60} in column {self.column!r:.60} ({{normal}}); its most "
                    f"frequent values are {_listed(self._seen)}",
                    param="normal",
                )


class IdReader:
    """Reads what rows are called from a table's column: the one asked for, or else one named id; of documents, file.

    A column that nobody asked for is used only where it tells all rows apart.
    """

    def __init__(self, table: Table, asked: str | None, *, besides: Sequence[str | None] = ()) -> None:
        if asked is not None:
            table.require_column(asked, param="id_column")
        wanted = "file" if table.format == "documents" else "id"
        named = [name for name in table.columns if name.casefold() == wanted and name not in besides]
        self._is_asked = asked is not None
        self.column = asked if asked is not None else named[0] if len(named) == 1 else None

    def read(self, batch: pa.RecordBatch) -> list[str | None]:
        """The ids of a batch; None where a cell is empty."""
        if self.column is None:
            return [None] * len(batch)
        return [value.strip() or None if value is not None else None for value in strings_of(batch, self.column)]

    def usable(self, ids: list[str | None]) -> list[str | None] | None:
        """The ids of all rows, if they are to be shown."""
        if self.column is None or (not self._is_asked and (None in ids or len(set(ids)) < len(ids))):
            return None
        return ids


def strings_of(batch: pa.RecordBatch, column: str) -> list[str | None]:
    """The values of a column as strings, whatever their type; whole numbers without a decimal point."""
    values = batch.column(column)
    try:
        found = strings(values)
    except pa.ArrowException as error:
        raise DataError(
            f"column {column!r:.60} holds {values.type!s:.200}; expected strings, numbers or dates as labels or ids"
        ) from error
    if batch.schema.field(column).metadata != JSON_TEXT:
        return found
    parsed = [None if value is None else json.loads(value) for value in found]
    return [value if value is None or isinstance(value, str) else json.dumps(value) for value in parsed]


def shortened(id_: str, most: int) -> str:
    """An id of at most so many characters: where it is longer, its beginning and its end, which tell more than one.

    >>> shortened("letters/2024/march/0017-complaint.txt", 24)
    'letters/202…omplaint.txt'
    """
    if len(id_) <= most:
        return id_
    start = (most - 1) // 2
    return f"{id_[:start]}…{id_[len(id_) - (most - 1 - start) :]}"


def shortened_apart(ids: Sequence[str], most: int) -> list[str]:
    """Ids of at most so many characters that still differ: where their ends are alike, what they begin with is cut.

    >>> shortened_apart(["letter-001-of-the-year-2024.txt", "letter-002-of-the-year-2024.txt"], 16)
    ['…r-001-of-the-y…', '…r-002-of-the-y…']
    """
    short = [shortened(id_, most) for id_ in ids]
    if len(set(short)) == len(set(ids)):
        return short
    shared = next((i for i, letters in enumerate(zip(*ids, strict=False)) if len(set(letters)) > 1), 0)
    start = max(0, shared - 4)  # a little of what they share is shown
    rest = [f"…{id_[start:]}" if start else id_ for id_ in ids]
    return [id_ if len(id_) <= most else f"{id_[: most - 1]}…" for id_ in rest]


def _listed(counts: Counter[str]) -> str:
    words = ", ".join(f"{value!r:.40}" for value, _ in counts.most_common(MOST_LISTED))
    more = len(counts) - MOST_LISTED
    return f"{words} and {more:,} more" if more > 0 else words or "none"
