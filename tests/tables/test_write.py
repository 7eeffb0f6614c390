from __future__ import annotations

import csv
import datetime
import gzip
import json
import os
import platform
import sys
import threading
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strays.errors import DataError, UsageError
from strays.tables import open_table, open_writer
from strays.tables.write import complete_file

SCHEMA = pa.schema([("text", pa.string()), ("score", pa.float64()), ("flagged", pa.bool_())])
BATCH = pa.record_batch(
    [pa.array(["=1+1", None, "ok"]), pa.array([0.1, None, 2.0]), pa.array([True, None, False])], schema=SCHEMA
)


def test_csv_cells(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with open_writer(str(path), SCHEMA) as put:
        put(BATCH)
    rows = list(csv.reader(path.read_text().splitlines()))
    assert rows == [["text", "score", "flagged"], ["=1+1", "0.1", "true"], ["", "", ""], ["ok", "2.0", "false"]]


def test_safe_cells_disarm_formulas_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    schema = pa.schema([("text", pa.string()), ("n", pa.int64())])
    texts = ["=1+1", "+1", "-1", "@a", "\tx", "a=1", "'quoted"]
    with open_writer(str(path), schema, safe_cells=True) as put:
        put(pa.record_batch([pa.array(texts), pa.array(range(-3, 4))], schema=schema))
    rows = list(csv.reader(path.read_text().split("\n")[:-1]))[1:]
    assert [row[0] for row in rows] == ["'=1+1", "'+1", "'-1", "'@a", "'\tx", "a=1", "'quoted"]
    assert [row[1] for row in rows] == ["-3", "-2", "-1", "0", "1", "2", "3"]


def test_values_json_does_not_have(tmp_path: Path) -> None:
    table = pa.table(
        {
            "when": pa.array([datetime.datetime(2026, 1, 2, 3, 4)]),
            "raw": pa.array([b"\x00\xff"]),
            "nan": pa.array([float("nan")]),
            "list": pa.array([[{"a": 1.5}]]),
        }
    )
    for name in ("out.jsonl", "out.csv"):
        with open_writer(str(tmp_path / name), table.schema) as put:
            put(table.to_batches()[0])
    line = json.loads((tmp_path / "out.jsonl").read_text())
    assert line == {"when": "2026-01-02T03:04:00", "raw": "AP8=", "nan": "NaN", "list": [{"a": 1.5}]}
    assert next(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))["list"] == '[{"a": 1.5}]'


def test_gzip_output_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "b.csv.gz"):
        with open_writer(str(tmp_path / name), SCHEMA) as put:
            put(BATCH)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"text,score,flagged\n")


def test_parquet_row_groups_are_not_one_for_each_batch(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "out.parquet"
    with open_writer(str(path), SCHEMA) as put:
        for _ in range(50):
            put(BATCH)
    file = pq.ParquetFile(path)
    assert (file.metadata.num_rows, file.num_row_groups) == (150, 1)


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet", "out.csv.gz"])
def test_a_failure_leaves_the_older_file_and_no_litter(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"older")
    with pytest.raises(RuntimeError), open_writer(str(path), SCHEMA) as put:
        put(BATCH)
        raise RuntimeError("midway")
    assert path.read_bytes() == b"older"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet", "out.csv.gz"])
def test_a_full_disk_is_a_clear_error_and_leaves_the_older_file(tmp_path: Path, name: str) -> None:
    resource = pytest.importorskip("resource", reason="file size limits are a Unix thing")
    (tmp_path / name).write_bytes(b"older")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    texts = pa.array([os.urandom(2000).hex() for _ in range(1000)])  # does not compress below the limit
    schema = pa.schema([("text", pa.string())])
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
    try:
        with pytest.raises(DataError, match="could not be written"), open_writer(str(tmp_path / name), schema) as put:
            for _ in range(3):
                put(pa.record_batch([texts], schema=schema))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert (tmp_path / name).read_bytes() == b"older"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("out.txt", UsageError, "cannot write txt"),
        ("out.parquet.gz", UsageError, "compressed already"),
        ("out", DataError, "does not tell its format"),
        ("no/such/folder/out.csv", DataError, "could not be written"),
    ],
)
def test_outputs_that_cannot_be_are_refused(tmp_path: Path, path: str, error: type, message: str) -> None:
    with pytest.raises(error, match=message), open_writer(str(tmp_path / path), SCHEMA) as put:
        put(BATCH)
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv.gz"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    with open_writer(str(pipe), SCHEMA) as put:
        put(BATCH)
    reader.join()
    assert got[0].startswith(b"text,score")


def test_stdout(capfdbinary: pytest.CaptureFixture) -> None:
    with open_writer("-", SCHEMA, "csv") as put:
        put(BATCH)
    assert capfdbinary.readouterr().out.startswith(b"text,score,flagged\n=1+1,0.1,true\n")


def test_reading_back_what_was_written_keeps_order_and_nulls(tmp_path: Path) -> None:
    path = str(tmp_path / "out.jsonl")
    with open_writer(path, SCHEMA) as put:
        put(BATCH)
    assert open_table(path).read().to_pylist() == BATCH.to_pylist()


@pytest.mark.parametrize("name", ["o.csv", "o.jsonl"])
def test_dates_that_python_has_not(tmp_path: Path, name: str) -> None:
    far = pa.table({"text": ["a"], "when": pa.array([10**7], pa.int32()).cast(pa.date32())})
    with open_writer(str(tmp_path / name), far.schema) as write:
        write(far.to_batches()[0])
    assert "29349-01-26" in (tmp_path / name).read_text()


@pytest.mark.parametrize("name", ["o.csv", "o.jsonl"])
def test_values_that_only_parquet_holds(tmp_path: Path, name: str) -> None:
    twice = pa.StructArray.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["x", "x"])
    table = pa.table({"text": ["a"], "odd": twice})
    with (
        pytest.raises(DataError, match=rf"{name}: could not be written: a column of struct.*write parquet"),
        open_writer(str(tmp_path / name), table.schema) as write,
    ):
        write(table.to_batches()[0])
    assert list(tmp_path.iterdir()) == []


def test_long_rows_do_not_pile_up_before_they_are_written(tmp_path: Path) -> None:
    batch = pa.record_batch({"text": ["x" * 10**6] * 10})
    with open_writer(str(tmp_path / "o.parquet"), batch.schema) as write:
        for _ in range(30):
            write(batch)
    assert pq.ParquetFile(tmp_path / "o.parquet").num_row_groups == 3


@pytest.mark.skipif(sys.platform == "win32", reason="links are a privilege there")
def test_a_link_at_a_name_that_can_be_guessed_is_not_written_through(tmp_path: Path) -> None:
    """Version 0.1 wrote to a name made of the machine's and the process's."""
    (tmp_path / "theirs").write_text("dear")
    host = f"{zlib.crc32(platform.node().encode()):08x}"
    for name in (f".out.csv.{os.getpid()}.part", f".out.csv.{host}.{os.getpid()}.part"):
        (tmp_path / name).symlink_to(tmp_path / "theirs")
    with complete_file(str(tmp_path / "out.csv")) as file:
        file.write(b"text\n")
    assert (tmp_path / "theirs").read_text() == "dear"
    assert (tmp_path / "out.csv").read_bytes() == b"text\n"
