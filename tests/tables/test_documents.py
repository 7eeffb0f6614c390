"""Folders of documents: one file is one text."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from strays.errors import DataError, UsageError
from strays.tables import find_files, open_table
from strays.tables.table import LONGEST_ROW


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {"b.txt": "second\ntext\n", "a.md": "\ufefffirst", "deep/c.txt": "third", "deep/d.rst": "", ".x.txt": "no"}
    for name, text in texts.items():
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / name).write_text(text, encoding="utf-8")
    (tmp_path / "docs" / "_notes").mkdir()
    (tmp_path / "docs" / "_notes" / "e.txt").write_text("no")
    return tmp_path / "docs"


ROWS = [
    {"file": "a.md", "text": "first"},
    {"file": "b.txt", "text": "second\ntext\n"},
    {"file": "deep/c.txt", "text": "third"},
    {"file": "deep/d.rst", "text": ""},
]


def test_a_file_is_a_text(folder: Path) -> None:
    table = open_table(str(folder))
    assert (table.format, table.text_column()) == ("documents", "text")
    assert table.read().to_pylist() == ROWS
    assert table.read().to_pylist() == ROWS
    assert [batch.to_pylist() for batch in table.batches(3)] == [ROWS[3:]]
    assert str(table.notes[0]) == f"{folder}: 4 documents, each one text."


def test_what_is_no_document_is_skipped_and_named(folder: Path, tmp_path: Path) -> None:
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    (folder / "paper.pdf").write_bytes(b"%PDF")
    (folder / "code.py").write_text("x = 1")
    (folder / "zip.txt.gz").write_bytes(gzip.compress(b"packed"))
    os.mkfifo(folder / "pipe.txt")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "up").symlink_to(tmp_path)
    (folder / "in.txt").symlink_to(folder / "b.txt")
    table = open_table(str(folder))
    files = ["a.md", "b.txt", "deep/c.txt", "deep/d.rst", "in.txt", "zip.txt.gz"]
    assert table.read().column("file").to_pylist() == files
    assert "secret" not in str(table.read().to_pylist())
    note = str(table.notes[0])
    assert "code.py (not a text), out.txt (a link out of the folder), paper.pdf (a PDF file)" in note
    assert "pipe.txt (not a file)" in note
    every = open_table(str(folder), "documents").read().column("file").to_pylist()
    assert every == sorted([*files, "code.py"])


def test_documents_that_cannot_be_read_are_all_named(folder: Path) -> None:
    (folder / "bad.txt").write_bytes(b"caf\xe9")
    (folder / "binary.txt").write_bytes(b"a\0b")
    (folder / "long.txt.gz").write_bytes(gzip.compress(b"x" * (LONGEST_ROW + 1)))
    (folder / "wide.txt").write_bytes("caf\u00e9".encode("utf-16"))
    with pytest.raises(DataError, match=r"4 of its 8 documents cannot be read: bad\.txt \(not UTF-8: ") as error:
        open_table(str(folder))
    assert "iconv -f WINDOWS-1252" in str(error.value)
    assert "wide.txt (in UTF-16LE; try iconv -f UTF-16LE " in str(error.value)


def test_a_folder_of_both_kinds_is_refused(folder: Path) -> None:
    (folder / "t.csv").write_text("text\nx\n")
    for use in (open_table, find_files):
        with pytest.raises(
            UsageError, match=r"holds files of rows, such as t\.csv, and documents, such as a\.md.*format"
        ):
            use(str(folder))
    assert len(open_table(str(folder), "documents").read()) == 5
    assert open_table(str(folder), "txt").read().column("text").to_pylist()[:3] == ["first", "second", "text"]


def test_a_folder_of_rows_is_one_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;text\n1;x, y\n")
    (tmp_path / "b.csv").write_text("id,text\n2,z\n")
    (tmp_path / "c.csv").write_text("id,text\n")
    (tmp_path / "README.txt").write_text("about")
    table = open_table(str(tmp_path))
    assert table.read().to_pylist() == [{"id": "1", "text": "x, y"}, {"id": "2", "text": "z"}]
    assert [batch.to_pylist() for batch in table.batches(1)] == [[{"id": "2", "text": "z"}]]
    assert [file.delimiter for file in find_files(str(tmp_path)).files] == [";", ",", ","]
    (tmp_path / "d.csv").write_text("text\nz\n")
    with pytest.raises(DataError, match=r"d\.csv: its columns or their types differ from those of .*a\.csv") as error:
        open_table(str(tmp_path))
    assert "Give one file at a time" in str(error.value)


def test_any_change_of_the_documents_changes_their_state(folder: Path) -> None:
    file = find_files(str(folder)).files[0]
    states = [file.state()]
    (folder / "b.txt").rename(folder / "z.txt")
    states.append(file.state())
    (folder / "new.txt").write_text("new")
    states.append(file.state())
    (folder / "new.txt").write_text("older")
    states.append(file.state())
    assert len(set(states)) == 4
    assert file.state() == states[-1]


def test_a_folder_without_documents(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file in this folder ends in \.csv"):
        open_table(str(tmp_path))
    with pytest.raises(DataError, match="there is no document in this folder"):
        open_table(str(tmp_path), "documents")
    (tmp_path / "t.txt").write_text("a")
    with pytest.raises(UsageError, match=r"t\.txt: is a file, and format documents is for folders"):
        open_table(str(tmp_path / "t.txt"), "documents")
