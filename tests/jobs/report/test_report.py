"""The report as an object: the page, the JSON, the file, the browser, the notebook."""

from __future__ import annotations

import html
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strays.errors import StraysError
from strays.jobs.report import Report
from strays.jobs.report.page import level, map_script
from strays.jobs.scan import Scan


@pytest.fixture(scope="module")
def report(scan: Scan) -> Report:
    return Report.of(scan, top=3, title="Farm & co")


def test_the_page_is_html_and_the_same_in_a_file(report: Report, tmp_path: Path) -> None:
    assert report.html().startswith("<!doctype html>")
    report.write(str(tmp_path / "page.html"))
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == report.html()
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_the_json_holds_all_facts_but_the_map(report: Report) -> None:
    said = json.loads(report.json())
    assert said == {key: value for key, value in report.facts.items() if key != "map"}
    assert len(said["oddest"]) == 3


def test_it_opens_in_a_browser(report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("webbrowser.open", opened.append)
    report.open()
    [page] = tmp_path.iterdir()
    assert opened == [page.as_uri()]
    assert page.read_text(encoding="utf-8") == report.html()


def test_rows_are_called_by_their_ids_which_are_shown_as_text(scan: Scan) -> None:
    first = int(np.nanargmax(scan.scores.anomaly_score)) - 1  # the file begins with a row without a text
    ids: list[str | None] = [f"k{i}" for i in range(124)]
    ids[first] = "<script>alert(1)</script>\u202e\x1b[31m" + "x" * 3000
    named = replace(scan, corpus=replace(scan.corpus, ids=ids, id_column="<i>"))
    made = Report.of(named, top=3)
    assert json.loads(made.json())["oddest"][0]["id"].startswith("<script>alert")
    assert json.loads(made.json())["oddest"][1]["id"] == ids[made.facts["oddest"][1]["row"] - 2]
    page = made.html()
    assert f"<bdi>{made.facts['oddest'][1]['id']}</bdi>" in page
    for word in ("<script>alert", "\u202e", "\x1b", "x" * 100, "<i>"):
        assert word not in page
    assert "&lt;script&gt;alert" in page
    assert all(len(id_) <= 40 for id_ in made.facts["map"]["id"])
    assert Report.of(scan, top=1).facts["map"]["id"] is None


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(report: Report) -> None:
    frame = report._repr_html_()
    start, end = '<iframe srcdoc="', '" sandbox="allow-scripts"'
    assert frame.startswith(start)
    inner = frame.removeprefix(start).partition(end)[0]
    assert html.unescape(inner) == report.html()
    assert not set('"<>') & set(inner)


def test_it_says_what_it_is(report: Report) -> None:
    assert repr(report) == "<Report: 124 texts of folder/texts.csv, 3 shown>"


def test_a_missing_jinja_is_answered_with_the_command(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(StraysError, match=r"pip install 'strays\[report\]'"):
        report.html()


def test_levels_of_marks() -> None:
    assert [level(strength) for strength in (0, 0.1, 0.2, 0.5, 0.9, 1)] == [0, 0, 1, 2, 3, 4]


def test_the_map_needs_no_eval_and_no_inline_handlers() -> None:
    script = map_script()
    for word in ("innerHTML", "eval(", "new Function", "outerHTML", "insertAdjacentHTML", "document.write", "onclick"):
        assert word not in script
