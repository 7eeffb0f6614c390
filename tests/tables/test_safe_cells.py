"""Cells that a spreadsheet would run, also one that takes another delimiter than the file was written with."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strays.tables import open_table, open_writer

INVISIBLE = [" ", "\n", "\r", "\t", "\u00a0", "\ufeff", "\u200b", "\u2060", "\u3000", "\x00", "\x1f", "\u00ad"]
# What a program may split lines at, whatever the file was written with.
SEPARATORS = ",;\t|"
HARMLESS = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?")


def written(texts: list[str], name: str = "out.csv", **options: str) -> str:
    schema = pa.schema([("n", pa.int64()), ("text", pa.string()), ("end", pa.float64())])
    columns = [pa.array(range(len(texts))), pa.array(texts), pa.array([-0.5] * len(texts))]
    with open_writer(name, schema, safe_cells=True, **options) as put:
        put(pa.record_batch(columns, schema=schema))
    return "" if name.endswith(".xlsx") else Path(name).read_bytes().decode()


def runs(cell: str) -> bool:
    """Whether some spreadsheet would take a cell for a formula."""
    start = cell.lstrip("".join(INVISIBLE) + ' "')
    return start[:1] in tuple("=+-@\uff1d\uff0b\uff0d\uff20") and not HARMLESS.fullmatch(cell)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\ufe66", "\u2212"])
@pytest.mark.parametrize("before", ["", *INVISIBLE, "\n \u200b"])
def test_a_sign_behind_what_cannot_be_seen(sign: str, before: str) -> None:
    if before == "\x00":
        assert "'\x00" + sign in written([f"\x00{sign}1+2"])
        return
    written([f"{before}{sign}1+2"])
    (text,) = open_table("out.csv").read().column("text").to_pylist()
    assert text.startswith("'")
    assert text.replace("'", "") == f"{before}{sign}1+2"


@pytest.mark.parametrize(
    "text", ["x;=1+2;", "x;=1+2", 'x;"=1+2"', "x; =1+2", "x\t=1+2", "x|@a", "x\n=1+2", "x\r\n\uff1d1"]
)
def test_a_sign_behind_another_delimiter(text: str) -> None:
    rows = written([text])
    for delimiter in SEPARATORS:
        for line in rows.splitlines()[1:]:
            for cell in next(csv.reader([line], delimiter=delimiter)):
                assert not runs(cell), (delimiter, line)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("ab1 =+-@\uff1d;,|\t\r\n\"'\u200b\u00a0"), min_size=1, max_size=3), st.sampled_from(SEPARATORS))
def test_whatever_is_written_and_however_it_is_opened(texts: list[str], used: str) -> None:
    rows = written(texts, delimiter=used)
    for delimiter in SEPARATORS:
        quoted = delimiter == used  # another one makes no sense of the quotes
        lines = csv.reader(io.StringIO(rows, newline=""), delimiter=delimiter)
        cells = [cell for line in lines for cell in line] if quoted else re.split(f"[{delimiter}\r\n]", rows)
        for cell in cells:
            assert not runs(cell), (used, delimiter, rows)


def test_what_runs_nowhere_is_as_it_was() -> None:
    texts = ["a=1", "x - y", "a, -5", "'quoted", "e-mail: a@b.c", "2;3", "a\nb", "na\u00efve; yes"]
    written(texts)
    assert open_table("out.csv").read().column("text").to_pylist() == texts


def test_names_of_columns_and_values_of_other_types() -> None:
    schema = pa.schema([("=name", pa.list_(pa.string())), ("raw", pa.binary()), ("n", pa.float64())])
    row = pa.record_batch([pa.array([["x;=1+2"]]), pa.array([b"\xfb\xef\xbe"]), pa.array([-1.5])], schema=schema)
    with open_writer("out.csv", schema, safe_cells=True) as put:
        put(row)
    header, line = csv.reader(Path("out.csv").read_text().splitlines())
    assert header == ["'=name", "raw", "n"]
    assert line == ["""["x;'=1+2"]""", "'++++", "-1.5"]


def test_a_workbook_holds_texts_and_says_that_they_are() -> None:
    texts = ["=1+2", " \uff1d1", "x;=1+2", "plain"]
    written(texts, "out.xlsx")
    assert open_table("out.xlsx").read().column("text").to_pylist() == texts  # nothing is put before them
    sheet = zipfile.ZipFile("out.xlsx").read("xl/worksheets/sheet1.xml").decode()
    assert "<f>" not in sheet
    # The style with quotePrefix: a cell that is edited and left stays a text.
    assert re.findall(r'<c([^>]*) t="inlineStr"><is><t xml:space="preserve">([^<]*)', sheet)[3:] == [
        (' s="3"', "=1+2"),
        (' s="3"', " \uff1d1"),
        ("", "x;=1+2"),
        ("", "plain"),
    ]
