"""Rows in another order, in bounded memory: what is more than fits is dealt to files by place, and these one by one.

Every row's place is known before, so that a file takes the rows of one stretch of places and never has to be merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa

from strays.errors import DataError, first_line

# Bytes of rows sorted in memory at once, and files that more of them are dealt to.
SORTED_BYTES, FILES = 2**27, 64
_PLACE = "strays: place"


def in_order(
    batches: Iterable[pa.RecordBatch], places: np.ndarray, folder: Path, *, most_bytes: int = SORTED_BYTES
) -> Iterator[pa.RecordBatch]:
    """The rows of batches so that the i-th row comes at `places[i]`; files that are needed meanwhile are in `folder`.

    >>> batches = pa.table({"n": ["b", "c", "a"]}).to_batches()
    >>> [batch["n"].to_pylist() for batch in in_order(batches, np.array([1, 2, 0]), Path("unused"))]
    [['a', 'b', 'c']]
    """

    def placed() -> Iterator[pa.RecordBatch]:
        at = 0
        for batch in batches:
            field = pa.field(_PLACE, pa.int64())
            mine = pa.array(places[at : at + len(batch)], pa.int64())
            at += len(batch)
            yield pa.RecordBatch.from_arrays([mine, *batch.columns], schema=batch.schema.insert(0, field))

    yield from _sorted(placed(), range(len(places)), folder, most_bytes)


def _sorted(
    batches: Iterable[pa.RecordBatch], places: range, folder: Path, most_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Rows that have these places, in order."""
    step = -(-len(places) // FILES)
    files = [folder / f"{start}-{step}.arrow" for start in places[::step]] if places else []
    with ExitStack() as stack:
        writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
        for run, is_all in _runs(batches, most_bytes):
            if is_all or len(places) == 1:
                yield from run.remove_column(0).to_batches()
                continue
            cuts = np.searchsorted(run.column(0).to_numpy(), places[::step]).tolist()
            for i, (start, end) in enumerate(zip(cuts, [*cuts[1:], len(run)], strict=True)):
                if start < end:
                    if i not in writers:
                        writers[i] = stack.enter_context(pa.ipc.new_stream(str(files[i]), run.schema))
                    writers[i].write_table(run.slice(start, end - start))
    for i in sorted(writers):
        with pa.ipc.open_stream(str(files[i])) as reader:
            yield from _sorted(reader, places[i * step : (i + 1) * step], folder, most_bytes)
        files[i].unlink()


def _runs(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[tuple[pa.Table, bool]]:
    """As many rows as fit, in order, and again; and whether these are all."""
    held: list[pa.RecordBatch] = []
    size, is_first = 0, True
    for batch in batches:
        if held and size + batch.nbytes > most_bytes:
            yield _by_place(held), False
            held, size, is_first = [], 0, False
        held.append(batch)
        size += batch.nbytes
    if held:
        yield _by_place(held), is_first


def _by_place(batches: list[pa.RecordBatch]) -> pa.Table:
    rows = pa.Table.from_batches(batches).unify_dictionaries()
    order = pa.array(np.argsort(rows.column(0).to_numpy()))
    # Arrow cannot take rows from views of strings.
    plain = [
        pa.field(f.name, pa.string(), metadata=f.metadata) if f.type == pa.string_view() else f for f in rows.schema
    ]
    try:
        return rows.cast(pa.schema(plain, rows.schema.metadata)).take(order).cast(rows.schema)
    except pa.ArrowNotImplementedError as error:
        raise DataError(f"these columns cannot be sorted ({first_line(error)}); omit {{sort}}", param="sort") from error
