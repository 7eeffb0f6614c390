from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strays.errors import DataError, StraysError, UsageError
from strays.studies.corpora import CORPORA, data_folder, load_corpus
from strays.studies.protocol import (
    ANOMALY_SHARE,
    POLLUTIONS,
    LabelledRows,
    Scenario,
    few_labels,
    pollute,
    split_at_random,
)
from tests.studies.conftest import SIZES, write_corpus

FROZEN_SPLIT = "7ab080a98baf"
FROZEN = ["business train 14", "business train 3", "business train 46"]


@pytest.mark.parametrize("share", POLLUTIONS)
def test_shares_are_of_the_training_normals(folder: Path, share: float) -> None:
    scenario = pollute(load_corpus("5.2-ag", folder), share, 0)
    assert (scenario.train.y < 0).sum() == round(share * 1000)
    assert ((scenario.dev.y < 0).sum(), (scenario.test.y < 0).sum()) == (5, 10)
    assert ((scenario.train.y > 0).sum(), (scenario.test.y > 0).sum()) == (1000, 200)


def test_anomalies_are_drawn_evenly_over_the_classes(folder: Path) -> None:
    corpus = load_corpus("5.2-ag", folder)
    part = pollute(corpus, 0.08, 0).train
    counts = np.unique(corpus.label[part.rows[part.y < 0]], return_counts=True)[1]
    assert sorted(counts) == [26, 27, 27]


def test_labels_and_splits_are_right(folder: Path) -> None:
    corpus = load_corpus("5.2-ag", folder)
    scenario = pollute(corpus, 0.04, 3)
    for name in SIZES:
        part = getattr(scenario, name)
        assert (corpus.split[part.rows] == name).all()
        assert np.array_equal(corpus.label[part.rows] == "sports", part.y > 0)
        assert len(set(part.rows)) == len(part.rows)


def test_spare_anomalies_are_used_only_where_the_others_run_out(folder: Path) -> None:
    corpus = load_corpus("5.1", folder)
    few, many = (pollute(corpus, share, 0).train for share in (0.04, 0.08))
    assert set(corpus.label[few.rows[few.y < 0]]) == {"wiki"}
    counts = dict(zip(*np.unique(corpus.label[many.rows[many.y < 0]], return_counts=True), strict=True))
    assert counts == {"wiki": 60, "wiki_51_60": 20}


def test_a_seed_gives_the_same_scenario_everywhere_and_another_one_another(folder: Path) -> None:
    corpus = load_corpus("5.2-ag", folder)
    first, again, other = pollute(corpus, 0.01, 0).train, pollute(corpus, 0.01, 0).train, pollute(corpus, 0.01, 1).train
    assert np.array_equal(first.rows, again.rows)
    assert set(first.rows[first.y < 0]) != set(other.rows[other.y < 0])
    # Frozen: drawn by hash, these rows must never change.
    assert sorted(corpus.texts[i] for i in first.rows[first.y < 0])[:3] == FROZEN


def test_known_and_tested_kinds_can_differ(folder: Path) -> None:
    corpus = load_corpus("5.2-ag", folder)
    scenario = pollute(corpus, 0.04, 0, known=("world",), tested=("business", "scitech"))

    def kinds(part: LabelledRows) -> set[str]:
        return set(corpus.label[part.rows[part.y < 0]])

    assert kinds(scenario.train) == {"world"}
    assert kinds(scenario.dev) == kinds(scenario.test) == {"business", "scitech"}
    same = pollute(corpus, 0.04, 0, known=("world",), tested=("world",))
    assert np.array_equal(scenario.train.rows, same.train.rows)


def test_too_few_anomalies_are_an_error_not_a_smaller_share(folder: Path) -> None:
    with pytest.raises(DataError, match=r"split 'train' has 60 anomalies to draw from \(world\); 80 are wanted, 8%"):
        pollute(load_corpus("5.2-ag", folder), 0.08, 0, known=("world",))


def test_random_splits_keep_shares_and_pool(folder: Path) -> None:
    corpus = load_corpus("5.3", folder)
    n = int((corpus.label == "question").sum())
    first, other = split_at_random(corpus, 0), split_at_random(corpus, 1)
    for scenario in (first, other):
        assert (scenario.train.y > 0).sum() == round(0.7 * n)
        assert (scenario.train.y < 0).sum() == round(0.7 * round(ANOMALY_SHARE * n))
        assert len(scenario.rows) == len(scenario.train.rows) + len(scenario.test.rows) == n + round(ANOMALY_SHARE * n)
        assert len(scenario.dev.rows) == 0
        assert np.array_equal(corpus.label[scenario.test.rows] == "question", scenario.test.y > 0)
    assert first.rows == other.rows
    assert set(first.train.rows) != set(other.train.rows)


def test_a_digest_tells_scenarios_apart(folder: Path) -> None:
    corpus = load_corpus("5.3", folder)
    first = split_at_random(corpus, 0)
    # Frozen: every machine draws these texts in this order.
    assert first.digest(corpus) == split_at_random(corpus, 0).digest(corpus) == FROZEN_SPLIT
    assert split_at_random(corpus, 1).digest(corpus) != FROZEN_SPLIT
    turned = Scenario(first.train, first.dev, LabelledRows(first.test.rows, -first.test.y))
    assert turned.digest(corpus) != FROZEN_SPLIT


def test_what_is_missing_is_said_before_any_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRAYS_DATA", raising=False)
    with pytest.raises(UsageError, match="STRAYS_DATA"):
        data_folder()
    with pytest.raises(UsageError, match="no such folder"):
        data_folder("no/such/folder")
    assert data_folder(str(folder)) == folder
    monkeypatch.setenv("STRAYS_DATA", str(folder))
    assert data_folder() == folder
    with pytest.raises(UsageError, match=r"expected one of 5\.1, 5\.2-ag"):
        load_corpus("6", folder)
    (folder / CORPORA["5.1"].file).unlink()
    with pytest.raises(StraysError, match="no such file"):
        load_corpus("5.1", folder)
    write_corpus(folder, "5.2-ag", {"train": 1, "dev": 1, "test": 1}, drop="world")
    with pytest.raises(
        DataError,
        match=r"no row is labelled 'world'; its labels are business, scitech, sports\. Expected sports \(normal\)",
    ):
        load_corpus("5.2-ag", folder)


@pytest.mark.parametrize("column", ["text", "label", "split"])
def test_a_cell_that_is_no_string_is_refused_with_its_row(folder: Path, column: str) -> None:
    path = folder / CORPORA["5.2-ag"].file
    rows = pq.read_table(path).to_pylist()
    rows[7][column] = None
    pq.write_table(pa.Table.from_pylist(rows), path)
    with pytest.raises(DataError, match=f"row 8 has None as its {column}; expected a string"):
        load_corpus("5.2-ag", folder)


# ---- few labels ------------------------------------------------------------------------------------------------------


def test_few_labels_are_of_kinds_seen_and_the_unseen_kinds_are_in_no_training_set(folder: Path) -> None:
    corpus = load_corpus("5.2-rct", folder)
    draw = few_labels(corpus, 10, 0.05, 0)
    assert len(draw.seen) == 2
    train, y = draw.train.rows, draw.train.y
    assert ((y == 0).sum(), (y < 0).sum()) == (1050, 10)
    assert set(corpus.label[train[y < 0]]) == set(draw.seen)
    assert set(corpus.label[train]) == {"conclusions", *draw.seen}
    assert (corpus.label[train[y == 0]] != "conclusions").sum() == 50
    assert set(corpus.label[draw.test_seen]) == set(draw.seen)
    assert set(corpus.label[draw.test_unseen]) == set(corpus.kinds) - set(draw.seen)
    assert set(corpus.split[train]) == {"train"}
    assert set(corpus.split[[*draw.test_normal, *draw.test_seen, *draw.test_unseen]]) == {"test"}
    assert draw.rows == {*train, *draw.test_normal, *draw.test_seen, *draw.test_unseen}


def test_more_labels_begin_with_the_fewer(folder: Path) -> None:
    corpus = load_corpus("5.2-ag", folder)
    few, many = (few_labels(corpus, n, 0.02, 1) for n in (5, 40))
    known_few, known_many = (set(draw.train.rows[draw.train.y < 0]) for draw in (few, many))
    assert known_few < known_many
    assert set(few.train.rows[few.train.y == 0]) == set(many.train.rows[many.train.y == 0])
    assert np.array_equal(few.test_unseen, many.test_unseen)
    assert few_labels(corpus, 5, 0.02, 2).seen != few.seen or set(few.train.rows) != set(
        few_labels(corpus, 5, 0.02, 2).train.rows
    )


def test_bounds_of_few_labels(folder: Path) -> None:
    corpus = load_corpus("5.2-ag", folder)
    draw = few_labels(corpus, 0, 0.0, 0, test="dev", most_normals=70, most_tested=(30, 7))
    assert len(draw.train.rows) == 70
    assert (len(draw.test_normal), len(draw.test_seen), len(draw.test_unseen)) == (30, 7, 7)
    assert len(few_labels(load_corpus("5.1", folder), 3, 0.0, 0).test_unseen) == 0
    with pytest.raises(DataError, match=r"60 training anomalies of .*; 50 known and 20 unlabelled ones are wanted"):
        few_labels(corpus, 50, 0.02, 0)


def test_labels_can_be_grouped_and_all_others_be_anomalies(tmp_path: Path) -> None:
    labels = ["rec.autos", "rec.sport.hockey", "talk.politics.guns", "alt.atheism", "talk.religion.misc", "sci.space"]
    rows = [{"text": f"{label} {s}", "label": label, "split": s} for label in labels for s in ("train", "dev", "test")]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "newsgroups20.parquet")
    corpus = load_corpus("newsgroups", tmp_path)
    assert corpus.kinds == ["politics", "religion", "sci"]
    assert (corpus.label == "rec").sum() == 6
    assert (corpus.label == "religion").sum() == 6
