"""What version 0.1 wrote still opens: models with the scores they gave then, and a project with its verdicts."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from strays import TextOutlierDetector
from strays.apps.review.open_project import open_desk
from strays.jobs.score import no_bar

DATA = Path(__file__).parent / "data" / "0.1"


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, str]]]:
    """The rows that models of 0.1 scored, by the model's name."""
    found = {}
    for name in ("model", "ai-svdd"):
        with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            found[name] = list(csv.DictReader(file))
    return found


@pytest.mark.parametrize("name", ["model", "ai-svdd"])
def test_a_model_gives_the_scores_of_then(name: str, rows: dict[str, list[dict[str, str]]]) -> None:
    model = TextOutlierDetector.load(DATA / name)
    scores = model.score([row["text"] for row in rows[name]])
    then = {key: np.array([float(row[key]) for row in rows[name]]) for key in ("anomaly_score", "p_value")}
    np.testing.assert_allclose(scores.anomaly_score, then["anomaly_score"], rtol=1e-3)
    # A p-value is a rank, and a flag follows from it: a text whose score is nearly that of a held-out one may change
    # places with it on another processor.
    one_rank = 1.01 * model.calibration_.lowest_p_value
    np.testing.assert_allclose(scores.p_value, then["p_value"], atol=one_rank)
    clear = np.abs(then["p_value"] - model.threshold_.value) > one_rank
    flagged = np.array([row["flagged"] == "true" for row in rows[name]])
    np.testing.assert_array_equal(scores.flagged[clear], flagged[clear])


@pytest.mark.parametrize("name", ["model", "ai-svdd"])
def test_a_model_explains(name: str) -> None:
    """Also by what is new: it is made of the texts that the model kept then."""
    explanation = TextOutlierDetector.load(DATA / name).explain("My chain slips, earn 900 a day, can you look?")
    assert explanation.nearest_normals
    assert explanation.what_is_odd()
    assert explanation.odd_parts or explanation.segments[0].text == "earn 900 a day,"


def test_a_saved_copy_is_the_same_model(tmp_path: Path) -> None:
    model = TextOutlierDetector.load(DATA / "model")
    model.save(tmp_path / "copy")
    assert TextOutlierDetector.load(tmp_path / "copy").fingerprint == model.fingerprint
    assert model.version == "ddcb583f3bdc1ff6"


@pytest.mark.parametrize("name", ["pile.csv", "pile.csv.strays"])
def test_a_project_opens_with_its_verdicts(name: str, tmp_path: Path) -> None:
    for file in ("pile.csv", "pile.csv.strays"):
        shutil.copy(DATA / file, tmp_path)
    desk = open_desk(str(tmp_path / name), progress=no_bar)
    now = desk.snapshot
    said = {now.project.ids[place]: event.verdict for place, event in now.verdicts.standing.items()}
    assert said == {1: "anomaly", 2: "normal", 3: "skip", 4: "anomaly"}  # that of text 5 was undone
    desk.judge([5], "normal", "bob", "d")
    assert len(desk.snapshot.verdicts.standing) == 5
