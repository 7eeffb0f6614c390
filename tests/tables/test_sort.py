"""Rows in another order, also where they do not fit into memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from strays.errors import DataError
from strays.tables import in_order


def table_of(n: int) -> pa.Table:
    return pa.table(
        {
            "n": pa.array(range(n), pa.int64()),
            "text": [f"text {i} " * (i % 5) for i in range(n)],
            "kind": pa.array([f"kind {i % 7}" for i in range(n)]).dictionary_encode(),
            "parts": pa.array([[i] * (i % 3) for i in range(n)], pa.list_(pa.int64())),
            "view": pa.array([str(i) for i in range(n)], pa.string_view()),
        }
    )


@pytest.mark.parametrize(
    ("n", "most_bytes"), [(0, 1), (1, 1), (5, 1), (130, 1), (300, 3_000), (2_000, 5_000), (2_000, 2**27)]
)
def test_rows_come_at_their_places(n: int, most_bytes: int, tmp_path: Path) -> None:
    table, places = table_of(n), np.random.default_rng(n).permutation(n)
    found = list(in_order(table.to_batches(max_chunksize=13), places, tmp_path, most_bytes=most_bytes))
    assert [n for batch in found for n in batch.column("n").to_pylist()] == np.argsort(places).tolist()
    if n:
        rows, before = pa.Table.from_batches(found), table.to_pylist()
        assert rows.schema == table.schema
        assert rows.to_pylist() == [before[i] for i in np.argsort(places)]
    assert list(tmp_path.iterdir()) == []


def test_batches_whose_dictionaries_differ(tmp_path: Path) -> None:
    batches = [pa.record_batch({"k": pa.array([word, word]).dictionary_encode()}) for word in ("a", "b", "c")]
    found = in_order(batches, np.array([5, 0, 4, 1, 3, 2]), tmp_path, most_bytes=40)
    assert [k for batch in found for k in batch.column("k").to_pylist()] == ["a", "b", "c", "c", "b", "a"]


def test_what_cannot_be_sorted_is_refused(tmp_path: Path) -> None:
    batch = pa.record_batch({"v": pa.array([b"a", b"b"], pa.binary_view())})
    with pytest.raises(DataError, match="omit sort"):
        list(in_order([batch], np.array([1, 0]), tmp_path))
