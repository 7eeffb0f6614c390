"""What the paper leaves open: each class does the other thing, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from strays.detectors import AISVDD, DeepSVDD
from strays.encoders import load_encoder
from strays.studies.corpora import CORPORA, load_corpus
from strays.studies.paper.choices import (
    CHOICES,
    Choices,
    PretrainedStart,
    RandomBatches,
    RandomCenter,
    UniformStart,
    WholeCenter,
    uniform_weights,
)
from strays.studies.paper.repeat import Repeat
from strays.studies.paper.study import Setting, run_study
from strays.studies.protocol import pollute
from tests.studies.conftest import write_corpus

SMALL = {"hidden_size": 8, "latent_size": 3, "batch_size": 16, "random_state": 0}


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 6)), np.where(np.arange(200) % 10 == 0, -1, 1)
    X[y < 0] += 2
    return X, y


@pytest.fixture
def setting(tmp_path: Path, small_corpora: Path, tiny_bert: Path) -> Setting:
    encoder = load_encoder(str(tiny_bert), precision="full", cache=False)
    return Setting(tmp_path / "out", str(small_corpora), encoder, runs=1, trainings=1)


@pytest.mark.parametrize("other", [RandomBatches, UniformStart, PretrainedStart, WholeCenter, AISVDD])
def test_every_other_choice_of_ai_svdd_trains_another_network(other: type[AISVDD], rows: tuple) -> None:
    """Layers of norm 1 all the same; the class as it is gives the same network twice."""
    usual, changed = (
        cls.from_paper("5.1", 0).set_params(**SMALL, activation="leaky_relu").fit(*rows) for cls in (AISVDD, other)
    )
    same = all(np.array_equal(a, b) for a, b in zip(usual.weights_, changed.weights_, strict=True))
    assert same == (other is AISVDD)
    for weights in changed.weights_:
        assert np.linalg.norm(weights) == pytest.approx(1)


def test_random_batches_hold_every_row_once_but_for_those_without_a_minimum() -> None:
    detector = RandomBatches(batch_size=10)
    y = np.r_[np.ones(90), -np.ones(10)]
    batches = list(detector._batches(y, np.random.default_rng(0)))
    assert sorted(np.concatenate(batches).tolist()) == list(range(100))
    assert len({int((y[batch] < 0).sum()) for batch in batches}) > 1
    many = np.r_[np.ones(50), -np.ones(45)]
    assert all(
        (many[batch] > 0).sum() > (many[batch] < 0).sum() for batch in detector._batches(many, np.random.default_rng(0))
    )


def test_uniform_weights_have_the_bounds_of_pytorchs_layers() -> None:
    first, second = uniform_weights([400, 50, 9], np.random.default_rng(0))
    assert (first.shape, second.shape) == ((50, 400), (9, 50))
    assert 0.95 / 20 < np.abs(first).max() <= 1 / 20
    assert np.std(first) == pytest.approx(1 / 20 / np.sqrt(3), rel=0.05)


def test_the_whole_center_is_that_of_all_rows(rows: tuple) -> None:
    """With one batch an epoch the centre of the batch is the centre of all rows: both ways train the same."""
    X, y = rows
    one = {**SMALL, "batch_size": 200, "activation": "leaky_relu"}
    usual, whole = (cls.from_paper("5.1", 0).set_params(**one).fit(X, y) for cls in (AISVDD, WholeCenter))
    for a, b in zip(usual.weights_, whole.weights_, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_a_random_center_is_as_far_away_and_elsewhere(rows: tuple) -> None:
    usual, moved = (
        cls.from_paper("5.1", 0).set_params(**SMALL, activation="leaky_relu").fit(*rows)
        for cls in (DeepSVDD, RandomCenter)
    )
    assert np.linalg.norm(moved.center_) == pytest.approx(np.linalg.norm(usual.center_), rel=1e-4)
    assert not np.allclose(moved.center_, usual.center_, rtol=0.1)


def test_anomalies_drawn_from_all_rows_alike_keep_the_classes_shares(tmp_path: Path) -> None:
    """Drawn evenly, every class has as many; from all rows alike, as its share of them."""
    write_corpus(tmp_path, "5.2-ag", {"train": 300, "dev": 30, "test": 30})
    corpus = load_corpus("5.2-ag", tmp_path)
    kinds = CORPORA["5.2-ag"].anomalies
    corpus.label[np.flatnonzero(corpus.label == kinds[0])[50:]] = kinds[1]
    counts = {}
    for evenly in (True, False):
        train = pollute(corpus, 0.08, 0, evenly=evenly).train
        drawn = corpus.label[train.rows[train.y < 0]]
        counts[evenly] = [int((drawn == kind).sum()) for kind in kinds]
    assert counts[True] == [27, 27, 26]
    assert counts[False][0] < 15 < 30 < counts[False][1]


def test_choices_are_tried_where_they_have_another_way(setting: Setting) -> None:
    cells = Choices("5.2-ag").cells(setting)
    assert {cell["choice"] for cell in cells} == set(CHOICES)
    assert {cell["choice"] for cell in Choices("5.1").cells(setting)} == set(CHOICES) - {"draws"}
    assert {cell["method"] for cell in cells} == {"ai-svdd-paper", "deep-svdd"}  # nothing was tuned
    rows = run_study(Choices("5.1"), setting)
    assert len(rows) == len(Choices("5.1").cells(setting))
    assert all(0 <= row["auc"] <= 1 and "roc_fpr" not in row for row in rows)


def test_rows_repeat_with_another_number_of_threads(setting: Setting) -> None:
    rows = run_study(Repeat("5.1"), setting)
    way = {(row["threads"], row["noise"], row["method"], row["pollution"]): row["auc"] for row in rows}
    for method, p in {(method, p) for _, _, method, p in way}:
        assert way[2, 0.0, method, p] == way[1, 0.0, method, p]
    assert {noise for _, noise, *_ in way} == {0.0, 1e-7}
    assert all(row["kernels"] for row in rows)
