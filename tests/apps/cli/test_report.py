"""strays report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apps.cli.conftest import Run


def test_report_fits_on_the_file_or_takes_a_model(file: Path, model: Path, tiny_bert: Path, strays: Run) -> None:
    page, labels = file.parent / "report.html", ("--label-column", "label")
    ran = strays(
        "report", file, "--out", page, "--encoder", tiny_bert, *labels, "--top", 5, "--title", "Farm & co", "--json"
    )
    assert ran.code == 0, ran.err
    facts = json.loads(ran.out)
    assert (facts["n_rows"], facts["n_without_text"], len(facts["oddest"])) == (85, 1, 5)
    assert (facts["quality"]["by"], facts["fitted_here"]) == ("models fitted without the text", True)
    assert "map" not in facts
    assert "<h1><bdi>Farm &amp; co</bdi></h1>" in page.read_text()
    ran = strays("report", file, "--out", page, "--model", model, *labels, "--flag-rate", 0.1, "--json")
    facts = json.loads(ran.out)
    evaluated = json.loads(strays("evaluate", file, "--model", model, *labels, "--json").out)
    assert facts["quality"]["metrics"] == pytest.approx(evaluated["metrics"])
    assert facts["flagged_are"].startswith("the oddest 10 % of texts")
    assert "the curves flatter it" in page.read_text()
    ran = strays("report", file, "--out", "-", "--model", model, "--top", 0)
    assert ran.out.startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--out", "nowhere/page.html"), 1, "there is no folder nowhere; make it first"),
        (("--out", "."), 1, "is a folder; expected the name of a file"),
        (("--out", "texts.csv"), 2, "is the input itself"),
        (
            ("--out", "page.html", "--model", "m", "--known", "k", "--max-length", 9),
            2,
            "--model and --known, --max-len",
        ),
        (("--out", "page.html", "--label-column", "nope"), 1, "there is no column 'nope'"),
        (("--out", "page.html", "--flag-rate", 3), 2, "must be between 0 and 1"),
    ],
)
def test_report_refuses_before_the_work(
    file: Path, strays: Run, monkeypatch: pytest.MonkeyPatch, options: tuple, code: int, says: str
) -> None:
    monkeypatch.chdir(file.parent)
    monkeypatch.setattr("strays.model.TextOutlierDetector.fit", lambda *_, **__: pytest.fail("went to work"))
    ran = strays("report", "texts.csv", *options)
    assert ran.code == code
    assert says in ran.err
    assert not (file.parent / "page.html").exists()
