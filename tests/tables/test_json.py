"""json: a list of objects or of texts, however long."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strays.errors import DataError
from strays.tables import count_rows, open_table, open_writer
from strays.tables.json_stream import JsonStream
from strays.tables.table import LONGEST_ROW

ROWS = [{"id": 1, "text": "a [bracket]"}, {"id": 2, "text": 'a "quote" \\'}, {"id": 3, "text": "中文 🐈"}]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("data", "notes"),
    [
        (json.dumps(ROWS), 0),
        (json.dumps(ROWS, indent=2, ensure_ascii=False), 0),
        ("\ufeff" + json.dumps(ROWS), 0),
        (json.dumps({"count": 3, "data": ROWS, "tags": ["x"]}), 1),
        ("\n".join(json.dumps(row) for row in ROWS), 1),
    ],
)
def test_a_list_of_objects(tmp_path: Path, data: str, notes: int) -> None:
    (tmp_path / "t.json").write_text(data, encoding="utf-8")
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(data.encode()))
    for name in ("t.json", "t.json.gz"):
        table = open_table(str(tmp_path / name))
        assert table.read().to_pylist() == ROWS
        assert len(table.notes) == notes


def test_a_list_of_texts(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('["one", "two"]')
    assert open_table(str(tmp_path / "t.json")).read().to_pylist() == [{"text": "one"}, {"text": "two"}]
    (tmp_path / "t.json").write_text('{"comments": ["one", "two"]}')
    assert open_table(str(tmp_path / "t.json")).read().column("text").to_pylist() == ["one", "two"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "the file is empty"),
        ("[]", "no rows"),
        ("{}", "no rows"),
        ("[1, 2]", r"line 1: entry 1 of its list is a number; expected objects"),
        ('[{"text": "a"},\n "b"]', "line 2: entry 2 of its list is a text"),
        ('[["a", "b"]]', "entry 1 of its list is a list"),
        ('{"text": {"0": "a"}}', r"is an object of 'text'.*orient=\"records\""),
        ('{"a": [{"t": "x"}], "b": [{"t": "y"}]}', "is an object of 'a', 'b'"),
        ('[{"text": "a"},]', "a comma before ]"),
        ('[{"text": "a"}\n{"text": "b"}]', "line 2: not JSON .expected ,"),
        ('[{"text": "a"}] x', "there is more after its end"),
        ('[{"text": "a"}', "line 1: not JSON"),
        ('[{"text": NaN}]', "NaN is not JSON"),
        ('[{"text": "a", "n": ' + "[" * 500 + "]" * 500 + "}]", "nested more than 100 deep"),
        ("[" * 100_000, "line 1: not JSON"),
        ("hello", "begins with neither"),
        ('[{"n": ' + "9" * 5000 + "}]", "line 1: not JSON"),
    ],
)
def test_bad_json(tmp_path: Path, data: str, message: str) -> None:
    (tmp_path / "t.json").write_text(data)
    with pytest.raises(DataError, match=message) as error:
        open_table(str(tmp_path / "t.json")).read()
    assert "t.json" in str(error.value)


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(b'[{"text": "caf\xe9"}]')
    with pytest.raises(DataError, match=r"byte 0xe9 is not UTF-8.*iconv -f WINDOWS-1252"):
        open_table(str(tmp_path / "t.json"))
    (tmp_path / "t.json").write_bytes('[{"text": "a"}]'.encode("utf-16"))
    with pytest.raises(DataError, match=r"is text in UTF-16LE.*iconv -f UTF-16LE"):
        open_table(str(tmp_path / "t.json"))


@settings(max_examples=80, deadline=None)
@given(st.lists(VALUES, max_size=8), st.integers(1, 40), st.sampled_from([None, 1]))
def test_any_list_is_read_as_json_reads_it(entries: list[object], block: int, indent: int | None) -> None:
    data = json.dumps(entries, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("strays.tables.json_stream.BLOCK", block)
        found = [member.value for member in JsonStream(data, "t")]
    assert found == json.loads(data.decode().encode("utf-8", "replace"))


def test_an_entry_without_an_end(tmp_path: Path) -> None:
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(b'[{"text": "' + b"x" * 10 * LONGEST_ROW))
    tracemalloc.start()
    with pytest.raises(DataError, match="an entry of more than 16,777,216 bytes"):
        open_table(str(tmp_path / "t.json.gz"))
    assert tracemalloc.get_traced_memory()[1] < 10 * LONGEST_ROW
    tracemalloc.stop()


def test_what_is_written_is_one_list(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps([{**row, "n": {"k": [1]}} for row in ROWS]))
    table = open_table(str(tmp_path / "t.json"))
    for rows in (table.read(), table.read().slice(0, 0)):
        with open_writer(str(tmp_path / "o.json"), rows.schema) as write:
            for batch in rows.to_batches():
                write(batch)
        written = json.loads((tmp_path / "o.json").read_text())
        assert [row["text"] for row in written] == rows.column("text").to_pylist()
        assert count_rows(str(tmp_path / "o.json"), "json") == len(rows)
    assert all(row["n"] == {"k": [1]} for row in written)
