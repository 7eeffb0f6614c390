"""strays scan."""

from __future__ import annotations

import json
from pathlib import Path

from tests.apps.cli.conftest import SPAM, Run, rows_of
from tests.conftest import farm_texts


def test_scan_shows_the_oddest_rows(file: Path, tiny_bert: Path, strays: Run) -> None:
    ran = strays("scan", file, "--encoder", tiny_bert, "--top", 5)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == f"The 5 oddest of 85 rows in {file}"
    assert len(lines) == 7
    assert "1 rows without a text passed through unscored" in ran.err


def test_scan_learns_from_known_anomalies_and_marks_them(
    file: Path, tiny_bert: Path, strays: Run, tmp_path: Path
) -> None:
    (tmp_path / "known.txt").write_text(f"{SPAM[0]}\nan anomaly that is in no row\n")
    ran = strays("scan", file, "--encoder", tiny_bert, "--known", tmp_path / "known.txt", "--json", "--top", 100)
    report = json.loads(ran.out)
    assert report["detector"] == "auto"
    assert report["fitted_on"]["n_anomaly"] == 2
    assert [row["row"] for row in report["oddest"] if row["label"]] == [82]
    assert len(report["oddest"]) == 84
    scores = [row["anomaly_score"] for row in report["oddest"]]
    assert scores == sorted(scores, reverse=True)


def test_scan_writes_all_rows_with_its_scores(file: Path, tiny_bert: Path, strays: Run) -> None:
    out = file.parent / "out.csv"
    ran = strays("scan", file, "--encoder", tiny_bert, "--out", out, "--json", "--top", 3, "--flag-rate", 0.1)
    assert ran.code == 0, ran.err
    rows = rows_of(out)
    assert [row["id"] for row in rows] == [row["id"] for row in rows_of(file)]
    assert sum(row["flagged"] == "true" for row in rows) == 8  # a tenth of 84 texts
    oddest = json.loads(ran.out)["oddest"][0]
    assert float(rows[oddest["row"] - 1]["anomaly_score"]) == oddest["anomaly_score"]


def test_scan_writes_a_report_beside_the_ranking(file: Path, tiny_bert: Path, strays: Run) -> None:
    page = file.parent / "report.html"
    ran = strays("scan", file, "--encoder", tiny_bert, "--report", page, "--top", 3)
    assert ran.code == 0, ran.err
    assert len(ran.out.splitlines()) == 5
    assert f"The report is {page}" in ran.err
    html = page.read_text()
    assert html.count('<li class="card') == 50
    assert "No text has a label" in html


def test_a_report_and_rows_need_files_of_their_own(file: Path, strays: Run) -> None:
    ran = strays("scan", file, "--report", file.parent / "a.csv", "--out", file.parent / "a.csv")
    assert (ran.code, "the rows are written there too" in ran.err) == (2, True)


def test_hostile_texts_cannot_reach_the_terminal(tmp_path: Path, tiny_bert: Path, strays: Run) -> None:
    texts = [*farm_texts(20), "\x1b]0;owned\x07 \x1b[2J", "\u202etxet desrever", "[red]not markup[/red]", "a\rb\nc"]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    out = strays("scan", tmp_path / "t.jsonl", "--encoder", tiny_bert, "--top", 30).out
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(out)
    assert "[red]not markup[/red]" in out
    assert "a b c" in out


def test_a_warning_is_a_line_not_a_traceback(tmp_path: Path, tiny_bert: Path, strays: Run) -> None:
    (tmp_path / "t.txt").write_text("\n".join(f"肝硬化是什么病 {chr(97 + i % 26)}" for i in range(26)))
    ran = strays("scan", tmp_path / "t.txt", "--encoder", tiny_bert)
    assert ran.code == 0
    assert "warning: most of these texts seem to be in Chinese" in ran.err
    assert "UserWarning" not in ran.err
