from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from strays.errors import DataError
from strays.jobs.evaluate import TableEvaluation, ThresholdOutcome
from strays.jobs.metrics import auc, evaluate, fpr_at_tpr, mean_average_precision, recall_at, roc_points
from strays.model.calibration import Threshold

# Ten rows, highest score first; anomalies at ranks 1, 3 and 6.
LABELS = np.array([-1, 1, -1, 1, 1, -1, 1, 1, 1, 1])
SCORES = np.arange(10, 0, -1.0)


def test_values_worked_out_by_hand() -> None:
    assert mean_average_precision(LABELS, SCORES) == pytest.approx((1 / 1 + 2 / 3 + 3 / 6) / 3)
    # pairs (anomaly, normal) in the right order: 7 + 6 + 4 of 21
    assert auc(LABELS, SCORES) == pytest.approx(17 / 21)
    assert recall_at(LABELS, SCORES, 10) == pytest.approx(1 / 3)
    assert recall_at(LABELS, SCORES, 30) == pytest.approx(2 / 3)
    assert recall_at(LABELS, SCORES, 39) == pytest.approx(2 / 3)
    assert recall_at(LABELS, SCORES, 5) == 0  # not one whole row
    # two of three anomalies are found with one false alarm, all three with three
    assert fpr_at_tpr(LABELS, SCORES, 2 / 3) == pytest.approx(1 / 7)
    assert fpr_at_tpr(LABELS, SCORES, 0.8) == pytest.approx(3 / 7)
    assert fpr_at_tpr(LABELS, SCORES, 1 / 3) == 0
    roc = roc_points(LABELS, SCORES)
    assert roc.tpr.tolist() == pytest.approx([0, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 2 / 3, 1, 1, 1, 1, 1])
    assert roc.fpr.tolist() == pytest.approx([0, 0, 1 / 7, 1 / 7, 2 / 7, 3 / 7, 3 / 7, 4 / 7, 5 / 7, 6 / 7, 1])


def test_tied_rows_by_hand() -> None:
    labels, scores = np.array([-1, 1, -1, 1]), np.array([2.0, 1.0, 1.0, 1.0])
    # the second anomaly shares its score with two normals: 2 of the 4 rows scoring at least that are anomalies
    assert mean_average_precision(labels, scores) == pytest.approx((1 + 2 / 4) / 2)
    assert auc(labels, scores) == pytest.approx((2 + 2 * 0.5) / 4)
    # the second place is shared by three rows, one of them an anomaly
    assert recall_at(labels, scores, 50) == pytest.approx((1 + 1 / 3) / 2)
    # from (0, 1/2) straight to (1, 1): 80 % is three fifths of the way
    assert fpr_at_tpr(labels, scores, 0.8) == pytest.approx(0.6)


def test_a_constant_score_earns_nothing_however_the_rows_are_sorted() -> None:
    for labels in (np.sort(LABELS), np.sort(LABELS)[::-1]):
        constant = np.zeros(len(labels))
        assert auc(labels, constant) == 0.5
        assert mean_average_precision(labels, constant) == pytest.approx(0.3)
        assert recall_at(labels, constant, 20) == pytest.approx(0.2)
        assert fpr_at_tpr(labels, constant, 0.8) == pytest.approx(0.8)


@given(st.lists(st.tuples(st.sampled_from([1, -1]), st.integers(0, 6)), min_size=2, max_size=60), st.randoms())
@settings(deadline=None)
def test_agrees_with_scikit_learn_and_ignores_row_order(rows, random) -> None:
    labels, scores = (np.array(column) for column in zip(*rows, strict=True))
    if len(set(labels)) < 2:
        return
    assert auc(labels, scores) == pytest.approx(sk.roc_auc_score(labels < 0, scores), abs=1e-12)
    precision = sk.average_precision_score(labels < 0, scores)
    assert mean_average_precision(labels, scores) == pytest.approx(precision, abs=1e-12)
    roc, theirs = roc_points(labels, scores), sk.roc_curve(labels < 0, scores, drop_intermediate=False)
    for found, expected in zip((roc.fpr, roc.tpr, roc.thresholds), theirs, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    shuffled = random.sample(rows, len(rows))
    labels_2, scores_2 = (np.array(column) for column in zip(*shuffled, strict=True))
    assert evaluate(labels, scores) == evaluate(labels_2, scores_2)
    assert evaluate(labels, scores) == evaluate(labels, scores * 3 - 1)


@given(st.lists(st.tuples(st.sampled_from([1, -1]), st.integers(0, 3)), min_size=2, max_size=12), st.integers(1, 100))
@settings(deadline=None, max_examples=40)
def test_recall_is_the_mean_over_random_orders_of_ties(rows, percent: int) -> None:
    labels, scores = (np.array(column) for column in zip(*rows, strict=True))
    if len(set(labels)) < 2:
        return
    rng = np.random.default_rng(0)
    top = percent * len(labels) // 100
    caught = []
    for _ in range(2000):
        order = np.lexsort((rng.random(len(scores)), -scores))[:top]
        caught.append((labels[order] < 0).sum() / (labels < 0).sum())
    assert recall_at(labels, scores, percent) == pytest.approx(np.mean(caught), abs=0.08)


def test_unlabelled_rows_are_left_out() -> None:
    labels, scores = np.r_[LABELS, 0, 0], np.r_[SCORES, 99, -99]
    assert evaluate(labels, scores) == evaluate(LABELS, SCORES)


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        ([1, 1], [1, 2], "0 anomalies and 2 normals"),
        ([-1, -1], [1, 2], "2 anomalies and 0 normals"),
        ([1, -1], [1, 2, 3], "shape"),
        ([1, -1, 2], [1, 2, 3], "labels hold"),
        ([1, -1], [1, np.nan], "NaN"),
    ],
)
def test_bad_input_is_refused(labels, scores, message: str) -> None:
    with pytest.raises(DataError, match=message):
        evaluate(np.array(labels), np.array(scores))


@pytest.mark.parametrize("n_anomalies", [1, 4, 5, 6, 50, 99])
def test_the_ceiling_of_recall_is_what_a_perfect_ranking_gets(n_anomalies: int) -> None:
    labels, scores = np.where(np.arange(100) < n_anomalies, -1, 1), -np.arange(100.0)
    found = evaluate(labels, scores)
    assert found.recall_at_5 == pytest.approx(found.recall_at_5_ceiling)
    chosen = ThresholdOutcome.of(Threshold("top", 5), labels, np.arange(100) < 5)
    told = TableEvaluation(found, 0, 0, 1.0, 0.0, "", chosen, (chosen,), None, fitted_on_these=False)
    assert ("at most" in told.to_words()["Recall@5"]) == (n_anomalies > 5)


@pytest.mark.parametrize("percent", [0, 101, -5])
def test_recall_at_a_strange_percentage(percent: float) -> None:
    with pytest.raises(DataError, match="percent"):
        recall_at(LABELS, SCORES, percent)
