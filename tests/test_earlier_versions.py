"""What version 0.1 wrote still opens: models with the scores they gave then, projects with their verdicts, and jobs."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from strays import TextOutlierDetector
from strays.apps.review.open_project import open_desk
from strays.engines import LocalEngine
from strays.errors import DataError, StraysWarning
from strays.jobs.score import ScoreSummary, no_bar, score_files
from strays.tables import open_table

DATA = Path(__file__).parent / "data" / "0.1"
pytestmark = pytest.mark.usefixtures("default_encoder")


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


# ---- jobs that 0.1 was stopped in, after 36 of 60 rows ---------------------------------------------------------------


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The folder with the file that was scored, and what was written beside it."""
    shutil.copy(DATA / "pile.csv", tmp_path)
    for name in ("parts", "top"):
        shutil.copytree(DATA / "jobs" / name, tmp_path / name)
    shutil.copytree(DATA / "jobs" / "scored.csv.strays", tmp_path / ".scored.csv.strays")
    return tmp_path


def resume(place: Path, out: str, **options: object) -> ScoreSummary:
    model = TextOutlierDetector.load(DATA / "model")
    if out == "top":
        model.set_threshold(top=7)
    options = {"part_rows": 12, "engine": LocalEngine()} | options
    return score_files(model, str(place / "pile.csv"), str(place / out), **options)


def same_but_for_rounding(place: Path, out: str) -> None:
    files = [place / out] if out.endswith(".csv") else sorted((place / out).glob("pile-*.csv"))
    found = [row for path in files for row in open_table(str(path)).read().to_pylist()]
    (place / "whole").mkdir()
    resume(place, "whole/all.csv")
    expected = open_table(str(place / "whole" / "all.csv")).read().to_pylist()
    assert [(row["id"], row["text"]) for row in found] == [(row["id"], row["text"]) for row in expected]
    scores = [[float(row["anomaly_score"]) for row in rows] for rows in (found, expected)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-3)


@pytest.mark.parametrize("out", ["parts", "top", "scored.csv"])
def test_a_job_is_resumed_and_finished(job: Path, out: str) -> None:
    with pytest.warns(StraysWarning, match=r"was begun by strays 0\.1\.0; what that has scored is kept"):
        summary = resume(job, out)
    assert (summary.n_rows, summary.n_resumed_rows, summary.n_remade) == (60, 36, 0)
    same_but_for_rounding(job, out)
    if out == "scored.csv":
        assert {path.name for path in job.iterdir()} == {"pile.csv", "parts", "top", "scored.csv", "whole"}
        return
    bookkeeping = {"_manifest.jsonl", "_scores.f64"} if out == "top" else {"_manifest.jsonl"}
    assert {path.name for path in (job / out).iterdir() if not path.name.startswith("pile-")} == bookkeeping
    assert resume(job, out).n_resumed_rows == 60


def test_a_part_that_was_written_and_not_recorded_is_told_by_its_rows(job: Path) -> None:
    """0.1 wrote a part and then recorded it: killed between the two, it left one that its manifest does not list."""
    shutil.copy(DATA / "jobs" / "unrecorded.csv", job / "parts" / "pile-00003.csv")
    with pytest.warns(StraysWarning, match="was begun by"):
        assert resume(job, "parts").n_resumed_rows == 36
    same_but_for_rounding(job, "parts")


def test_a_file_of_somebody_else_is_not_taken_for_such_a_part(job: Path) -> None:
    mine = job / "parts" / "pile-00003.csv"
    shutil.copy(DATA / "pile.csv", mine)
    with pytest.warns(StraysWarning, match="was begun by"), pytest.raises(DataError, match="not written by this job"):
        resume(job, "parts")
    assert mine.read_bytes() == (DATA / "pile.csv").read_bytes()
    mine.unlink()
    assert resume(job, "parts").n_rows == 60


def test_a_part_of_another_length_and_a_restart(job: Path) -> None:
    (job / "parts" / "pile-00001.csv").write_text("mine")
    with pytest.warns(StraysWarning) as warned:
        assert resume(job, "parts").n_remade == 1
    assert "kept as _pile-00001.csv.changed" in str(warned[-1].message)
    with pytest.warns(StraysWarning, match="was begun by"):
        assert resume(job, "top", part_rows=30, restart=True).n_resumed_rows == 0
    assert (job / "parts" / "_pile-00001.csv.changed").read_text() == "mine"


def test_an_upgrade_that_was_killed_midway_is_finished(job: Path) -> None:
    older = (job / "parts" / "manifest.jsonl").read_bytes()
    with pytest.warns(StraysWarning, match="was begun by"):
        resume(job, "parts")
    (job / "parts" / "manifest.jsonl").write_bytes(older)
    assert resume(job, "parts").n_resumed_rows == 60
    assert not (job / "parts" / "manifest.jsonl").exists()
    (job / "parts" / "manifest.jsonl").write_bytes(older[:-1] + b" ")  # and this is somebody's own file
    resume(job, "parts")
    assert (job / "parts" / "manifest.jsonl").exists()
