"""Folders as input, and rows counted without reading them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strays.errors import DataError
from strays.tables import count_rows, find_files, open_writer


def test_files_are_found_in_order_and_others_are_named(tmp_path: Path) -> None:
    for name in (
        "b.csv",
        "a/z.jsonl.gz",
        "a.pq",
        "_SUCCESS",
        ".x.csv",
        "_logs/y.csv",
        ".git/y.csv",
        "README.md",
        "LICENSE",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = find_files(str(tmp_path))
    assert [(file.name, file.format) for file in found.files] == [
        ("a.pq", "parquet"),
        ("a/z.jsonl.gz", "jsonl"),
        ("b.csv", "csv"),
    ]
    assert found.ignored == ["LICENSE", "README.md"]
    assert {file.format for file in find_files(str(tmp_path), "txt").files} == {"txt"}
    with pytest.raises(DataError, match="no such file"):
        find_files(str(tmp_path / "none"))


def test_rows_are_told_beforehand_where_they_can_be(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a"] * 12}), tmp_path / "a.parquet")
    (tmp_path / "b.txt").write_text("a line of a file\n" * 100_000)
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"a\n" * 100))
    (tmp_path / "d.parquet").write_bytes(b"PAR1")
    names = ("a.parquet", "b.txt", "c.txt.gz", "d.parquet")
    counts = [find_files(str(tmp_path / name)).files[0].about_rows() for name in names]
    assert counts[0] == 12
    assert counts[1] == pytest.approx(100_000, rel=0.01)
    assert counts[2:] == [None, None]


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text(st.sampled_from('a",;\n\r\t'), max_size=6), max_size=20),
    name=st.sampled_from(["o.csv", "o.tsv", "o.jsonl", "o.parquet", "o.csv.gz"]),
    block=st.integers(1, 30),
)
def test_written_rows_are_counted(tmp_path_factory: pytest.TempPathFactory, texts, name, block) -> None:
    path = str(tmp_path_factory.mktemp("count") / name)
    rows = pa.table({"text": pa.array(texts, pa.string())})
    with open_writer(path, rows.schema) as write:
        for batch in rows.to_batches():
            write(batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("strays.tables.write.BLOCK", block)
        assert count_rows(path, name.removesuffix(".gz").rpartition(".")[2]) == len(texts)


def test_a_file_that_cannot_be_read_back_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "o.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="could not be read back"):
        count_rows(str(tmp_path / "o.parquet"), "parquet")
