"""What separates the values of a csv file."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strays.errors import DataError, UsageError
from strays.tables import open_table, open_writer
from strays.tables.delimiter import find_delimiter

TEXTS = ["one, two, three", "four; five", "a | b", "plain", 'says "no", twice']


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("header", [["id", "text"], ["Name, first", "text"], ["id", "Amount; EUR", "text"]])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_first_rows_tell_the_delimiter(tmp_path: Path, delimiter: str, header: list[str], mark: str) -> None:
    path = tmp_path / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(mark)
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(header)
        writer.writerows([*(["x, y"] * (len(header) - 1)), text] for text in TEXTS)
    table = open_table(str(path))
    assert (table.columns, table.delimiter) == (header, delimiter)
    assert table.read().column("text").to_pylist() == TEXTS
    assert bool(table.notes) == (delimiter != ",")
    forced = open_table(str(path), delimiter={"\t": "tab"}.get(delimiter, delimiter))
    assert forced.read().equals(table.read())
    assert forced.notes == ()


def test_sentences_with_commas_do_not_make_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Name, Vorname;Text\nMay, Jo;hello\nDee, Al;so, so\n")
    assert open_table(str(tmp_path / "t.csv")).columns == ["Name, Vorname", "Text"]
    assert find_delimiter(["text\n", "one, two\n", "a; b\n"], ",") == ","
    assert find_delimiter(["text; or so\n", "one\n", "two\n"], ",") == ","
    assert find_delimiter([], ",") == ","


@given(st.lists(st.lists(st.text(), min_size=2, max_size=4), min_size=2, max_size=6), st.sampled_from(",;\t|"))
def test_any_lines_give_some_delimiter(rows: list[list[str]], delimiter: str) -> None:
    lines = [delimiter.join(row) + "\n" for row in rows]
    assert len(find_delimiter(lines, ",")) == 1


def test_a_first_line_for_spreadsheets(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sep=;\r\nid;text\r\n1;a, b\r\n")
    assert open_table(str(tmp_path / "t.csv")).read().to_pylist() == [{"id": "1", "text": "a, b"}]


def test_lines_that_do_not_fit_say_how_they_were_cut(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id;text\n1;a\n2;b;c\n")
    with pytest.raises(DataError, match=r"line 3: 3 values, expected 2 .*';' separates them.*delimiter names another"):
        open_table(str(tmp_path / "t.csv")).read()
    (tmp_path / "t.csv").write_text("text\na\nb, c\n")
    with pytest.raises(DataError, match=r"line 3: 2 values, expected 1.*if every line is a text, read the file as txt"):
        open_table(str(tmp_path / "t.csv")).read()


@pytest.mark.parametrize("asked", ["", ";;", '"', "\n", "commas"])
def test_what_is_no_delimiter(tmp_path: Path, asked: str) -> None:
    (tmp_path / "t.csv").write_text("text\na\n")
    with pytest.raises(UsageError, match=r"delimiter is .*expected one character"):
        open_table(str(tmp_path / "t.csv"), delimiter=asked)


def test_a_delimiter_that_leaves_every_line_whole_is_said(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id;price, EUR;name\n" + "".join(f"{i};{i},50;screws, zinc plated\n" for i in range(20)))
    (note,) = open_table(str(path), delimiter="|").notes
    assert str(note).endswith(
        "no '|' is in its first line, so that every line is one value; delimiter ';' would give 3 columns."
    )
    path.write_text("text; or so\n" + "".join(f"one, two; three {';' * (i % 3)}\n" for i in range(20)))
    assert not open_table(str(path), delimiter="|").notes  # no delimiter gives all rows the same columns


def test_a_delimiter_is_for_csv(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a\n")
    with pytest.raises(UsageError, match="delimiter is for csv and tsv, and this is txt"):
        open_table(str(tmp_path / "t.txt"), delimiter=";")


@pytest.mark.parametrize("delimiter", [";", "\t", "|", "^", "]", "\\"])
def test_what_is_written_with_a_delimiter_is_read_with_it(tmp_path: Path, delimiter: str) -> None:
    (tmp_path / "t.jsonl").write_text("".join(f'{{"id": 1.5, "text": {text!r}}}\n'.replace("'", '"') for text in "ab"))
    table = open_table(str(tmp_path / "t.jsonl"))
    with open_writer(str(tmp_path / "o.csv"), table.schema, delimiter=delimiter) as write:
        for batch in table.batches():
            write(batch)
    rows = list(csv.reader((tmp_path / "o.csv").read_text().splitlines(), delimiter=delimiter))
    assert rows == [["id", "text"], ["1.5", "a"], ["1.5", "b"]]
