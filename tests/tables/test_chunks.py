"""Chunks do not depend on how a file is read, and their digests on nothing but the values."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strays.tables import Chunk, Table, cut, open_table

MANY_TYPES = pa.table(
    {
        "text": pa.array(["a", None, "", "ü" * 9]),
        "kind": pa.array(["x", "y", "x", None]).dictionary_encode(),
        "number": pa.array([1, None, 3, 4]),
        "share": pa.array([0.5, float("nan"), None, 1.0], pa.float32()),
        "yes": pa.array([True, None, False, True]),
        "when": pa.array([datetime(2024, 1, 1), None, datetime(2025, 1, 1), None], pa.timestamp("ns")),
        "price": pa.array([Decimal("1.5"), None, Decimal("2.5"), None]),
        "bytes": pa.array([b"\xff", None, b"", b"b"]),
        "fixed": pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2)),
        "words": pa.array([["a", "b"], None, [], ["c", None]]),
        "pairs": pa.array([[("k", 1)], None, [], [("l", None)]], pa.map_(pa.string(), pa.int64())),
        "nested": pa.array([{"n": [{"m": "deep"}]}, None, {"n": []}, {"n": None}]),
        "nothing": pa.nulls(4),
    }
)


def table_of(rows: pa.Table, batch: int) -> Table:
    def batches(first_row: int):
        return iter(rows.slice(first_row).to_batches(max_chunksize=batch))

    return Table("t", "parquet", rows.schema, batches)


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text(max_size=12), min_size=1, max_size=60),
    batches=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    most_rows=st.integers(1, 20),
    most_bytes=st.integers(1, 60),
    data=st.data(),
)
def test_chunks_do_not_depend_on_batches_or_on_where_one_starts(texts, batches, most_rows, most_bytes, data) -> None:
    rows = pa.table({"id": range(len(texts)), "text": texts})
    limits = {"most_rows": most_rows, "most_bytes": most_bytes}

    def marks(chunks: list[Chunk]) -> list[tuple]:
        return [(chunk.first_row, len(chunk.rows), chunk.last, chunk.digest()) for chunk in chunks]

    one, other = (list(cut(table_of(rows, batch), **limits)) for batch in batches)
    assert marks(one) == marks(other)
    assert [chunk.last for chunk in one] == [False] * (len(one) - 1) + [True]
    assert pa.concat_tables([chunk.rows for chunk in one]).equals(rows)
    for chunk in one:
        size = sum(len(text.encode()) + 8 for text in chunk.rows.column("text").to_pylist())
        assert len(chunk.rows) <= most_rows
        assert size <= most_bytes or len(chunk.rows) == 1
    start = data.draw(st.sampled_from(range(len(one))))
    assert marks(list(cut(table_of(rows, batches[1]), one[start].first_row, **limits))) == marks(one[start:])


def test_digests_of_all_types_tell_values_and_nothing_else(tmp_path: Path) -> None:
    pq.write_table(MANY_TYPES, tmp_path / "t.parquet", row_group_size=3)
    [chunk] = cut(open_table(str(tmp_path / "t.parquet")))
    [same] = cut(table_of(chunk.rows, 1))
    assert chunk.digest() == same.digest()
    digests = {chunk.digest()}
    for i, name in enumerate(chunk.rows.column_names):
        column = chunk.rows.column(name)
        changed = pa.chunked_array([pa.nulls(1, column.type), *column.slice(1).chunks])
        [other] = cut(table_of(chunk.rows.set_column(i, name, changed), 2))
        digests.add(other.digest())
        [renamed] = cut(table_of(chunk.rows.rename_columns({name: "other"}), 2))
        digests.add(renamed.digest())
    assert len(digests) == 2 * len(chunk.rows.column_names)  # a null for a null changes nothing


def test_large_values_of_any_column_make_smaller_chunks() -> None:
    rows = pa.table({"text": ["t"] * 10, "page": [["w" * 100] * 10] * 10})
    assert [len(chunk.rows) for chunk in cut(table_of(rows, 4), most_bytes=2100)] == [2] * 5


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.jsonl", "t.txt"])
@pytest.mark.parametrize("first_row", [0, 1, 7, 13, 14, 99, 100])
def test_every_format_is_read_from_any_row_on(tmp_path: Path, name: str, first_row: int) -> None:
    texts = [f"text {i}" for i in range(100)]
    path = tmp_path / name
    if name == "t.parquet":
        pq.write_table(pa.table({"text": texts}), path, row_group_size=7)
    else:
        line = {"t.csv": "{}\n", "t.jsonl": '{{"text": "{}"}}\n', "t.txt": "{}\n"}[name]
        path.write_text(("text\n" if name == "t.csv" else "") + "".join(map(line.format, texts)))
    batches = open_table(str(path)).batches(first_row)
    assert [text for batch in batches for text in batch.column("text").to_pylist()] == texts[first_row:]
