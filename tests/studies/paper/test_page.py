"""The page: made from rows alone, and that of the committed rows is the one in docs."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import strays
from strays.errors import StraysError, UsageError
from strays.studies.corpora import CORPORA
from strays.studies.paper.figures import save
from strays.studies.paper.methods import METHODS
from strays.studies.paper.page import all_figures, check_page, render, write_page
from strays.studies.paper.registry import read_all, studies
from strays.studies.paper.sketches import motivation
from strays.studies.rows import Row
from tests.studies.paper.made_rows import every_row

REPO = Path(strays.__file__).parent.parent.parent
RESULTS = REPO / "benchmarks" / "results" / "paper"
committed = pytest.mark.skipif(not RESULTS.is_dir(), reason="needs the repository's benchmarks/results/paper")


@pytest.fixture(scope="module")
def every() -> dict[str, list[Row]]:
    return every_row()


@pytest.fixture(scope="module")
def shuffled(every: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The same rows in another order."""
    rng = np.random.default_rng(0)
    return {name: [rows[i] for i in rng.permutation(len(rows))] for name, rows in every.items()}


def test_the_order_of_the_rows_does_not_matter(every: dict[str, list[Row]], shuffled: dict[str, list[Row]]) -> None:
    page = render(every, "figures")
    assert "$" not in page
    assert render(shuffled, "figures") == page


@pytest.fixture(scope="module")
def page(every: dict[str, list[Row]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of these rows, with its figures beside it."""
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'strays[study]'")
    path = tmp_path_factory.mktemp("page") / "deep" / "page.md"
    write_page(every, str(path))
    return path


@pytest.mark.slow
def test_nor_does_it_matter_for_the_figures(page: Path, shuffled: dict[str, list[Row]], tmp_path: Path) -> None:
    for figure, draw in all_figures(shuffled).items():
        save(draw, tmp_path / "again.svg")
        assert (page.parent / "page" / f"{figure}.svg").read_text() == (tmp_path / "again.svg").read_text(), figure


def test_a_study_half_run_makes_a_page(every: dict[str, list[Row]]) -> None:
    for n in (1, 2, 6, 7, 8, 20, 36):
        part = {name: rows[:n] for name, rows in every.items()}
        assert render(part, "figures").startswith("# The paper, run again")
    assert "### 5.1" not in render({}, "figures")


def test_every_section_is_there_in_its_order(every: dict[str, list[Row]]) -> None:
    assert re.findall("^## (.*)", render(every, "figures", "## These rows\n"), re.MULTILINE) == [
        "In short",
        "The paper's two networks, printed and here",
        "Do the paper's statements hold?",
        "Figure 1: why labels",
        "Figure 2: the pipeline",
        "The studies",
        "Choices the paper leaves open",
        "Do rows repeat?",
        "Tuning",
        "Case studies",
        "Against plain classifiers",
        "How this differs from the paper",
        "These rows",
    ]


@pytest.mark.parametrize("kind", ["5.", "case-", "unseen-", "tuning-", "choices-", "repeat-"])
def test_a_page_does_without_any_kind_of_study(kind: str, every: dict[str, list[Row]]) -> None:
    left = {name: rows for name, rows in every.items() if not name.startswith(kind)}
    page = render(left, "figures")
    assert "$" not in page
    assert len(page) < len(render(every, "figures"))
    assert "## How this differs" in page


def test_figure_1_counts_what_it_shows(every: dict[str, list[Row]]) -> None:
    sketch = motivation()
    for by, (center, radius) in sketch.circles.items():
        inside = np.linalg.norm(sketch.unseen - center, axis=1) <= radius
        assert sketch.missed(by) == inside.sum()
        labelled_normal = np.r_[sketch.normal, sketch.mislabelled]
        assert 1 - sketch.flags(by, labelled_normal).mean() == pytest.approx(0.95, abs=0.02)
    page = " ".join(render({}, "figures").split())
    n = len(sketch.unseen)
    assert f"{sketch.missed('without labels')} of {n} anomalies of kinds never seen lie inside" in page
    assert f"takes {sketch.missed('classifier')} of {n} for normal" in page
    draws = [motivation(seed) for seed in range(200)]
    helped = np.mean([draw.missed("with labels") < draw.missed("without labels") for draw in draws])
    assert f"labels let fewer inside in {100 * helped:.0f} % of the draws" in page


@pytest.mark.slow
def test_the_page_links_figures_that_are_drawn(page: Path) -> None:
    linked = re.findall(r"\]\((page/[^)]+)\)", page.read_text())
    assert len(linked) == 9
    for link in linked:
        root = ET.parse(page.parent / link).getroot()
        assert root.tag.endswith("svg")
        assert not re.search(r"https?://(?!www\.w3\.org|purl\.org|creativecommons\.org)", ET.tostring(root).decode())


def test_what_the_page_cannot_be_is_said_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"ends in \.md"):
        check_page("page.html")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(StraysError, match=r"pip install 'strays\[study\]'"):
        check_page("page.md")


@committed
def test_docs_are_made_from_the_committed_rows() -> None:
    notes = (REPO / "docs" / "paper.notes.md").read_text(encoding="utf-8")
    assert (REPO / "docs" / "paper.md").read_text(encoding="utf-8") == render(read_all(RESULTS), "paper", notes)


@pytest.mark.slow
@committed
def test_figures_in_the_docs_are_drawn_from_the_committed_rows(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'strays[study]'")
    drawn_with = f"matplotlib=={matplotlib.__version__}\n" in (REPO / "constraints.txt").read_text()
    drawn = all_figures(read_all(RESULTS))
    assert {path.stem for path in (REPO / "docs" / "paper").glob("*.svg")} == set(drawn)
    for figure, draw in drawn.items():
        kept = (REPO / "docs" / "paper" / f"{figure}.svg").read_bytes()
        save(draw, tmp_path / "again.svg")
        assert kept == (tmp_path / "again.svg").read_bytes() or not drawn_with, figure


@committed
def test_the_notes_say_how_long_the_studies_take() -> None:
    file = RESULTS.parent / "paper_time.json"
    if not file.exists():
        pytest.skip("needs benchmarks/results/paper_time.json")
    seconds = sum(study["seconds"] for study in json.loads(file.read_text())["studies"].values())
    notes = " ".join((REPO / "docs" / "paper.notes.md").read_text(encoding="utf-8").split())
    assert f"{seconds / 3600:.1f} hours on two cores" in notes


@committed
@pytest.mark.parametrize("name", [name for name in studies() if not name.startswith("repeat-")])
def test_committed_studies_are_whole(name: str) -> None:
    study, rows = studies()[name], read_all(RESULTS).get(name, [])
    for encoder in {row.get("encoder") for row in rows}:
        own = [row for row in rows if row.get("encoder") == encoder]
        if name.startswith("tuning-") and not any("training" in row for row in own):
            pytest.skip("rows of version 0.1")
        tuned = any("settings" in row for row in own)
        cells = study.cells(SimpleNamespace(encoder_name=encoder, out=RESULTS, runs=5))  # type: ignore[arg-type]
        wanted = [cell for cell in cells if tuned or not (cell.get("method") in METHODS and is_tuned(cell["method"]))]
        assert sorted(key(wanted[0], row) for row in own) == sorted(key(cell, cell) for cell in wanted)


def is_tuned(method: str) -> bool:
    return METHODS[method].grid is not None


def key(cell: Row, row: Row) -> str:
    return str([row[field] for field in cell])


@committed
@pytest.mark.parametrize("name", CORPORA)
def test_every_comparison_is_committed(name: str) -> None:
    encoders = {row["encoder"] for row in read_all(RESULTS)[name]}
    assert encoders >= ({"m3e-small"} if name == "5.3" else {"default"})
