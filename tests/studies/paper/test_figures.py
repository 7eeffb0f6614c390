"""Which lines the figures draw; that the same rows draw the same file is tested with the page."""

from __future__ import annotations

import pytest

from strays.studies.paper import printed
from strays.studies.paper.figures import figures_of, pollution, roc
from strays.studies.paper.methods import METHODS
from strays.studies.rows import Row
from tests.studies.paper.made_rows import comparison_rows

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'strays[study]'")


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return comparison_rows("5.1", {})


def test_roc_curves_show_networks_as_tuned_where_they_are(rows: list[Row]) -> None:
    titles = [ax.get_title() for ax in roc("5.1", rows).axes]
    assert "deep OC-SVDD, tuned here" in titles
    assert not [title for title in titles if "the paper's numbers" in title]
    old = [row for row in rows if not METHODS[row["method"]].grid]
    titles = [ax.get_title() for ax in roc("5.1", old).axes]
    assert "deep OC-SVDD, the paper's numbers" in titles


def test_the_papers_figures_are_drawn_beside_ours(rows: list[Row]) -> None:
    _, auc = pollution("5.1", rows).axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in auc.lines}
    assert drawn["paper: AI-SVDD"] == [float(cell.split()[0]) for cell in printed.TABLES["5.1"]["AI-SVDD"]["auc"]]
    assert len(drawn) == len(METHODS) + 2


def test_studies_of_tables_alone_have_no_figures() -> None:
    assert not any(figures_of(f"{kind}-5.1", []) for kind in ("tuning", "choices", "repeat"))
