"""How large what is read at once may be, so that memory is bounded whatever a file unpacks to."""

from __future__ import annotations

from strays.errors import DataError

ROWS_AT_ONCE = 2048
# A row longer than this is a mistake or an attack: encoders read the first few hundred words of a text.
LONGEST_ROW = 2**24
# Lines and columns read together; cells also of rows that have few of the columns.
BLOCK_BYTES, BLOCK_CELLS = 2**24, 2_000_000
MOST_COLUMNS = 5_000


def require_few_columns(n: int, name: str) -> None:
    """Raise where a table has more columns than it may."""
    if n > MOST_COLUMNS:
        raise DataError(f"{name}: more than {MOST_COLUMNS:,} columns; expected fewer. Remove those you do not need")
