"""strays fit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.apps.cli.conftest import SPAM, Run


def test_fit_keeps_no_texts_where_none_are_wanted(file: Path, tiny_bert: Path, strays: Run, tmp_path: Path) -> None:
    model = tmp_path / "silent"
    assert strays("fit", file, "--model", model, "--encoder", tiny_bert, "--keep-examples", 0).code == 0
    assert "most like it" not in strays("explain", "--model", model, SPAM[0]).out


def test_fit_replaces_an_older_model(file: Path, model: Path, tiny_bert: Path, strays: Run) -> None:
    model = Path(shutil.copytree(model, file.parent / "older"))
    ran = strays("fit", file, "--model", model, "--encoder", tiny_bert, "--detector", "lof", "--seed", 3)
    assert ran.code == 0
    assert json.loads(strays("info", model, "--json").out)["detector"]["name"] == "lof"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("text,label\na,anomaly\nb,anomaly\nc,anomaly\n", "all 3 texts are labelled anomaly"),
        ("text,label\na,\n", "got 1 texts"),
        ("text,label\na,\nb,\n", "got 2 texts"),
        ("text,label\na,\na,\na,\na,\n", "1 of them normal or unlabelled and different"),
        ("text,label\n,\n ,\n", "no row has a text in column 'text'"),
        ("text,label\na,odd\nb,\n", "row 1: the label in column 'label' is 'odd'"),
    ],
)
def test_corpora_that_cannot_be_fitted(tmp_path: Path, strays: Run, tiny_bert: Path, rows: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(rows)
    model = tmp_path / "m"
    ran = strays("fit", tmp_path / "t.csv", "--model", model, "--label-column", "label", "--encoder", tiny_bert)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err
    assert not model.exists()
