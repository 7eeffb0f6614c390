"""strays study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apps.cli.conftest import Run


def test_study_shows_tables_keeps_rows_and_writes_the_page(tmp_path: Path, strays: Run) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'strays[study]'")
    ran = strays("study", "case-2", "case-3", "--out", tmp_path / "rows", "--page", tmp_path / "page.md")
    assert ran.code == 0
    assert "case-2: 200 draws" in ran.out
    assert sorted(path.name for path in (tmp_path / "rows").iterdir()) == ["case-2.jsonl", "case-3.jsonl"]
    page = (tmp_path / "page.md").read_text()
    assert "### II. Three maps" in page
    (tmp_path / "page.md").unlink()
    assert strays("study", "--out", tmp_path / "rows", "--page", tmp_path / "page.md").code == 0
    assert (tmp_path / "page.md").read_text() == page
    as_json = json.loads(strays("study", "case-3", "--out", tmp_path / "rows", "--json").out)
    assert as_json["case-3"][0]["header"] == ["centre", "mean (deviation)"]


def test_a_stopped_study_says_that_its_rows_are_kept(
    tmp_path: Path, strays: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from strays.studies.paper import cases

    def stop_at_the_third(draw: int) -> dict:
        if draw == 2:
            raise KeyboardInterrupt
        return {"blind": 1.0, "blind_without_anomalies": 1.0, "taught": 0.5}

    monkeypatch.setattr(cases.CASES[2], "compute", stop_at_the_third)
    ran = strays("study", "case-3", "--out", tmp_path)
    assert (ran.code, "run the same command again to resume" in ran.err) == (130, True)
    assert len((tmp_path / "case-3.jsonl").read_text().splitlines()) == 2


def test_study_lists_and_refuses(tmp_path: Path, strays: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRAYS_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert "tuning-5.2-yelp" in strays("study", "--list").out
    assert "5.3" in json.loads(strays("study", "--list", "--json").out)
    for args, code, words in (
        ([], 2, "which study? Expected all, or some of 5.1,"),
        (["5.9"], 2, "no study is called '5.9'"),
        (["5.1"], 2, "Name it with --data or the environment variable STRAYS_DATA"),
        (["5.1", "--data", "nowhere"], 2, "nowhere: no such folder"),
        (["5.1", "--data", "."], 1, "which holds the corpus of 5.1"),
        (["case-1", "--page", "page.html"], 2, "ends in .md"),
        (["--page", "page.md"], 2, "study holds no rows to make a page of"),
    ):
        ran = strays("study", *args)
        assert (ran.code, words in ran.err) == (code, True), ran.err
    assert list(tmp_path.iterdir()) == []
