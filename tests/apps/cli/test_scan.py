"""strays scan."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.apps.cli.conftest import SPAM, Run, rows_of
from tests.conftest import farm_texts


def test_scan_shows_the_oddest_rows(file: Path, tiny_bert: Path, strays: Run) -> None:
    ran = strays("scan", file, "--encoder", tiny_bert, "--top", 5)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == f"The 5 oddest of 85 rows in {file}"
    assert len(lines) == 7
    assert "1 rows without a text passed through unscored" in ran.err


def test_scan_does_not_take_a_share_that_is_always_flagged_for_a_finding(
    file: Path, tiny_bert: Path, strays: Run
) -> None:
    ran = strays("scan", file, "--encoder", tiny_bert, "--top", 1)
    assert "of 84 rows are flagged: with this threshold about 5 % of any file is, odd or not." in ran.err
    assert json.loads(strays("scan", file, "--encoder", tiny_bert, "--json").out)["beyond_chance"] is None
    ran = strays("scan", file, "--encoder", tiny_bert, "--flag-rate", 0.1)
    assert "8 of 84 rows are flagged: the oddest 10 % at most, odd or not;" in ran.err
    ran = strays("scan", file, "--encoder", tiny_bert, "--max-false-alarms", 0.013)
    assert "0 of 84 rows are flagged; this threshold flags at most 1.3 % of normal texts (p-value <= 0.013)." in ran.err
    assert "read the oddest" in ran.err


def test_scan_says_where_it_shows_all_rows(tiny_bert: Path, strays: Run, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("".join(f"{text}\n" for text in (*farm_texts(40), SPAM[0], SPAM[0])))
    ran = strays("scan", tmp_path / "t.txt", "--encoder", tiny_bert, "--top", 42)
    assert ran.out.startswith(f"All 42 rows in {tmp_path / 't.txt'}, oddest first, those alike on one line\n")
    ran = strays("scan", tmp_path / "t.txt", "--encoder", tiny_bert, "--top", 5)
    assert ran.out.startswith("The 5 oddest of 42 rows in")
    ran = strays("scan", tmp_path / "t.txt", "--encoder", tiny_bert, "--top", 1)
    assert ran.out.startswith("The oddest of 42 rows in")


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


def test_scan_writes_the_oddest_rows_first_when_asked_to(file: Path, tiny_bert: Path, strays: Run) -> None:
    out = file.parent / "ranked.csv"
    ran = strays("scan", file, "--encoder", tiny_bert, "--out", out, "--sort", "--json", "--top", 84)
    assert ran.code == 0, ran.err
    rows = rows_of(out)
    assert [row["id"] for row in rows] == [row["id"] for row in json.loads(ran.out)["oddest"]] + ["empty"]
    assert (strays("scan", file, "--sort").code, out.stat().st_size > 0) == (2, True)


def test_copies_are_on_one_line_which_top_counts(tmp_path: Path, tiny_bert: Path, strays: Run) -> None:
    long = "win big cash now click here " * 10
    (tmp_path / "t.csv").write_text("\n".join(["text", *farm_texts(300), *[long] * 10]))
    ran = strays("scan", tmp_path / "t.csv", "--encoder", tiny_bert, "--top", 2)
    title, _, *lines = ran.out.splitlines()
    assert title == f"The 2 oddest of 310 rows in {tmp_path / 't.csv'}, those alike on one line"
    assert len(lines) == 2
    [line] = [line for line in lines if "cash" in line]
    assert line.endswith("\u2026 (and 9 like it)")
    assert len(line) == 120
    [row] = [
        r
        for r in json.loads(strays("scan", tmp_path / "t.csv", "--encoder", tiny_bert, "--json").out)["oddest"]
        if r["n_alike"]
    ]
    assert (row["row"], row["n_alike"], row["rows_alike"]) == (301, 9, list(range(302, 311)))


def test_rows_are_called_by_their_ids(file: Path, tiny_bert: Path, strays: Run) -> None:
    lines = strays("scan", file, "--encoder", tiny_bert, "--top", 84).out.splitlines()
    assert lines[1].split()[:2] == ["id", "score"]
    assert {line.split()[0] for line in lines[2:]} == {row["id"] for row in rows_of(file)} - {"empty"}
    by_text = strays("scan", file, "--encoder", tiny_bert, "--top", 2, "--id-column", "label").out.splitlines()
    assert by_text[1].split()[0] == "label"
    assert strays("scan", file, "--encoder", tiny_bert, "--id-column", "nope").code == 1


def test_ids_do_nothing_to_a_terminal_and_long_ones_are_cut(tiny_bert: Path, strays: Run, tmp_path: Path) -> None:
    lines = [f"{'k' * 40}{i}\x1b[31m\u202e,{text}" for i, text in enumerate(farm_texts(30))]
    (tmp_path / "t.csv").write_text("\n".join(["key,text", *lines]), encoding="utf-8")
    ran = strays("scan", tmp_path / "t.csv", "--encoder", tiny_bert, "--top", 3, "--id-column", "key")
    assert ran.code == 0, ran.err
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out
    names = [line.split()[0] for line in ran.out.splitlines()[2:]]
    assert len(set(names)) == 3
    assert all("\u2026" in name and len(name) <= 40 for name in names)


def test_a_column_of_categories_is_the_label(file: Path, tiny_bert: Path, strays: Run, tmp_path: Path) -> None:
    text = file.read_text().replace("normal", "Ham").replace("anomaly", "spam")
    (tmp_path / "mail.csv").write_text(text)
    told = ("--normal", "label=ham")
    found = json.loads(strays("scan", tmp_path / "mail.csv", "--encoder", tiny_bert, *told, "--json").out)
    assert (found["fitted_on"]["n_normal"], found["fitted_on"]["n_anomaly"]) == (80, 4)
    fit = ("fit", tmp_path / "mail.csv", "--model", tmp_path / "m", "--encoder", tiny_bert, *told)
    assert strays(*fit, "--normal", "label=eggs").code == 1
    assert strays(*fit).code == 0
    ran = strays("evaluate", tmp_path / "mail.csv", "--model", tmp_path / "m", *told, "--json")
    assert json.loads(ran.out)["metrics"]["n_anomalies"] == 4
    assert strays("evaluate", tmp_path / "mail.csv", "--model", tmp_path / "m").code == 2
    ran = strays("scan", tmp_path / "mail.csv", "--encoder", tiny_bert, "--label-column", "label")
    assert (ran.code, "--normal, such as 'label=Ham'" in " ".join(ran.err.split())) == (1, True)


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


@pytest.mark.skipif(sys.platform == "win32", reason="another idea of modes")
def test_what_is_written_of_a_private_file_is_private(file: Path, tiny_bert: Path, strays: Run, tmp_path: Path) -> None:
    for mode, made in ((0o644, 0o644), (0o600, 0o600)):
        file.chmod(mode)
        out, page = tmp_path / f"{mode:o}.csv", tmp_path / f"{mode:o}.html"
        assert strays("scan", file, "--encoder", tiny_bert, "--out", out, "--report", page).code == 0
        assert [path.stat().st_mode & 0o777 for path in (out, page)] == [made, made]
