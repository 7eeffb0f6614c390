"""Tables, findings and the page: made from rows alone, and those of the committed rows are the ones in docs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import strays
from strays.errors import StraysError, UsageError
from strays.evaluation.corpora import CORPORA
from strays.evaluation.paper import findings, printed, studies
from strays.evaluation.paper.cases import CASES
from strays.evaluation.paper.figures import figures_of, save
from strays.evaluation.paper.methods import METHODS
from strays.evaluation.paper.page import check_page, render, write_page
from strays.evaluation.paper.rows import Row
from strays.evaluation.paper.run import read_all
from strays.evaluation.paper.tables import comparison, percent, tables_of, where
from strays.evaluation.paper.tuning import Tuning
from strays.evaluation.paper.unseen import METHODS_COMPARED
from strays.evaluation.protocol import POLLUTIONS

REPO = Path(strays.__file__).parent.parent.parent
RESULTS = REPO / "benchmarks" / "results" / "paper"
committed = pytest.mark.skipif(not RESULTS.is_dir(), reason="needs the repository's benchmarks/results/paper")


def measured(auc: float) -> Row:
    curve = [round(float(x), 4) for x in np.linspace(0, 1, 51)]
    return {"map": auc / 2, "recall_at_5": auc / 3, "auc": auc, "fpr_at_80_tpr": 1 - auc, "roc_fpr": curve}


def comparison_rows(study: str, slope: dict[str, float], runs: int = 5) -> list[Row]:
    """Rows in which a method's AUC moves by its slope from the lowest to the highest p, with a little noise by seed."""
    rng = np.random.default_rng(0)
    return [
        {"study": study, "encoder": "default", "method": method, "pollution": p, "seed": seed}
        | measured(0.7 + 0.01 * list(METHODS).index(method) + slope.get(method, 0.0) * p / 0.08 + 0.001 * rng.random())
        for seed, p, method in product(range(runs), POLLUTIONS, METHODS)
    ]


def unseen_rows(study: str) -> list[Row]:
    kinds = CORPORA["5.2-ag"].anomalies
    return [
        {"study": study, "encoder": "default", "method": method, "known": kind, "pollution": p, "seed": seed}
        | {"seen": measured(0.8 + 0.01 * i + seed / 1000), "unseen": measured(0.8 - 0.01 * i + seed / 1000)}
        for seed, kind, p, (i, method) in product(range(2), kinds, POLLUTIONS[1:], enumerate(METHODS_COMPARED))
    ]


@pytest.fixture(scope="module")
def every() -> dict[str, list[Row]]:
    """Rows of every kind of study."""
    slope = {"lof": -0.1, "deep-svdd": -0.05, "centroid": -0.02, "oc-svm": -0.02, "ai-svdd": 0.1}
    cases = {case.name: [{"study": case.name, "draw": i} | case.compute(i) for i in range(3)] for case in CASES}
    tuning = [
        cell | measured(0.5 + i / 2000)
        for i, cell in enumerate(Tuning("5.1").cells(type("S", (), {"encoder_name": "default"})))
    ]
    splits = [row | {"study": "5.3", "pollution": None} for row in comparison_rows("5.3", {}) if row["pollution"] == 0]
    return {
        "5.1": comparison_rows("5.1", slope),
        "5.3": splits,
        **cases,
        "unseen-5.2-ag": unseen_rows("unseen-5.2-ag"),
        "tuning-5.1": tuning,
    }


def test_a_cell_is_mean_and_deviation_in_percent(every: dict[str, list[Row]]) -> None:
    assert percent([0.1, 0.2]) == "15.0 (5.0)"
    [_, _, auc, fpr] = comparison("5.1", every["5.1"])
    assert auc.header == ["method", "by", "p = 0 %", "p = 1 %", "p = 2 %", "p = 4 %", "p = 8 %"]
    lines = {(line[0], line[1]): line[2:] for line in auc.rows}
    rows = where(every["5.1"], method="lof", pollution=0.08)
    assert lines["local outlier factor", "strays, default"][-1] == percent([row["auc"] for row in rows])
    assert lines["AI-SVDD, the paper's settings", "paper: AI-SVDD"] == printed.TABLES["5.1"]["AI-SVDD"]["auc"]
    assert ("one-class SVM", "paper: OC-SVM") not in lines  # the paper does not compare it in 5.1
    assert ["distance to the mean", "paper: BERT-rank", "24"] in fpr.rows


def test_random_splits_are_one_table(every: dict[str, list[Row]]) -> None:
    [table] = comparison("5.3", every["5.3"])
    assert ["one-class SVM", "paper: OC-SVM", "7.1 (0.9)", "11.0 (2.0)", "54.2 (1.2)", ""] in table.rows


def test_claims_are_judged_by_their_interval(every: dict[str, list[Row]]) -> None:
    verdict = {trend.method: trend.verdict for trend in findings.trends("5.1", every["5.1"], "auc")}
    assert verdict["lof"] == verdict["deep-svdd"] == "falls"
    assert verdict["ai-svdd"] == "rises"
    assert verdict["ai-svdd-paper"] == verdict["isolation-forest"] == "no clear change"
    [blind, as_printed, ours, *_] = findings.sentences({"5.1": every["5.1"]}, {})
    assert "4 of 5 pairs of method and corpus fall clearly, 1 show no clear change, 0 rise" in blind
    assert "Not falling: isolation forest on 5.1" in blind
    assert "no clear change" in as_printed
    assert "rises" in ours


def test_an_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    intervals = [findings.interval(rng.normal(1.0, 1.0, size=5).tolist()) for _ in range(2000)]
    assert np.mean([abs(mean - 1.0) <= half_width for mean, half_width in intervals]) == pytest.approx(0.95, abs=0.015)


def test_duels_are_paired_by_kind_and_run(every: dict[str, list[Row]]) -> None:
    table = findings.duels({"5.2-ag": every["unseen-5.2-ag"]})
    winners = {(line[1], line[2]): (line[4], line[6]) for line in table.rows}
    # Made so: every method a hundredth above the one before it on seen kinds, below it on unseen ones.
    assert winners["seen", "1 %"] == ("logistic regression", "MLP classifier, 128 hidden units")
    assert winners["unseen", "8 %"] == ("AI-SVDD", "AI-SVDD")


def test_tuning_shows_the_best_and_the_papers_choice(every: dict[str, list[Row]]) -> None:
    ours, theirs = tables_of("tuning-5.1", every["tuning-5.1"])
    for table, choice in ((ours, ["256", "128", "64", "0.0001"]), (theirs, ["2048", "256", "128"])):
        assert [line[0] for line in table.rows[:3]] == ["1", "2", "3"]
        [paper] = [line for line in table.rows if "paper's choice" in line[0]]
        assert paper[1 : 1 + len(choice)] == choice


def test_the_same_rows_make_the_same_page_in_any_order(every: dict[str, list[Row]]) -> None:
    page = render(every, "figures")
    assert page == render({name: list(rows) for name, rows in every.items()}, "figures")
    assert "$" not in page
    turned = {name: sorted(rows, key=lambda row: -row.get("seed", 0)) for name, rows in every.items()}
    assert render(turned, "figures") == page


def test_a_study_half_run_makes_a_page(every: dict[str, list[Row]]) -> None:
    for n in (1, 2, 6, 7, 8, 20, 36):
        part = {name: rows[:n] for name, rows in every.items()}
        assert render(part, "figures").startswith("# The paper, run again")
    assert "## 5.1" not in render({}, "figures")


def test_the_page_links_figures_that_are_drawn(every: dict[str, list[Row]], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'strays[study]'")
    write_page(every, str(tmp_path / "deep" / "page.md"))
    page = (tmp_path / "deep" / "page.md").read_text()
    linked = re.findall(r"\]\((page/[^)]+)\)", page)
    assert len(linked) == 7
    for link in linked:
        root = ET.parse(tmp_path / "deep" / link).getroot()
        assert root.tag.endswith("svg")
        assert not re.search(r"https?://(?!www\.w3\.org|purl\.org|creativecommons\.org)", ET.tostring(root).decode())


def test_the_same_rows_make_the_same_figure(every: dict[str, list[Row]], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'strays[study]'")
    draw = figures_of("5.1", every["5.1"])["5.1-pollution"]
    save(draw, tmp_path / "a.svg")
    save(draw, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_what_the_page_cannot_be_is_said_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"ends in \.md"):
        check_page("page.html")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(StraysError, match=r"pip install 'strays\[study\]'"):
        check_page("page.md")


@committed
def test_docs_are_made_from_the_committed_rows() -> None:
    every = read_all(RESULTS)
    assert (REPO / "docs" / "paper.md").read_text(encoding="utf-8") == render(every, "paper")
    for name, rows in every.items():
        for figure in figures_of(name, rows):
            assert (REPO / "docs" / "paper" / f"{figure}.svg").exists(), figure


@committed
def test_the_tables_are_there_with_five_runs() -> None:
    every = read_all(RESULTS)
    for name in [name for name in CORPORA if name in every]:
        for encoder in {row["encoder"] for row in every[name]}:
            rows = [row for row in every[name] if row["encoder"] == encoder]
            pollutions = {row["pollution"] for row in rows}
            assert pollutions == ({None} if name == "5.3" else set(POLLUTIONS))
            wanted = set(product(METHODS, pollutions, range(5)))
            assert {(row["method"], row["pollution"], row["seed"]) for row in rows} == wanted
            assert len(rows) == len(wanted)
    assert set(studies()) >= set(every)
