"""The benchmarks' own arithmetic, and that the committed pages and figures are those of the committed rows."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from benchmarks import planted, regret, validity
from benchmarks.regret_cells import WITHOUT_FORM, cells_of, read

from strays.jobs.metrics import auc, mean_average_precision
from strays.studies.protocol import FewLabels, LabelledRows

REPO = Path(__file__).parent.parent
RESULTS = REPO / "benchmarks" / "results"


def row(method: str, known: int, seed: int, value: float, **more: object) -> dict:
    place = {"corpus": "bbc", "pollution": 0.0, "known": known, "seed": seed, "method": method}
    return place | {"auc_seen": value, "ap_seen": value / 2} | more


def test_regret_is_against_the_best_mean_over_the_seeds() -> None:
    rows = [row("auto", 5, s, v) for s, v in enumerate((0.8, 0.9))]
    rows += [row("logistic", 5, s, v) for s, v in enumerate((0.95, 0.7))]
    rows += [row(m, 0, s, v) for m, v in (("nearest", 0.86), ("auto", 0.8), ("logistic", 0.2)) for s in (0, 1)]
    rows += [
        row(m, k, s, 0.1) for m in (WITHOUT_FORM, "ai-svdd", "deep-sad", "hypersphere") for k in (0, 5) for s in (0, 1)
    ]
    none, five = cells_of(rows)
    assert (none.known, five.known) == (0, 5)
    assert five.best() == "nearest"  # measured without labels, and best on the mean though not with the first seed
    assert five.regret() == pytest.approx(86 - 85)
    assert five.regret("ap") == pytest.approx(43 - 42.5)
    assert none.regret() == pytest.approx(6)


def test_cells_need_auto_and_the_kind() -> None:
    assert cells_of([row("nearest", 0, 0, 0.5)]) == []
    [cell] = cells_of([row(method, 0, 0, 0.5) for method in (*regret.LEARN_FROM_LABELS, "nearest")])
    assert cell.kind == "seen"
    every = [row(method, 0, 0, 0.5) for method in regret.LEARN_FROM_LABELS]
    assert len(cells_of([*every, row("logistic", 300, 0, 0.9)])) == 1


def test_quality_is_as_if_five_percent_were_anomalies() -> None:
    rng = np.random.default_rng(0)
    normal, anomaly = rng.normal(size=950), rng.normal(size=50) + 1
    measured = dict(regret.quality(normal, anomaly))
    y, score = np.r_[np.ones(950), -np.ones(50)].astype(int), np.r_[normal, anomaly]
    assert measured["auc"] == pytest.approx(auc(y, score), abs=1e-6)
    assert measured["ap"] == pytest.approx(mean_average_precision(y, score), abs=1e-6)
    assert dict(regret.quality(normal, np.repeat(anomaly, 7)))["ap"] == pytest.approx(measured["ap"], abs=1e-6)


def test_every_method_can_be_measured() -> None:
    X = np.random.default_rng(0).normal(size=(90, 8))
    y = np.r_[np.zeros(50), -np.ones(5)].astype(int)
    draw = FewLabels(
        LabelledRows(np.arange(55), y), np.arange(55, 75), np.arange(75, 90), np.array([], dtype=int), ("k",)
    )
    texts = [f"text {i}" for i in range(90)]
    for method in ("auto", WITHOUT_FORM, "logistic", "nearest"):
        found = regret.measure(method, texts, X, draw, 0)
        assert 0 <= found["auc_seen"] <= 1
        assert "auc_unseen" not in found


def test_realised_rates_are_near_the_promise_where_normals_are_alike() -> None:
    X = np.random.default_rng(1).normal(size=(700, 6))
    texts = [f"text {i}" for i in range(700)]
    found = validity.realised(texts, validity.Kept(texts, X), np.arange(600), np.arange(600, 700), 100, "known", 4)
    assert found["held_out"] == 100
    assert found["allowed"] == pytest.approx([0, 1 / 101, 5 / 101, 10 / 101], abs=1e-6)
    assert found["realised"][0] == 0
    assert found["realised"][3] == pytest.approx(found["allowed"][3], abs=4 * found["error"][3])


@pytest.mark.parametrize("chinese", [False, True])
def test_a_planted_clause_is_where_it_is_said_to_be(chinese: bool) -> None:
    host = "孩子发烧三天了\uff0c吃什么药好。" if chinese else "My front brake squeaks, can you look at it?"
    for seed in range(20):
        text, start, end = planted.plant(host, "GUEST", np.random.default_rng(seed), chinese)
        assert text[start:end] == "GUEST"
        assert planted.first_clause(text[start:])[:5] == "GUEST"


committed = pytest.mark.skipif(not (RESULTS / "regret").is_dir(), reason="no rows of the regret benchmark here")


@committed
def test_the_regret_page_is_that_of_the_rows() -> None:
    from benchmarks.regret_page import text

    assert (REPO / "docs" / "regret.md").read_text(encoding="utf-8") == text(cells_of(read(RESULTS / "regret")))


@pytest.mark.slow
@committed
def test_the_regret_figures_are_those_of_the_rows(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'strays[study]'")
    from benchmarks.regret_page import curves

    from strays.studies.paper.figures import save

    cells = cells_of(read(RESULTS / "regret"))
    for corpus in {cell.corpus for cell in cells}:
        save(curves(cells, corpus), tmp_path / "again.svg")
        kept = (REPO / "docs" / "regret" / f"{corpus}.svg").read_text(encoding="utf-8")
        assert kept == (tmp_path / "again.svg").read_text(encoding="utf-8"), corpus


@committed
def test_every_regret_cell_has_three_seeds_and_all_methods() -> None:
    rows = read(RESULTS / "regret")
    assert {row["split"] for row in rows} == {"test"}
    for corpus in {row["corpus"] for row in rows}:
        of = [row for row in rows if row["corpus"] == corpus]
        found = {(row["known"], row["pollution"], row["seed"], row["method"]) for row in of}
        assert len(found) == len(of)
        for known, pollution in regret.CELLS:
            for method in (*regret.DETECTORS, WITHOUT_FORM) if known == 0 else regret.LEARN_FROM_LABELS:
                for seed in range(3):
                    assert (known, pollution, seed, method) in found


@pytest.mark.skipif(not (RESULTS / "validity.jsonl").exists(), reason="no rows of the validity benchmark here")
def test_the_validity_rows_keep_their_promise() -> None:
    rows = [json.loads(line) for line in (RESULTS / "validity.jsonl").read_text().splitlines()]
    excess = [
        (realised - allowed) / max(error, 1e-9)
        for row in rows
        for allowed, realised, error in zip(row["allowed"], row["realised"], row["error"], strict=True)
    ]
    assert max(excess) < 4
    assert np.mean(np.array(excess) > 2) < 0.03  # 0.023 by chance


def test_what_is_odd_beyond_chance_is_seldom_claimed_where_nothing_is() -> None:
    from benchmarks import beyond_chance

    rows = [json.loads(line) for line in (RESULTS / "beyond_chance.jsonl").read_text().splitlines()]
    for corpora in (beyond_chance.CHOSEN_ON, beyond_chance.OTHERS):
        for share in beyond_chance.SHARES:
            found = beyond_chance.means(rows, corpora, "clean", share)
            assert found["held"] > 0.9
            assert found["too_high"] < 0.1
    # Why a file compared with itself gets no estimate: no shape of its scores tells piles with strays from others.
    for name in ("tail", "normal", "mixture"):
        claims = beyond_chance.claims_alone(rows, name)
        assert claims[0.1] < claims[0.0] + 0.1


def test_the_shape_of_scores_and_the_interval_are_measured() -> None:
    from benchmarks import beyond_chance

    rng = np.random.default_rng(0)
    clean, mixed = rng.normal(size=1000), np.r_[rng.normal(size=900), rng.normal(size=100) + 6]
    # Were normal scores of one known shape, the shape would tell; those of texts are not.
    assert all(beyond_chance.shape(mixed)[name] > value + 0.01 for name, value in beyond_chance.shape(clean).items())


def test_the_speed_page_is_that_of_the_results() -> None:
    from benchmarks import speed_page

    assert speed_page.PAGE.read_text() == speed_page.page()


@committed
def test_the_readmes_figures_and_their_page_are_those_of_the_results() -> None:
    from benchmarks import figures_page

    for path, text in figures_page.files().items():
        assert path.read_text(encoding="utf-8") == text, path.name


@committed
def test_the_table_of_dependencies_is_that_of_the_install_and_names_them_all() -> None:
    from benchmarks import install_page

    for path, text in install_page.files().items():
        assert path.read_text(encoding="utf-8") == text
    asked = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["dependencies"]
    assert set(install_page.DEPENDENCIES) == {re.match(r"[\w-]+", line)[0] for line in asked}


def test_an_install_is_small() -> None:
    sizes = json.loads((RESULTS / "install_size.json").read_text())
    pinned, newest = sizes["pinned"], sizes["newest"]
    assert (pinned["heavy"], newest["heavy"]) == ([], [])
    assert pinned["environment_mb"] <= 650
    assert pinned["downloaded_mb"] + pinned["encoder_downloaded_mb"] <= 250
    assert abs(newest["environment_mb"] / pinned["environment_mb"] - 1) <= 0.1
    told = f"An environment takes {round(pinned['environment_mb'], -1):.0f} MB"
    assert told in (REPO / "README.md").read_text(encoding="utf-8")


def test_the_page_on_repeated_texts_is_that_of_the_rows_and_copies_cost_less_than_two_points() -> None:
    from benchmarks import repeats, repeats_page

    path = RESULTS / "repeats.jsonl"
    assert repeats_page.PAGE.read_text(encoding="utf-8") == repeats_page.page(path)
    rows = [row for row in map(json.loads, path.read_text().splitlines()) if row["version"] != "0.1"]
    for kind in ("exact", "paraphrased"):
        mean = {n: np.mean([row[f"{kind}_{n}"] for row in rows if row["method"] == "auto"]) for n in repeats.COPIES}
        assert np.mean([mean[n] for n in repeats.COPIES[1:]]) > mean[1] - 2


def test_the_desks_page_is_that_of_the_results() -> None:
    from benchmarks import desk_page

    assert desk_page.PAGE.read_text() == desk_page.page()


def test_the_desk_finds_more_than_a_fixed_ranking() -> None:
    from benchmarks import desk_page
    from benchmarks.labelling import CORPORA, WAYS

    rows = desk_page.rows()
    assert len(rows) == len({(row["corpus"], row["seed"], row["way"]) for row in rows}) == 3 * len(CORPORA) * len(WAYS)
    found = desk_page.found_by(rows)
    assert set(found) == set(CORPORA)
    assert desk_page.ratio(found, "desk", "fixed") >= 1.49  # 1.5 is wanted, and missed by that much
    assert desk_page.ratio(found, "desk", "oddest") >= 1


def test_found_and_ratios_are_means_over_the_seeds() -> None:
    from benchmarks import desk_page

    def rows(way: str, counts: dict[str, list[int]]) -> list[dict]:
        return [
            {"corpus": corpus, "seed": seed, "way": way, "found": {"200": n}}
            for corpus, of in counts.items()
            for seed, n in enumerate(of)
        ]

    found = desk_page.found_by(rows("fixed", {"a": [1, 3], "b": [10, 10]}) + rows("desk", {"a": [6, 2], "b": [10, 20]}))
    assert found["a"] == {"fixed": [1, 3], "desk": [6, 2]}
    assert desk_page.ratio(found, "desk", "fixed") == pytest.approx((2 + 1.5) / 2)


def test_a_simulated_person_judges_every_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import labelling

    from strays.studies.corpora import CorpusSpec, LabelledCorpus
    from strays.studies.protocol import pile
    from tests.conftest import HashEncoder, farm_texts

    monkeypatch.setattr(labelling, "VERDICTS", 30)
    monkeypatch.setattr(labelling, "LOOKS", (15, 30))
    texts = [*farm_texts(100), *(f"oil prices rise {i}" for i in range(10))]
    label = np.array(["farm"] * 100 + ["oil"] * 10)
    corpus = LabelledCorpus("farm", CorpusSpec("farm.parquet", "farm"), texts, label, np.array(["train"] * 110))
    drawn = pile(corpus, 0.05, 0)
    assert (drawn.y < 0).sum() == 5
    for way in labelling.WAYS:
        row = labelling.run(corpus, drawn, HashEncoder(), way, 0)
        assert row["n_texts"] == 105
        assert 0 <= row["found"][15] <= row["found"][30] <= 5
        if way == "desk":
            assert len(row["judged"]) == 30
            assert sum(row["open"][15]) == 105 - 15


def test_the_report_keeps_its_bars() -> None:
    found = json.loads((RESULTS / "report.json").read_text())
    assert found["page"]["rows"] == 100_000
    assert found["page"]["page_bytes"] < 10_000_000
    assert found["page"]["seconds_beyond_scoring"] < 30
    assert found["map"]["points"] == 20_000
    for hand in ("pan", "zoom"):
        assert found["map"]["strays"][hand]["frame_ms_p95"] < found["map"]["plotly"][hand]["frame_ms_p95"]
    kept = found["layout"]["trustworthiness"]
    assert kept["layout"] > kept["principal_components"] + 0.1


def test_ratios_are_ours_to_theirs() -> None:
    from benchmarks.report import ratios

    hands = ("pan", "zoom", "hover")
    ours = {"bytes": 1, "ms_until_drawn": 50} | {hand: {"frame_ms_p95": 10.0} for hand in hands}
    theirs = {"bytes": 4, "ms_until_drawn": 100} | {hand: {"frame_ms_p95": 40.0} for hand in hands}
    found = ratios(ours, theirs)
    assert (found["bytes"], found["ms_until_drawn"], found["pan"]["frame_ms_p95"]) == (0.25, 0.5, 0.25)


def test_the_desk_keeps_to_its_bars() -> None:
    from benchmarks.desk import summary

    assert summary([0.01] * 99 + [1.0]) == {"p50": 10.0, "p95": 10.0, "max": 1000.0}
    found = json.loads((RESULTS / "desk.json").read_text())
    assert found["rows"] == 10_000
    assert found["busy_ms"]["p95"] < found["bars"]["p95_busy_ms"]
    assert found["busy_refit_seconds"]["max"] < found["bars"]["refit_seconds_max"]


def test_the_servers_page_is_that_of_the_results() -> None:
    from benchmarks import operations_page

    assert operations_page.PAGE.read_text() == operations_page.page()


def test_the_server_keeps_its_bars() -> None:
    from benchmarks.operations_page import failed

    found = json.loads((RESULTS / "serve.json").read_text())
    served, flood, answers = found["served"], found["overload"], found["answers"]
    assert (served["clients"], served["of_offline"] >= 0.7, served["seconds"] >= 60) == (64, True, True)
    assert served["statuses"].keys() == {"200"}
    assert flood["clients"] == 4 * served["clients"]
    assert flood["statuses"].keys() == {"200", "429"}
    assert sum(failed(run) for run in (served, flood, found["afterwards"], *found["other_calls"])) == 0
    assert answers["compared"] > 20_000
    assert answers["largest_difference"] < 1e-4
    assert (answers["swapped"], answers["flags_that_differ"]) == (0, 0)
    assert served["memory"]["last_third_mb"] < 1.03 * served["memory"]["first_third_mb"]


def test_the_soak_swaps_nothing_and_stops_in_time() -> None:
    found = json.loads((RESULTS / "soak.json").read_text())
    server, desk = found["server"], found["desk"]
    assert found["minutes"] >= 30
    for one in (server, desk):
        assert one["server_errors"] == 0
        assert one["memory_mb"]["last_third"] < 1.03 * one["memory_mb"]["middle_third"]
        assert (one["exit_code"], one["stop_seconds"] < 10) == (0, True)
        assert one["statuses"]["slow_reader"].keys() <= {"200", "429"}
    assert server["answers_compared"] > 10_000
    assert (server["answers_swapped"], server["flags_that_differ"], server["versions_seen"]) == (0, 0, 2)
    assert server["log"].get("broken", 0) == 0
    assert desk["verdicts_acknowledged"] == desk["verdicts_exported"]
    assert desk["statuses"]["stranger"].keys() == {"403"}


def test_a_cluster_gives_what_one_machine_gives() -> None:
    jobs = json.loads((RESULTS / "cluster.json").read_text())["jobs"]
    compared = [run for job in jobs for run in job["results"] if "rows_compared" in run]
    assert max(run["rows_compared"] for run in compared) >= 10**6
    assert len(compared) >= 4
    for run in compared:
        assert run["same_files"]
        assert run["same_bytes"]
        assert run["same_manifest"]
        assert run["values_different"] == 0


DUMP = """\
Package: hen
Section: farm
Description: a game of hens
 with more lines
 that do not count

Package: hen-data
Section: contrib/games
Description: a game of hens

Package: chess
Section: contrib/games
Description:  a game of chess\x20

Package: chess-nox
Description: a game of chess
Section: games

Package: none
Section: games
"""


def test_a_description_of_one_section_counts_once() -> None:
    from benchmarks.packages import by_description

    assert by_description(DUMP) == {"a game of chess": "games"}


def test_a_pile_of_packages_hides_one_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import packages

    from strays.tables import open_table
    from tests.conftest import HashEncoder, farm_texts

    monkeypatch.setattr(packages, "NORMALS", 95)
    monkeypatch.setattr(packages, "KNOWN", 2)
    monkeypatch.setattr(packages, "VERDICTS", 10)
    sections = dict.fromkeys(farm_texts(200), "libs") | {f"oil prices rise {i}": "games" for i in range(10)}
    texts, y = packages.draw(sections, "games", seed=0)
    assert [sections[text] == "games" for text in texts] == (y < 0).tolist()
    assert (len(texts), int((y < 0).sum())) == (100, 5)
    assert packages.draw(sections, "games", seed=1)[0] != texts
    known = packages.known_rows(y)
    assert y[known].tolist() == [-1, -1]
    for ten_known in (False, True):
        row = packages.ranked(texts, y, HashEncoder(), ten_known)
        assert row["precision_at_50"] <= 3 / 50  # the two that are known do not count
    assert 0 <= packages.at_desk(texts, y, HashEncoder(), seed=0)["found"] <= 3
    packages.write(tmp_path, sections, texts, y)
    assert open_table(str(tmp_path / "packages.csv")).read()["text"].to_pylist() == texts
    assert (tmp_path / "known.txt").read_text().splitlines() == [texts[row] for row in known]


def test_rows_of_other_packages_are_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import packages

    monkeypatch.setattr(packages, "RESULT", tmp_path / "packages.json")
    assert packages.finished({"packages": 7}) == []
    packages.RESULT.write_text(json.dumps({"date": "2026-01-01", "packages": 7, "rows": [{"seed": 0}]}))
    assert packages.finished({"packages": 7}) == [{"seed": 0}]
    assert packages.finished({"packages": 8}) == []


def test_ten_examples_find_the_rest() -> None:
    """What the README opens with."""
    from benchmarks.packages import SECTIONS
    from benchmarks.packages_page import STORY, found, values

    rows = found()["rows"]
    assert len(rows) == len({(row["section"], row["seed"], row["way"]) for row in rows})
    assert {row["section"] for row in rows} == set(SECTIONS)  # all that were tried, not the best
    assert len(values(STORY, "ten", "map")) >= 3
    assert min(values(STORY, "ten", "map")) > 5 * max(values(STORY, "none", "map"))


def test_more_labels_do_not_hurt() -> None:
    """On average over the piles. Single ones may lose where ranking is hardly better than chance."""
    from benchmarks.more_labels import LOOKS, RESULT

    from strays.studies.rows import RowFile

    cells = [row["quality"]["now"] for row in RowFile(RESULT).read()]
    for rows, measure in itertools.product(("fresh", "unjudged"), ("auc", "map")):
        counted = [cell for cell in cells if cell["0"][rows]]
        value = np.array([[cell[str(look)][rows][measure] for look in LOOKS] for cell in counted])
        change = value[:, 1:] - value[:, :1]
        assert (change.mean(axis=0) >= 0).all()
        assert change.min() > -4


def test_more_labels_do_not_hurt_where_most_is_still_hidden() -> None:
    from benchmarks import packages

    measured = json.loads(packages.RESULT.read_text())["rows"]
    for way, rows in (("half", "fresh"), ("desk", "unjudged")):
        found = [row for row in measured if row["way"] == way]
        assert {row["section"] for row in found} == set(packages.SECTIONS)
        for measure in ("auc", "map"):
            change = [row[f"{measure}_{rows}_verdicts"] - row[f"{measure}_{rows}_ten"] for row in found]
            assert np.mean(change) > 0
            assert min(change) > -0.03


def test_the_estimate_of_the_hidden_holds_where_it_is_shown() -> None:
    from benchmarks import desk_page, left_to_find

    from strays.studies.rows import RowFile

    inside, shown, looks = desk_page.held(desk_page.rows() + RowFile(left_to_find.RESULT).read())
    assert 0.2 * looks < shown
    assert inside >= 0.9 * shown


def test_the_form_helps_without_labels_and_hurts_no_corpus_much() -> None:
    """No corpus is more than 1.5 AUC below the better of distances alone and nearest normals."""
    from benchmarks.no_labels import by_corpus, is_damaged

    from strays.studies.rows import RowFile

    rows = RowFile(RESULTS / "no_labels.jsonl").read()
    assert len(rows) == len({(row["corpus"], row["normal"], row["hidden"], row["ranked"]) for row in rows})
    auto, meaning, nearest = (
        by_corpus(rows, f"auc_{method}", damaged=False) for method in ("auto", "meaning", "nearest")
    )
    assert len(auto) == 11
    assert np.mean([*auto.values()]) > max(np.mean([*meaning.values()]), np.mean([*nearest.values()])) + 1
    assert min(auto[corpus] - max(meaning[corpus], nearest[corpus]) for corpus in auto) > -1.5
    damaged = [row["auc_auto"] - row["auc_meaning"] for row in rows if is_damaged(row)]
    assert np.mean(damaged) > 0.05


def test_a_choice_without_form_is_the_detector_without_form() -> None:
    from benchmarks import no_labels

    from strays.detectors import mixture

    rng = np.random.default_rng(0)

    def rows(n: int, shift: float = 0.0) -> no_labels.Rows:
        X = rng.normal(size=(n, 32)) + shift * (np.arange(32) < 2)
        return no_labels.Rows([f"text {i} {shift}" for i in range(n)], X.astype(np.float32))

    pile = rows(120) + rows(6, 2.0)
    cell = no_labels.Cell(
        "c", "normal", "5 % odd", pile, np.arange(126) >= 120, rows(40), {"other kinds": rows(40, 2.0)}
    )
    measured = list(no_labels.measure(cell))
    assert [row["ranked"] for row in measured] == ["other kinds", "the pile"]
    choices = list(no_labels.with_constants(cell))
    in_use = {name: getattr(mixture, name) for name in ("MOST_SECOND", "AGREEMENT")} | {"RARITY": 0, "TAIL": 0}
    none = [found for constants, found in choices if in_use.items() <= constants.items()]
    assert none
    for found in none:
        assert [row["auc"] for row in found] == [row["auc_meaning"] for row in measured]
    assert len({tuple(row["auc"] for row in found) for _, found in choices}) > 3


@pytest.mark.parametrize("how", range(8))
def test_a_damaged_text_is_another_text(how: int) -> None:
    from benchmarks.no_labels import damage

    text = "The saddle of my bike is loose and the brakes squeal; can you look at it on Monday, please?"
    assert damage(text, np.random.default_rng(0), how) not in ("", text)
