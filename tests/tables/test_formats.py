"""Files that are not what their names say."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strays.errors import DataError
from strays.tables import open_table, open_writer


def zipped(*names: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return data.getvalue()


def xlsx(path: Path) -> bytes:
    rows = pa.table({"text": ["a"]})
    with open_writer(str(path), rows.schema) as write:
        write(rows.to_batches()[0])
    return path.read_bytes()


def parquet() -> bytes:
    pq.write_table(pa.table({"text": ["a"]}), sink := pa.BufferOutputStream())
    return sink.getvalue().to_pybytes()


KINDS = {
    "parquet": (parquet(), "is a parquet file", "give parquet as format"),
    "pdf": (b"%PDF-1.7\n", "is a PDF file", "save its text as .txt"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is an old", "save it as .xlsx or csv"),
    "docx": (zipped("[Content_Types].xml", "word/document.xml"), "is a Word document", "save it as plain text"),
    "ods": (zipped("mimetype", "content.xml"), "is an OpenDocument file", "save it as .xlsx or csv"),
    "zip": (zipped("a.csv"), "is a zip archive", "unpack it first"),
    "cut": (zipped("a.csv")[:20], "is a zip archive or workbook that is cut off", "copy or download it again"),
    "sqlite": (b"SQLite format 3\0", "is an SQLite database", "export a table of it as csv"),
    "bz2": (b"BZh91AY", "is a bzip2 file", "bunzip2"),
    "html": (b"\n<!DOCTYPE html><html>", "is a web page", "save it as .xlsx or csv"),
}


@pytest.mark.parametrize("kind", [*KINDS, "xlsx"])
@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.json", "t"])
def test_a_file_is_known_by_its_first_bytes(tmp_path: Path, kind: str, name: str) -> None:
    usual = (b"", "is an Excel workbook", "give xlsx as format")
    data, what, remedy = KINDS.get(kind, usual)
    data = data or xlsx(tmp_path / "o.xlsx")
    for packed in (False, True):
        (tmp_path / name).write_bytes(gzip.compress(data) if packed and kind in ("parquet", "pdf") else data)
        with pytest.raises(DataError, match=what) as error:
            open_table(str(tmp_path / name))
        assert remedy in str(error.value)
        assert "iconv" not in str(error.value)
    with pytest.raises(DataError, match=what):
        open_table(str(tmp_path / name), "csv")


@pytest.mark.parametrize("format", ["parquet", "xlsx"])
def test_a_given_format_overrules_the_name(tmp_path: Path, format: str) -> None:
    (tmp_path / "t.csv").write_bytes(parquet() if format == "parquet" else xlsx(tmp_path / "o.xlsx"))
    assert open_table(str(tmp_path / "t.csv"), format).read().to_pylist() == [{"text": "a"}]


@pytest.mark.parametrize("ending", ["xls", "ods", "docx", "doc", "pdf", "zip", "PDF"])
def test_names_of_other_formats_say_what_to_do(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"t.{ending}").write_text("whatever")
    with pytest.raises(DataError, match=rf"t\.{ending}: .* cannot be read; .*(save|unpack)"):
        open_table(str(tmp_path / f"t.{ending}"))


def test_text_that_is_called_a_workbook(tmp_path: Path) -> None:
    (tmp_path / "t.xlsx").write_text("id,text\n1,a\n")
    with pytest.raises(DataError, match=r"t\.xlsx: is no Excel workbook.*give its format, such as csv, as format"):
        open_table(str(tmp_path / "t.xlsx"))
    assert open_table(str(tmp_path / "t.xlsx"), "csv").read().num_rows == 1


def test_lines_of_html_may_be_texts(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("<html>\n<b>\n")
    assert open_table(str(tmp_path / "t.txt")).read().num_rows == 2
