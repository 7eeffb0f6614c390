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
from strays.studies.corpora import CORPORA
from strays.studies.paper import duels, findings, printed
from strays.studies.paper.cases import CASES
from strays.studies.paper.figures import figures_of, save
from strays.studies.paper.methods import METHODS
from strays.studies.paper.page import check_page, render, write_page
from strays.studies.paper.registry import read_all
from strays.studies.paper.summary import interval, percent, where
from strays.studies.paper.tables import comparison, tables_of
from strays.studies.paper.tuning import Tuning, is_printed, ranked
from strays.studies.paper.unseen import METHODS_COMPARED
from strays.studies.protocol import POLLUTIONS
from strays.studies.rows import Row

REPO = Path(strays.__file__).parent.parent.parent
RESULTS = REPO / "benchmarks" / "results" / "paper"
committed = pytest.mark.skipif(not RESULTS.is_dir(), reason="needs the repository's benchmarks/results/paper")


def measured(auc: float) -> Row:
    curve = [round(float(x), 4) for x in np.linspace(0, 1, 51)]
    return {"map": auc / 2, "recall_at_5": auc / 3, "auc": auc, "fpr_at_80_tpr": 1 - auc, "roc_fpr": curve}


def comparison_rows(study: str, slope: dict[str, float], encoders: tuple[str, ...] = ("default",)) -> list[Row]:
    """Rows in which a method's AUC moves by its slope from the lowest to the highest p, with a little noise by seed."""
    rng = np.random.default_rng(0)
    return [
        {"study": study, "encoder": encoder, "method": method, "pollution": p, "seed": seed}
        | measured(0.7 + 0.01 * list(METHODS).index(method) + slope.get(method, 0.0) * p / 0.08 + 0.001 * rng.random())
        for encoder, seed, p, method in product(encoders, range(5), POLLUTIONS, METHODS)
    ]


def unseen_rows(study: str) -> list[Row]:
    kinds = CORPORA["5.2-ag"].anomalies
    return [
        {"study": study, "encoder": encoder, "method": method, "known": kind, "pollution": p, "seed": seed}
        | {"seen": measured(0.8 + 0.01 * i + seed / 1000), "unseen": measured(0.8 - 0.01 * i + seed / 1000)}
        for encoder, seed, kind, p, (i, method) in product(
            ("default", "another"), range(2), kinds, POLLUTIONS[1:], enumerate(METHODS_COMPARED)
        )
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
        "5.1": comparison_rows("5.1", slope, ("another", "default")),
        "5.3": splits,
        **cases,
        "unseen-5.2-ag": unseen_rows("unseen-5.2-ag"),
        "tuning-5.1": tuning,
    }


def test_a_cell_is_mean_and_deviation_in_percent(every: dict[str, list[Row]]) -> None:
    assert [percent([0.1, 0.2]), percent([0.1]), percent([])] == ["15.0 (5.0)", "10.0", ""]
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
    rows = where(every["5.1"], encoder="default")
    verdict = {trend.method: trend.verdict for trend in findings.trends("5.1", rows, "auc")}
    assert verdict["lof"] == verdict["deep-svdd"] == "falls"
    assert verdict["ai-svdd"] == "rises"
    assert verdict["ai-svdd-paper"] == verdict["isolation-forest"] == "no clear change"
    [blind, as_printed, _, ours, *_] = findings.sentences({"5.1": rows}, {})
    assert "AUC falls clearly in 4 of 5 combinations of method, corpus and encoder, rises clearly in 0." in blind
    assert "No clear change: isolation forest on 5.1." in blind
    assert "rises clearly in 0 of 1 combinations" in as_printed
    assert "rises clearly in 1 of 1 combinations" in ours
    claims = findings.claims({"5.1": rows})
    [line] = [line for line in claims.rows if line[1] == "AI-SVDD, the paper's settings"]
    assert (line[5], line[8]) == ("+19.1", "+3.1")  # the paper's 30.0 to 49.1 and 89.1 to 92.2


def test_only_methods_the_paper_compares_there_are_ranked(every: dict[str, list[Row]]) -> None:
    [sentence] = [line for line in findings.sentences({"5.1": every["5.1"]}, {}) if line.startswith("**5.1**")]
    assert "encoder default: highest in its table is AI-SVDD, strays' settings" in sentence
    assert "of the 3 methods the paper compares there, none is above AI-SVDD with the paper's settings" in sentence


def test_what_the_paper_says_of_its_tables_is_checked() -> None:
    # Made so: each of METHODS a hundredth above the one before it at p = 0.
    rows = comparison_rows("5.1", {})
    by_words = {line[0]: line[2:] for line in findings.statements({"5.1": rows}).rows}
    assert by_words["5.1: AI-SVDD is best at p = 8 %"] == ["yes", ""]
    assert by_words["5.1: OC-SVDD is best without pollution"] == ["no", "AI-SVDD, the paper's settings (3)"]
    for row in where(rows, method="deep-svdd", pollution=0.0):
        row["map"] = 0.99
    [line] = [line for line in findings.statements({"5.1": rows}).rows if "without pollution" in line[0]]
    assert line[2] == "in 1 of 3"


def test_an_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    intervals = [interval(rng.normal(1.0, 1.0, size=5).tolist()) for _ in range(2000)]
    assert np.mean([abs(mean - 1.0) <= half_width for mean, half_width in intervals]) == pytest.approx(0.95, abs=0.015)


def test_duels_count_a_run_once(every: dict[str, list[Row]]) -> None:
    against = {"ag": every["unseen-5.2-ag"]}
    found = {(d.encoder, d.test, d.pollution, d.other): d for d in duels.duels(against, "ai-svdd")}
    # Made so: every method a hundredth above the one before it on seen kinds, below it on unseen ones.
    for encoder, p in product(("default", "another"), POLLUTIONS[1:]):
        assert found[encoder, "seen", p, "logistic"].winner == "logistic regression"
        assert found[encoder, "unseen", p, "mlp"].winner == "AI-SVDD"
        assert found[encoder, "unseen", p, "mlp"].lead == pytest.approx(0.02)
    lines = duels.duel_sentences({"ag": where(every["unseen-5.2-ag"], encoder="default")})
    assert "AI-SVDD wins 0 by AUC, the classifier wins 8, and 0 are even" in lines[2]
    assert "AI-SVDD wins 8 by AUC, the classifier wins 0, and 0 are even" in lines[3]
    assert lines[-1].endswith("of kinds never seen: distance to the mean at every p.")
    rows = [row | {"seen": measured(row["seed"] / 10)} for row in every["unseen-5.2-ag"]]
    rows = [row | {"seen": measured(0.5)} if row["method"] == "mlp" else row for row in rows]
    duel = next(d for d in duels.duels({"ag": rows}, "ai-svdd") if (d.other, d.test) == ("mlp", "seen"))
    # Two runs, at 0 and 0.1: however many kinds, the interval is that of two differences.
    assert duel.half_width == pytest.approx(interval([-0.5, -0.4])[1])
    assert duel.winner == "even"


def test_tuning_shows_the_best_and_the_papers_choice(every: dict[str, list[Row]]) -> None:
    ours, theirs = tables_of("tuning-5.1", every["tuning-5.1"])
    for table, choice in ((ours, ["256", "128", "64", "0.0001"]), (theirs, ["2048", "256", "128"])):
        assert [line[0] for line in table.rows[:3]] == ["1", "2", "3"]
        [paper] = [line for line in table.rows if "paper's choice" in line[0]]
        assert paper[1 : 1 + len(choice)] == choice


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
    for name, rows in shuffled.items():
        for figure, draw in figures_of(name, rows).items():
            save(draw, tmp_path / "again.svg")
            assert (page.parent / "page" / f"{figure}.svg").read_text() == (tmp_path / "again.svg").read_text(), figure


def test_a_study_half_run_makes_a_page(every: dict[str, list[Row]]) -> None:
    for n in (1, 2, 6, 7, 8, 20, 36):
        part = {name: rows[:n] for name, rows in every.items()}
        assert render(part, "figures").startswith("# The paper, run again")
    assert "## 5.1" not in render({}, "figures")


@pytest.mark.slow
def test_the_page_links_figures_that_are_drawn(page: Path) -> None:
    linked = re.findall(r"\]\((page/[^)]+)\)", page.read_text())
    assert len(linked) == 7
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
    for name, rows in read_all(RESULTS).items():
        for figure, draw in figures_of(name, rows).items():
            kept = (REPO / "docs" / "paper" / f"{figure}.svg").read_bytes()
            save(draw, tmp_path / "again.svg")
            assert kept == (tmp_path / "again.svg").read_bytes() or not drawn_with, figure


@committed
def test_the_notes_say_what_the_rows_say() -> None:
    every = read_all(RESULTS)
    notes = " ".join((REPO / "docs" / "paper.notes.md").read_text(encoding="utf-8").split())
    settings = ranked(every["tuning-5.1"], "deep-svdd")
    [place] = [i for i, row in enumerate(settings) if is_printed(row, "5.1")]
    assert f"number {place + 1} of the {len(settings)} settings" in notes
    assert f"dev AUC {100 * settings[place]['auc']:.1f}; weight decay {settings[0]['weight_decay']:g} gives" in notes
    assert f"gives {100 * settings[0]['auc']:.1f}, near" in notes
    two = [row["auc"] for row in where(every["5.1"], encoder="default", method="ai-svdd-paper", pollution=0.02)]
    one = [row["seen"]["auc"] for row in where(every["unseen-5.1"], method="ai-svdd-paper", pollution=0.02)]
    assert f"at p = 2 % is {100 * np.mean(two):.0f} in one and {100 * np.mean(one):.0f} in the other" in notes


@committed
@pytest.mark.parametrize("name", CORPORA)
def test_every_table_is_there_with_five_runs(name: str) -> None:
    every = read_all(RESULTS)[name]
    encoders = {"5.3": {"m3e-small"}, "5.2-yelp": {"default"}, "5.2-rct": {"default"}}
    assert {row["encoder"] for row in every} == encoders.get(name, {"default", "all-mpnet-base-v2"})
    pollutions = {None} if name == "5.3" else POLLUTIONS
    for encoder in {row["encoder"] for row in every}:
        rows = [(row["method"], row["pollution"], row["seed"]) for row in every if row["encoder"] == encoder]
        assert sorted(rows, key=str) == sorted(product(METHODS, pollutions, range(5)), key=str)


@committed
def test_the_other_studies_are_there_whole() -> None:
    every = read_all(RESULTS)
    assert {name: len(rows) for name, rows in every.items() if name not in CORPORA} == {
        "case-1": 200,
        "case-2": 200,
        "case-3": 200,
        "unseen-5.1": 100,
        "unseen-5.2-ag": 300,
        "unseen-5.2-rct": 400,
        "tuning-5.1": 536,
        "tuning-5.2-rct": 536,
    }
