"""The commands as a user calls them, in this process, on a tiny encoder and models that are fitted once."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from strays.apps.cli import main
from tests.conftest import farm_texts

SPAM = ["win big cash now click here", "free cash win now", "click here to win free cash", "cash cash cash now"]


@dataclass
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def strays(capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "120")

    def run(*args: object, stdin: bytes | None = None) -> Ran:
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as exit_:
            main([str(arg) for arg in args])
        captured = capfd.readouterr()
        return Ran(exit_.value.code or 0, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def texts_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [{"id": f"{i:03}", "text": text, "label": "normal"} for i, text in enumerate(farm_texts(80))]
    rows += [{"id": f"x{i}", "text": text, "label": "anomaly"} for i, text in enumerate(SPAM)]
    rows.insert(10, {"id": "empty", "text": "  ", "label": ""})
    path = tmp_path_factory.mktemp("texts") / "texts.csv"
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, ["id", "text", "label"])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def file(texts_csv: Path, tmp_path: Path) -> Path:
    """85 rows in a folder of its own: 80 normal texts, 4 anomalies, and the eleventh without a text."""
    return Path(shutil.copy(texts_csv, tmp_path))


@pytest.fixture(scope="session")
def model(texts_csv: Path, tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the file and its labels. Do not change it."""
    folder = tmp_path_factory.mktemp("fitted") / "model"
    command = ["fit", str(texts_csv), "--model", str(folder), "--encoder", str(tiny_bert), "--label-column", "label"]
    with pytest.raises(SystemExit) as exit_:
        main(command)
    assert exit_.value.code == 0
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
