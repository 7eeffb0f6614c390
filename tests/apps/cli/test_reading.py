"""Files as newcomers have them: what the commands say, and what they write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apps.cli.conftest import SPAM, Run
from tests.conftest import farm_texts


@pytest.fixture
def semicolons(tmp_path: Path) -> Path:
    texts = [*farm_texts(40), *SPAM]
    lines = [f'T-{i};chat, mail;"{text}; really"' for i, text in enumerate(texts)]
    (tmp_path / "t.csv").write_text("\ufeffID;Channel;Message\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "t.csv"


def test_scan_says_how_it_reads_and_keeps_the_delimiter(semicolons: Path, tiny_bert: Path, strays: Run) -> None:
    out = semicolons.parent / "out.csv"
    ran = strays("scan", semicolons, "--encoder", tiny_bert, "--top", 1, "--out", out)
    assert ran.code == 0, ran.err
    assert "its values are separated by ';', as its first rows tell; --delimiter names another delimiter." in ran.err
    assert "Texts are in column 'Message' (by its name, of 3 columns; --text-column names another)." in ran.err
    assert out.read_text().splitlines()[0] == "ID;Channel;Message;anomaly_score;p_value;flagged"
    asked = ["--delimiter", ";", "--text-column", "Message", "--json"]
    ran = strays("scan", semicolons, "--encoder", tiny_bert, "--top", 1, *asked)
    assert json.loads(ran.out)["n_rows"] == 44
    assert "separated" not in ran.err
    assert "Texts are in" not in ran.err


def test_a_folder_of_documents_from_fit_to_evaluate(tmp_path: Path, tiny_bert: Path, strays: Run) -> None:
    (tmp_path / "docs").mkdir()
    for i, text in enumerate([*farm_texts(40), *SPAM]):
        (tmp_path / "docs" / f"{i:02}.txt").write_text(f"{text}\nand more\n")
    (tmp_path / "docs" / "paper.pdf").write_bytes(b"%PDF")
    model, docs = tmp_path / "model", tmp_path / "docs"
    for command in (
        ["fit", docs, "--model", model, "--encoder", tiny_bert],
        ["scan", docs, "--encoder", tiny_bert, "--out", tmp_path / "ranked.xlsx"],
        ["score", docs, "--model", model, "--out", tmp_path / "scored.csv"],
        ["report", docs, "--model", model, "--out", tmp_path / "page.html"],
    ):
        ran = strays(*command)
        assert ran.code == 0, ran.err
        assert "44 documents, each one text; skipped: paper.pdf (a PDF file)." in ran.err
    assert (tmp_path / "scored.csv").read_text().startswith("file,text,anomaly_score")
    ran = strays("scan", tmp_path / "ranked.xlsx", "--encoder", tiny_bert, "--out", "-", "--text-column", "none")
    assert "its columns are 'file', 'text', 'anomaly_score', 'p_value', 'flagged'" in ran.err


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--format", "xlsx"], 1, "is no Excel workbook"),
        (["--format", "xls"], 2, "no such format: 'xls'; expected one of csv, tsv, json"),
        (["--delimiter", "semi"], 2, "--delimiter is 'semi'; expected one character"),
        (["--sheet", "x"], 2, "--sheet is for xlsx, and this is csv"),
        (["--text-column", "x"], 1, "no column 'x' (--text-column)"),
        (["--out", "t.csv/x.csv"], 1, "there is no folder"),
    ],
)
def test_options_that_do_not_fit(semicolons: Path, strays: Run, options: list[str], code: int, words: str) -> None:
    ran = strays("scan", semicolons, *options)
    assert (ran.code, words in ran.err) == (code, True), ran.err
