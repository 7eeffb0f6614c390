"""Studies on small corpora with a tiny encoder: what is computed, what is kept, what is refused."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strays.detectors import AISVDD, CentroidDistance, Detector
from strays.encoders import load_encoder
from strays.errors import CollapseError, DataError, UsageError
from strays.jobs.metrics import evaluate, fpr_at_tpr
from strays.studies.corpora import CORPORA, load_corpus
from strays.studies.paper import tuning, unseen
from strays.studies.paper.comparison import Comparison
from strays.studies.paper.methods import CLASSIFIERS, METHODS, fit_and_score
from strays.studies.paper.registry import studies, study_named
from strays.studies.paper.run import run_studies
from strays.studies.paper.study import ROC_GRID, Setting, joined, measure, run_study
from strays.studies.paper.trained import check_same_settings, maker, train_and_test
from strays.studies.paper.tuning import GRIDS, PARAMETERS, Tuning, is_printed, ranked
from strays.studies.paper.unseen import Unseen
from strays.studies.protocol import pollute
from tests.conftest import save_tiny_bert
from tests.studies.conftest import write_small_corpus

AG = Comparison("5.2-ag", "AG", pollutions=(0.0, 0.04))
UNTUNED = [name for name, method in METHODS.items() if method.grid is None]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, small_corpora: Path, tiny_bert: Path) -> Setting:
    """AG has been run, once for all tests; to be read only."""
    encoder = load_encoder(str(tiny_bert), precision="full", cache=False)
    setting = Setting(tmp_path_factory.mktemp("rows"), str(small_corpora), encoder, runs=1, trainings=1)
    run_study(AG, setting)
    return setting


@pytest.fixture
def setting(finished: Setting, small_folder: Path, tmp_path: Path) -> Setting:
    """Nothing has been run; the folders are the test's own."""
    return replace(finished, out=tmp_path / "out", data=str(small_folder))


@pytest.fixture
def with_rows(finished: Setting, setting: Setting) -> Setting:
    """AG has been run, and the folders are the test's own."""
    shutil.copytree(finished.out, setting.out)
    return setting


def test_there_is_a_study_for_every_part_of_the_paper() -> None:
    names = list(studies())
    assert names[:5] == ["5.1", "5.2-ag", "5.2-yelp", "5.2-rct", "5.3"]
    assert {"case-1", "case-2", "case-3", *(f"tuning-{name}" for name in CORPORA)} <= set(names)
    with pytest.raises(UsageError, match=r"no study is called '6'; expected one of 5\.1, "):
        study_named("6")


def test_a_comparison_runs_every_method_at_every_p(finished: Setting) -> None:
    rows = AG.file(finished).read()
    assert len(rows) == len(UNTUNED) * 2
    assert {row["encoder"] for row in rows} == {"tiny-bert0"}
    for row in rows:
        assert 0 <= row["auc"] <= 1
        assert len(row["roc_fpr"]) == len(ROC_GRID)


def test_a_row_is_what_one_gets_by_hand(finished: Setting) -> None:
    rows = AG.file(finished).read()
    corpus = load_corpus("5.2-ag", finished.data)
    scenario = pollute(corpus, 0.04, 0)
    X, X_test = (
        finished.encoder.encode([corpus.texts[i] for i in part.rows]) for part in (scenario.train, scenario.test)
    )
    for method, fitted in {
        "centroid": CentroidDistance().fit(X),
        "ai-svdd": AISVDD(random_state=0).fit(X, scenario.train.y),
    }.items():
        [row] = [row for row in rows if row["method"] == method and row["pollution"] == 0.04]
        # Batches of other sizes round differently, which can swap two texts of nearly the same score.
        assert row["auc"] == pytest.approx(evaluate(scenario.test.y, fitted.anomaly_score(X_test)).auc, abs=1e-6)
        assert row["scenario"] == scenario.digest(corpus)


def test_random_splits_have_no_pollution(setting: Setting) -> None:
    rows = run_study(Comparison("5.3", "", pollutions=(None,)), setting)
    assert [row["method"] for row in rows] == UNTUNED
    assert {row["pollution"] for row in rows} == {None}


def test_finished_rows_are_not_run_again(with_rows: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    path = with_rows.out / "5.2-ag.jsonl"
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-3]))
    computed = []
    prepare = Comparison.prepare

    def counting(self: Comparison, setting: Setting) -> Callable:
        start = prepare(self, setting)

        def counting_start() -> Callable:
            compute = start()
            return lambda cell: computed.append(cell) or compute(cell)

        return counting_start

    monkeypatch.setattr(Comparison, "prepare", counting)
    run_study(AG, with_rows)
    assert len(computed) == 3
    assert path.read_bytes() == whole
    run_study(AG, with_rows)
    assert len(computed) == 3


@pytest.mark.process
def test_a_killed_study_resumes(setting: Setting, finished: Setting, tiny_bert: Path) -> None:
    """A real process, killed as soon as it has some rows; the rerun ends with the rows of an undisturbed run."""
    command = [sys.executable, "-m", "strays", "study", "5.2-ag", "--data", setting.data, "--encoder", str(tiny_bert)]
    command += ["--runs", "1", "--trainings", "1", "--out", str(setting.out)]
    path = setting.out / "5.2-ag.jsonl"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for _ in range(1200):
        if (path.exists() and path.stat().st_size > 2000) or process.poll() is not None:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert "tuned networks are left out" in process.communicate()[1].decode()
    kept = path.read_bytes()
    assert kept
    rows = run_study(AG, setting)
    assert path.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    fresh = AG.file(finished).read()

    def by_key(rows: list[dict]) -> dict[tuple, float]:
        return {(row["method"], row["pollution"], row["scenario"], row["seed"]): row["auc"] for row in rows}

    assert len(by_key(rows)) == len(rows)
    assert {key: by_key(rows)[key] for key in by_key(fresh)} == pytest.approx(by_key(fresh), abs=0.02)


def test_a_corpus_that_changed_is_refused(with_rows: Setting, small_folder: Path) -> None:
    path = with_rows.out / "5.2-ag.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    write_small_corpus(small_folder, "5.2-ag", train=101)
    with pytest.raises(DataError, match="drawn from other texts"):
        run_study(AG, with_rows)


def test_another_encoder_of_the_same_name_is_refused(with_rows: Setting, tmp_path: Path) -> None:
    name = with_rows.encoder.settings.name
    other = tmp_path / Path(name).name
    save_tiny_bert(other, seed=1)
    with pytest.raises(DataError, match="rows of another encoder that is called tiny-bert0 too"):
        run_study(AG, replace(with_rows, encoder=load_encoder(str(other))))
    by_hand = replace(with_rows, encoder=load_encoder(name, pooling="cls", normalize=True))
    assert by_hand.encoder_name == "tiny-bert0 pooling=cls normalize=True"


def test_everything_is_checked_before_any_work(setting: Setting, small_folder: Path) -> None:
    def run(*names: str) -> None:
        run_studies(names, out=str(setting.out), data=setting.data, encoder=setting.encoder, runs=1)

    with pytest.raises(UsageError, match="which study"):
        run()
    with pytest.raises(UsageError, match="no study is called 'nonsense'"):
        run("all", "nonsense")
    with pytest.raises(DataError, match=r"split 'train' has 10 anomalies to draw from"):
        write_small_corpus(small_folder, "5.2-yelp", train=1000)
        run("5.2-ag", "unseen-5.2-yelp")
    write_small_corpus(small_folder, "5.2-rct", drop="objective")
    with pytest.raises(DataError, match="no row is labelled 'objective'"):
        run("5.2-ag", "5.2-rct")
    (small_folder / CORPORA["5.1"].file).unlink()
    with pytest.raises(DataError, match=r"no such file, which holds the corpus of 5\.1; put it there, or .* download"):
        run("5.2-ag", "5.1")
    assert not setting.out.exists()


def test_a_collapsed_network_is_chance_not_an_error() -> None:
    class Dead:
        def fit(self, X: np.ndarray, y: np.ndarray | None = None) -> None:
            raise CollapseError("dead")

    [scores] = fit_and_score(Dead(), np.zeros((2, 2)), None, np.zeros((4, 2)))
    row = measure(np.array([1, 1, -1, 1]), scores)
    assert (row["auc"], row["collapsed"]) == (0.5, 1)


def test_the_kept_roc_curve_is_the_metric() -> None:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(400) < 0.1, -1, 1)
    scores = np.round(rng.normal(size=400) - y, 1)  # with ties
    row = measure(y, scores)
    for tpr in (0.2, 0.5, 0.8, 1.0):
        at = int(np.argmin(np.abs(ROC_GRID - tpr)))
        assert row["roc_fpr"][at] == pytest.approx(fpr_at_tpr(y, scores, tpr), abs=1e-4)
    assert row["roc_fpr"][0] == 0


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_learn_the_known_anomalies(name: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 8)), np.where(np.arange(6000) % 10 == 0, -1, 1)
    X[y < 0, 0] += 2
    for mirror, low, high in ((1, 0.8, 1.0), (-1, 0.0, 0.2)):
        [scores] = fit_and_score(CLASSIFIERS[name].make("5.1", 0), mirror * X[:5000], y[:5000], X[5000:])
        assert low < evaluate(y[5000:], scores).auc < high


def test_classifiers_tell_near_certain_anomalies_apart(blobs: tuple) -> None:
    """In float32 the probabilities of far rows round to 1: scores would be tied or infinite."""
    X = np.r_[blobs[0], 50 * blobs[0]].astype(np.float32)
    y = np.repeat([1, -1], len(blobs[0]))
    for name in CLASSIFIERS:
        [scores] = fit_and_score(CLASSIFIERS[name].make("5.1", 0), X, y, 10 * X)
        assert np.isfinite(scores).all()
    [logistic] = fit_and_score(CLASSIFIERS["logistic"].make("5.1", 0), X, y, 10 * X)
    assert len(np.unique(logistic)) > 0.99 * len(X)


def test_unseen_kinds_are_tested_apart(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    methods = [name for name, method in unseen.METHODS_COMPARED.items() if method.grid is None]
    assert len(Unseen("5.2-ag").cells(setting)) == 3 * 4 * len(methods)
    monkeypatch.setattr(unseen, "POLLUTIONS", (0.0, 0.08))
    rows = run_study(Unseen("5.2-ag"), setting)
    assert len(rows) == 3 * len(methods)
    assert all({"seen", "unseen"} <= set(row) for row in rows)
    only = run_study(Unseen("5.1"), setting)
    assert all("seen" in row and "unseen" not in row for row in only)


@pytest.fixture
def small_grids(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict]:
    """Two settings of OC-SVDD and one of AI-SVDD, of which one of each goes to the final."""
    small = {method: {name: values[:1] for name, values in grid.items()} for method, grid in GRIDS.items()}
    small["deep-svdd"]["weight_decay"] = (0.0, 10.0)
    monkeypatch.setattr(tuning, "GRIDS", small)
    monkeypatch.setattr(tuning, "FINALISTS", 1)
    monkeypatch.setattr(tuning, "TRAININGS", 3)
    return small


def test_tuning_searches_the_printed_grids(setting: Setting) -> None:
    assert [len(Tuning("5.1").cells(setting)), 4 * 4 * 4 * 5 + 6 * 6 * 6] == [536, 536]
    for corpus in CORPORA:
        cells = Tuning(corpus).cells(setting)
        assert sorted(cell["method"] for cell in cells if is_printed(cell, corpus)) == ["ai-svdd-paper", "deep-svdd"]


@pytest.mark.usefixtures("small_grids")
def test_tuning_trains_all_settings_once_and_the_best_again(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are made up: weight decay 10 is lucky once, and no longer best by its mean; it wins all the same, since
    the other is no finalist."""
    tried = []

    def fit(detector: Detector, X: np.ndarray, y: None, dev: np.ndarray) -> list[np.ndarray]:
        params = detector.get_params()
        tried.append((*(params.get(name) for name in PARAMETERS), params["random_state"]))
        assert y is None
        lucky = params.get("weight_decay") == 10 and params["random_state"] == 0
        return [np.arange(len(dev)) * (1.0 if lucky else 0.0)]

    monkeypatch.setattr(tuning, "fit_and_score", fit)
    rows = run_study(Tuning("5.1"), setting)
    assert tried[:3] == [(128, 32, 32, 0.0, 0), (128, 32, 32, 10.0, 0), (128, 16, 16, None, 0)]
    again = (128, 32, 32, 10.0 if rows[1]["auc"] > 0.5 else 0.0)
    assert tried[3:5] == [(*again, 1000), (*again, 2000)]
    assert tried[5:] == [(128, 16, 16, None, 1000), (128, 16, 16, None, 2000)]
    assert [row["training"] for row in rows] == [0, 0, 0, 1, 2, 1, 2]
    best = ranked(rows, "deep-svdd")[0]
    assert best["trainings"] == 3
    assert best["auc"] == pytest.approx((max(rows[0]["auc"], rows[1]["auc"]) + 0.5 + 0.5) / 3, abs=1e-5)
    assert run_study(Tuning("5.1"), setting) == rows
    assert len(tried) == 7


@pytest.mark.usefixtures("small_grids")
def test_tuned_methods_take_the_winners_settings(setting: Setting) -> None:
    study = Comparison("5.1", "", pollutions=(0.08,))
    assert tuning.tuned_settings(setting, "5.1") == {}
    assert {cell["method"] for cell in study.cells(setting)} == set(UNTUNED)
    run_study(Tuning("5.1"), setting)
    tuned = tuning.tuned_settings(setting, "5.1")
    assert tuned["ai-svdd-paper"] == {"hidden_size": 128, "latent_size": 16, "batch_size": 16}
    rows = {row["method"]: row for row in run_study(study, setting)}
    assert list(rows) == list(METHODS)
    for name in ("deep-svdd-tuned", "ai-svdd-tuned"):
        assert rows[name]["settings"] == tuned[METHODS[name].grid]
        corpus = load_corpus("5.1", setting.data)
        scenario = pollute(corpus, 0.08, 0)
        X, X_test = (
            setting.encoder.encode([corpus.texts[i] for i in part.rows]) for part in (scenario.train, scenario.test)
        )
        by_hand = METHODS[name].make("5.1", 0, **rows[name]["settings"])
        [scores] = fit_and_score(by_hand, X, scenario.train.y if METHODS[name].sees_labels else None, X_test)
        assert rows[name]["auc"] == pytest.approx(evaluate(scenario.test.y, scores).auc, abs=0.02)
    changed = Tuning("5.1").file(setting)
    others = [row | {"hidden_size": 2 * row["hidden_size"]} for row in changed.read()]
    changed.path.write_text("".join(json.dumps(row) + "\n" for row in others))
    with pytest.raises(DataError, match="rows of tuning now say"):
        check_same_settings(
            study.file(setting), setting, METHODS, {"deep-svdd": {"hidden_size": 1}, "ai-svdd-paper": {}}
        )


def test_a_run_trains_several_times_and_keeps_the_spread(setting: Setting) -> None:
    """The row is the mean of trainings whose seeds are a thousand apart, what has no seed is fitted once."""
    study = Comparison("5.1", "", pollutions=(0.08,))
    together = {row["method"]: row for row in run_study(study, replace(setting, trainings=2))}
    assert {name for name, row in together.items() if "trainings" in row} == {
        name for name in UNTUNED if METHODS[name].random
    }
    corpus = load_corpus("5.1", setting.data)
    scenario = pollute(corpus, 0.08, 0)
    used = setting.embeddings(corpus, scenario.rows)
    aucs = [
        train_and_test(
            maker(METHODS["ai-svdd"], "5.1", {}),
            used,
            scenario.train,
            [scenario.test],
            sees_labels=True,
            seed=seed,
            trainings=1,
        )[0]["auc"]
        for seed in (0, 1000)
    ]
    row = together["ai-svdd"]
    assert row["auc"] == pytest.approx(np.mean(aucs), abs=0.02)
    assert row["spread"]["auc"] == pytest.approx(np.std(aucs), abs=0.02)
    assert row["test_to_train"] > 0
    assert "test_to_train" not in together["isolation-forest"]


def test_the_mean_of_trainings_counts_those_that_collapsed() -> None:
    y = np.array([1, 1, -1, 1])
    alive, dead = measure(y, np.array([0.0, 0.1, 0.9, 0.2])), measure(y, np.zeros(4))
    row = joined([alive, dead, dead])
    assert (row["trainings"], row["collapsed"]) == (3, 2)
    assert row["auc"] == pytest.approx((1 + 0.5 + 0.5) / 3, abs=1e-6)
    assert row["spread"]["auc"] == pytest.approx(np.std([1, 0.5, 0.5]), abs=1e-6)
    assert joined([alive]) == alive
