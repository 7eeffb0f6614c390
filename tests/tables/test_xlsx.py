"""xlsx: workbooks of other programs in, workbooks out that other programs read."""

from __future__ import annotations

import datetime
import io
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strays.errors import DataError
from strays.tables import count_rows, open_table, open_writer
from strays.tables.write_xlsx import PARTS, SHEET

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def workbook(path: Path, sheet: str, **parts: str) -> str:
    """A workbook with these cells, and parts that are other than usual."""
    named = {"strings": "xl/sharedStrings.xml", "styles": "xl/styles.xml", "book": "xl/workbook.xml"}
    whole = PARTS | {SHEET: f'<worksheet xmlns="{MAIN}"><sheetData>{sheet}</sheetData></worksheet>'}
    relation = f'<Relationship Id="rId9" Type="{"/sharedStrings"}" Target="/xl/sharedStrings.xml"/></Relationships>'
    rels = "xl/_rels/workbook.xml.rels"
    whole[rels] = whole[rels].replace("</Relationships>", relation if "strings" in parts else "</Relationships>")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (whole | {named[key]: content for key, content in parts.items()}).items():
            archive.writestr(name, content)
    return str(path)


HEAD = '<row><c t="str"><v>id</v></c><c t="str"><v>text</v></c></row>'


def rewritten(table: pa.Table, path: Path) -> pa.Table:
    with open_writer(str(path), table.schema) as write:
        for batch in table.to_batches():
            write(batch)
    assert count_rows(str(path), "xlsx") == len(table)
    return open_table(str(path)).read()


def test_workbooks_of_another_program(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Mail"
    when, day = datetime.datetime(2024, 1, 2, 10, 30), datetime.date(2024, 2, 3)
    book.active.append(["ID", "Message", "When", "Day", "Amount", "N", "Mixed", "OK"])
    book.active.append(["a", "first\nline two", when, day, 1.5, 3, "x", True])
    book.active.append([])
    book.active.append(["b", "second, with commas", when, day, 2, 4, 17, False])
    book.create_sheet("Other").append(["nothing"])
    book.save(tmp_path / "t.xlsx")
    table = open_table(str(tmp_path / "t.xlsx"))
    first = {"ID": "a", "Message": "first\nline two", "When": when, "Day": day, "Amount": 1.5, "N": 3, "Mixed": "x"}
    second = first | {"ID": "b", "Message": "second, with commas", "Amount": 2.0, "N": 4, "Mixed": "17"}
    assert table.read().to_pylist() == [first | {"OK": True}, second | {"OK": False}]
    assert "the sheet 'Mail' is read, one of 2 sheets" in str(table.notes[0])
    with pytest.raises(DataError, match=r"sheet 'Other': there are no rows below its column names"):
        open_table(str(tmp_path / "t.xlsx"), sheet="Other")
    with pytest.raises(DataError, match=r"no sheet 'X' \(sheet\); its sheets are 'Mail', 'Other'"):
        open_table(str(tmp_path / "t.xlsx"), sheet="X")
    assert rewritten(table.read(), tmp_path / "o.xlsx").equals(table.read())


def test_no_text_becomes_a_formula(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "=cmd|' /C calc'!A0", "#N/A", "{=1}", "1", "<b>&amp;</b>"]
    rewritten(pa.table({"=text": texts}), tmp_path / "o.xlsx")
    cells = [row[0] for row in openpyxl.load_workbook(tmp_path / "o.xlsx").active.iter_rows()]
    assert [cell.value for cell in cells] == ["=text", *texts]
    assert {cell.data_type for cell in cells} <= {"s", "inlineStr"}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=8))
def test_texts_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    texts = [*texts, "_x000D_", "_x005F_", "\r\n\t\0"]
    found = rewritten(pa.table({"text": texts}), tmp_path_factory.mktemp("x") / "o.xlsx")
    assert found.column("text").to_pylist() == texts


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.xlsx", "b.xlsx"):
        rewritten(pa.table({"text": ["a"], "n": [2**60], "x": [float("nan")]}), tmp_path / name)
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()
    assert open_table(str(tmp_path / "a.xlsx")).read().to_pylist() == [{"text": "a", "n": str(2**60), "x": "nan"}]


def test_what_a_sheet_cannot_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"o\.xlsx: could not be written: a text of 40,000 characters"):
        rewritten(pa.table({"text": ["x" * 40_000]}), tmp_path / "o.xlsx")
    with pytest.raises(DataError, match=r"o\.xlsx: could not be written: a text of 40,000 characters"):
        rewritten(pa.table({"x" * 40_000: ["a"]}), tmp_path / "o.xlsx")
    monkeypatch.setattr("strays.tables.write_xlsx.MOST_ROWS", 3)
    with pytest.raises(DataError, match=r"more than 2 rows, which no sheet holds; write csv or parquet"):
        rewritten(pa.table({"text": ["x"] * 3}), tmp_path / "o.xlsx")
    assert not (tmp_path / "o.xlsx").exists()


def test_cells_as_programs_write_them(tmp_path: Path) -> None:
    rich = "<si><r><t>rich </t></r><r><t>text</t></r><rPh><t>no</t></rPh></si>"
    strings = f'<sst xmlns="{MAIN}"><si><t>plain</t></si>{rich}</sst>'
    cells = [
        '<c r="A2" t="s"><v>0</v></c><c r="B2" t="s"><v>1</v></c>',
        '<c r="B3" t="str"><f>A2&amp;"!"</f><v>plain!</v></c>',
        '<c t="e"><v>#N/A</v></c><c t="inlineStr"><is><t>a_x000D_</t></is></c>',
    ]
    sheet = HEAD + "".join(f"<row>{cell}</row>" for cell in cells)
    found = open_table(workbook(tmp_path / "t.xlsx", sheet, strings=strings)).read().to_pylist()
    assert found == [{"id": "plain", "text": "rich text"}, {"id": None, "text": "plain!"}, {"id": None, "text": "a\r"}]


def test_old_dates(tmp_path: Path) -> None:
    days = "".join(
        f'<row><c t="str"><v>x</v></c><c s="1"><v>{day}</v></c></row>' for day in ("1", "60.5", "0.25", "1e9")
    )
    found = open_table(workbook(tmp_path / "t.xlsx", HEAD + days)).read().column("text").to_pylist()
    assert found == ["1900-01-01", "1900-02-28T12:00:00", "06:00:00", "1000000000.0"]


def test_columns_without_a_name_are_called_by_letter(tmp_path: Path) -> None:
    row = '<row><c><v>1</v></c><c t="str"><v>a</v></c><c t="str"><v>b</v></c></row>'
    assert open_table(workbook(tmp_path / "t.xlsx", HEAD + row)).columns == ["id", "text", "C"]
    wide = "<row>" + '<c t="str"><v>a</v></c>' * 5 + "</row>"
    with pytest.raises(DataError, match="its first row names 2 of 5 columns"):
        open_table(workbook(tmp_path / "t.xlsx", HEAD + wide))


ROW = '<row><c><v>1</v></c><c t="str"><v>a</v></c></row>'
ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: workbook(p, HEAD + ROW, book=f"{ENTITIES}<workbook>&b;</workbook>"), "has a document type"),
        (lambda p: workbook(p, HEAD + "<a>" * 1000), "nested more than 64 deep"),
        (lambda p: workbook(p, HEAD + f'<row><c t="str"><v>{"x" * 2**25}</v></c></row>'), "more than 16,777,216"),
        (lambda p: workbook(p, HEAD + f'<row a="{"x" * 2**25}"/>'), "between two tags"),
        (lambda p: workbook(p, HEAD + "<row/>" * (2**20 + 1)), "more than 1,048,576 rows"),
        (lambda p: workbook(p, HEAD + '<row><c r="ZZZ1"><v>1</v></c></row>'), "more than 16,384 cells"),
        (lambda p: workbook(p, HEAD + '<row><c t="s"><v>7</v></c></row>'), "not readable as an Excel workbook"),
        (lambda p: workbook(p, HEAD + '<row><c t="s"><v>-1</v></c></row>'), "refers to the string '-1'"),
        (lambda p: workbook(p, HEAD + ROW, strings="<sst>" + "<si/>" * 2**24), "unpacks to more than 20 times"),
        (lambda p: workbook(p, HEAD + ROW, book="<workbook/>"), "no sheet of cells"),
        (lambda p: workbook(p, ""), "is empty"),
        (lambda p: workbook(p, HEAD), "no rows below"),
        (lambda p: workbook(p, HEAD + "<row>"), "not readable as an Excel workbook"),
        (lambda p: workbook(p, HEAD + '<row><c t="d"><v>never</v></c></row>'), "not readable as an Excel workbook"),
    ],
)
def test_workbooks_that_somebody_made_on_purpose(tmp_path: Path, make: Callable[[Path], str], message: str) -> None:
    path = make(tmp_path / "t.xlsx")
    with pytest.raises(DataError, match=message) as error:
        open_table(path).read()
    assert "t.xlsx" in str(error.value)


def test_long_strings_that_many_cells_share_make_small_batches(tmp_path: Path) -> None:
    strings = f"<sst><si><t>{'x' * 1_000_000}</t></si></sst>"
    rows = HEAD + '<row><c><v>1</v></c><c t="s"><v>0</v></c></row>' * 100
    table = open_table(workbook(tmp_path / "t.xlsx", rows, strings=strings))
    assert max(batch.nbytes for batch in table.batches()) < 2**25
    assert sum(len(batch) for batch in table.batches()) == 100


def test_damaged_workbooks(tmp_path: Path) -> None:
    data = Path(workbook(tmp_path / "t.xlsx", HEAD + ROW * 500)).read_bytes()
    for place in range(0, len(data), len(data) // 40):
        for damaged in (data[:place], data[:place] + b"\xff\0\xff" + data[place + 3 :]):
            (tmp_path / "t.xlsx").write_bytes(damaged)
            with suppress(DataError):
                open_table(str(tmp_path / "t.xlsx")).read()


def test_a_workbook_from_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Path(workbook(tmp_path / "t.xlsx", HEAD + ROW)).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert open_table("-").read().to_pylist() == [{"id": 1, "text": "a"}]
