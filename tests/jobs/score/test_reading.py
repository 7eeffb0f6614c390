"""Jobs on files as people have them: other delimiters, workbooks, folders of documents; also when they are stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strays.errors import DataError, Note, UsageError
from strays.tables import open_table
from tests.jobs.score.standin import StandIn, Stop, everything_in, read_parts, rows, run, stopping


def semicolons(path: Path, n: int = 25) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{row['id']};{row['text']}, with a comma" for row in rows(n)]
    path.write_text("\n".join(["id;text", *lines, ""]))
    return path


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    for i in range(25):
        path = tmp_path / "letters" / f"{i // 10}" / f"{i:02}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line one of {i}\nline two\n")
    return tmp_path / "letters"


@pytest.mark.parametrize("out", ["out.csv", "out/"])
def test_a_stopped_job_goes_on_with_its_delimiter(tmp_path: Path, out: str) -> None:
    source = semicolons(tmp_path / "in" / "t.csv")
    whole = tmp_path / "whole" / out
    whole.parent.mkdir()
    run(source, str(whole) + "/" * out.endswith("/"))
    stopped = f"{tmp_path}/{out}"
    with pytest.raises(Stop):
        run(source, stopped, stopping(StandIn(), 2))
    with pytest.raises(UsageError, match=r"text_column text, this one has id;text"):
        run(source, stopped, delimiter="|")
    assert run(source, stopped, delimiter=";").n_resumed_rows == 20
    if out.endswith("/"):
        assert everything_in(tmp_path / "out") == everything_in(whole)
        written = (tmp_path / "out" / "t-00000.csv").read_text()
    else:
        written = (tmp_path / out).read_text()
        assert written == whole.read_text()
    assert written.startswith("id;text;anomaly_score;p_value;flagged\n0;text  number 0, with a comma;0.")


def test_other_formats_have_their_own_delimiter(tmp_path: Path) -> None:
    source = semicolons(tmp_path / "t.csv")
    run(source, tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text().startswith("id\ttext\tanomaly_score")
    run(source, f"{tmp_path}/parts/", out_format="tsv")
    assert (tmp_path / "parts" / "t-00000.tsv").read_text().startswith("id\ttext\tanomaly_score")


@pytest.mark.parametrize("out", ["out.csv", "out.xlsx", "out.json", "out/"])
def test_documents_are_rows_also_of_a_stopped_job(documents: Path, tmp_path: Path, out: str) -> None:
    with pytest.raises(Stop):
        run(documents, f"{tmp_path}/{out}", stopping(StandIn(), 1))
    summary = run(documents, f"{tmp_path}/{out}")
    assert (summary.n_rows, summary.n_resumed_rows) == (25, 10)
    found = read_parts(tmp_path / "out") if out == "out/" else open_table(f"{tmp_path}/{out}").read().to_pylist()
    assert [row["file"] for row in found] == [f"{i // 10}/{i:02}.txt" for i in range(25)]
    assert found[7]["text"] == "line one of 7\nline two\n"


def test_documents_to_stdout(documents: Path, capfd: pytest.CaptureFixture) -> None:
    assert run(documents, "-").n_rows == 25
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["file"] for line in lines][:2] == ["0/00.txt", "0/01.txt"]


def test_a_document_that_changed_meanwhile_is_noticed(documents: Path, tmp_path: Path) -> None:
    with pytest.raises(Stop):
        run(documents, f"{tmp_path}/out/", stopping(StandIn(), 1))
    (documents / "0" / "03.txt").write_text("another")
    with pytest.raises(DataError, match=r"letters: has changed .*rows 1 to 10"):
        run(documents, f"{tmp_path}/out/")


def test_lines_of_documents_by_format(documents: Path, tmp_path: Path) -> None:
    assert run(documents, tmp_path / "out.csv", format="txt").n_rows == 50


def test_what_was_chosen_is_told_before_the_work(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("ID;Message\nA;one two, three\nB;four five\n")
    told: list[Note] = []
    model = StandIn()
    run(path, tmp_path / "out.csv", model, tell=lambda note: (told.append(note), model.asked and pytest.fail("late")))
    assert [note.params[0] for note in told] == ["delimiter", "text_column"]


def test_a_workbook_goes_in_and_out(tmp_path: Path) -> None:
    source = semicolons(tmp_path / "t.csv")
    run(source, tmp_path / "one.xlsx")
    table = open_table(str(tmp_path / "one.xlsx"))
    assert [str(field.type) for field in table.schema] == ["string", "string", "double", "double", "bool"]
    assert table.read().column("id").to_pylist() == [row["id"] for row in rows(25)]
    run(source, tmp_path / "one.json")
    assert json.loads((tmp_path / "one.json").read_text()) == table.read().to_pylist()
