"""parquet in: read a few rows at a time, check them, and join them to batches of a good size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from strays.errors import DataError, first_line
from strays.tables.chunks import row_bytes
from strays.tables.source import Source
from strays.tables.table import BLOCK_BYTES, LONGEST_ROW, ROWS_AT_ONCE, Table, require_few_columns

if TYPE_CHECKING:
    import pyarrow.parquet as pq

READ_BUFFER = 2**20
# Few, since a dictionary makes any number of long values of one.
PARQUET_ROWS = 32


def open_parquet(source: Source, name: str) -> Table:
    """The columns as the file has them."""
    import pyarrow.parquet as pq

    @contextmanager
    def reading() -> Iterator[pq.ParquetFile]:
        try:
            whole = pa.BufferReader(source) if isinstance(source, bytes) else source
            # Without a buffer a whole column of a row group is read at once, and row groups may be of any size.
            with pq.ParquetFile(whole, buffer_size=READ_BUFFER) as file:
                yield file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            what = f"not readable as parquet ({first_line(error):.300})"
            raise DataError(f"{name}: {what}; the file is cut off or damaged") from error

    with reading() as file:
        schema = file.schema_arrow
        require_few_columns(len(schema), name)
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

    return Table(name, "parquet", schema, batches)


def _require_short_lists(file: pq.ParquetFile, name: str) -> None:
    """Raise where rows have lists too long for a row, before they are unpacked: a few bytes can stand for millions."""
    lists = [i for i in range(len(file.schema)) if file.schema.column(i).max_repetition_level]
    for i in range(file.num_row_groups if lists else 0):
        group = file.metadata.row_group(i)
        for column in lists:
            if group.column(column).num_values > LONGEST_ROW // 8 * max(group.num_rows, 1):
                raise _row_too_long(name)


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
        what = f"holds strings that are not UTF-8, or other damaged values ({first_line(error):.200})"
        raise DataError(f"{name}: {what}; write the file again") from error
    if batch.nbytes > LONGEST_ROW and row_bytes(batch).max() > LONGEST_ROW:
        raise _row_too_long(name)


def _row_too_long(name: str) -> DataError:
    return DataError(f"{name}: has a row of more than {LONGEST_ROW:,} bytes; expected shorter ones. Shorten the text")
