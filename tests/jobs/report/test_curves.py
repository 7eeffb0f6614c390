"""Curves agree with scikit-learn's, and no label judges a detector that has seen it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from strays.detectors import CentroidDistance, Detector
from strays.jobs.report import curves as module
from strays.jobs.report.curves import curves, measured, out_of_fold, sample_to_measure, why_no_curves


def area(corners: list[list[float]]) -> float:
    x, y = np.array(corners).T
    return float(np.trapezoid(y, x))


def test_areas_are_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    y = np.where(np.arange(200) < 30, -1, np.where(np.arange(200) < 150, 1, 0))
    score = rng.normal(size=200).round(1) - y  # with ties
    found, known = curves(y, score), y != 0
    assert area(found["roc"]) == pytest.approx(roc_auc_score(y[known] < 0, score[known]), abs=1e-4)
    assert found["metrics"]["auc"] == pytest.approx(roc_auc_score(y[known] < 0, score[known]))
    recall, precision = np.array(found["precision_recall"]).T
    steps = float((np.diff(np.r_[0, recall]) * precision).sum())
    assert steps == pytest.approx(average_precision_score(y[known] < 0, score[known]), abs=1e-4)
    theirs = set(zip(*(a.round(5) for a in precision_recall_curve(y[known] < 0, score[known])[1::-1]), strict=True))
    assert {tuple(corner) for corner in found["precision_recall"]} <= theirs
    assert found["share_of_anomalies"] == 0.2


def test_a_small_curve_by_hand() -> None:
    found = curves(np.array([-1, 1, -1, 1]), np.array([4.0, 3.0, 2.0, 2.0]))  # the last two are tied
    assert found["roc"] == [[0, 0], [0, 0.5], [0.5, 0.5], [1, 1]]
    assert found["precision_recall"] == [[0.5, 1], [1, 0.5]]
    assert found["metrics"]["auc"] == pytest.approx(0.625)
    assert found["metrics"]["map"] == pytest.approx(0.75)


class Spy(CentroidDistance):
    """Keeps the rows that fits were given."""

    fits: list[tuple[np.ndarray, np.ndarray]] = []  # noqa: RUF012
    scored: list[np.ndarray] = []  # noqa: RUF012

    def fit(self, X: np.ndarray, y: np.ndarray | None = None) -> Detector:
        Spy.fits.append((X, np.asarray(y)))
        return super().fit(X, y)

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        Spy.scored.append(X)
        return super().anomaly_score(X)


def test_no_text_is_scored_by_a_detector_that_has_seen_it_or_a_copy() -> None:
    Spy.fits, Spy.scored = [], []
    texts = [f"text {i % 40}" for i in range(60)]  # the first twenty come again, without a label
    X = np.array([[float(text.split()[1]), i % 3] for i, text in enumerate(texts)])
    y = np.r_[-np.ones(8), np.ones(22), np.zeros(30)].astype(int)
    scores = out_of_fold(Spy(), texts, X, y, random_state=0)
    assert np.isfinite(scores[y != 0]).all()
    assert np.isnan(scores[y == 0]).all()
    assert len(Spy.fits) == len(Spy.scored) == module.FOLDS
    for (seen, _), judged in zip(Spy.fits, Spy.scored, strict=True):
        assert not set(judged[:, 0]) & set(seen[:, 0])
    for _, labels in Spy.fits:  # both kinds are dealt evenly
        assert 6 <= (labels < 0).sum() <= 7
    assert len({float(scores[0]), float(X[0].sum())}) == 2


def test_one_anomaly_is_judged_by_a_detector_that_knows_none() -> None:
    Spy.fits, Spy.scored = [], []
    texts = [f"text {i}" for i in range(12)]
    y = np.r_[-1, np.ones(5), np.zeros(6)].astype(int)
    scores = out_of_fold(Spy(), texts, np.random.default_rng(0).normal(size=(12, 3)), y, random_state=0)
    assert np.isfinite(scores[:6]).all()
    assert 0 in [int((labels < 0).sum()) for _, labels in Spy.fits]


def test_scores_that_do_not_compare_become_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CentroidDistance, "comparable_fits", False)
    texts = [f"text {i}" for i in range(50)]
    y = np.r_[-np.ones(10), np.ones(40)].astype(int)
    scores = out_of_fold(CentroidDistance(), texts, np.random.default_rng(0).normal(size=(50, 3)), y, random_state=0)
    assert sorted(set(np.round(20 * scores).astype(int))) == list(range(1, 20, 2))  # ten in each fold


def test_too_few_texts_are_an_answer_not_an_error() -> None:
    found = measured(
        CentroidDistance(), ["a", "b", "b"], np.array([[0.0], [1], [1]]), np.array([1, -1, -1]), random_state=0
    )
    assert "too few" in found["why_not"]


@pytest.mark.parametrize(
    ("y", "says"),
    [([0, 0], "No text has a label"), ([-1, 0], "none is labelled normal"), ([1, 1, 0], "none is labelled anomaly")],
)
def test_words_for_labels_that_allow_no_curves(y: list[int], says: str) -> None:
    assert says in str(why_no_curves(np.array(y)))
    assert why_no_curves(np.array([1, -1])) is None


def test_large_files_are_judged_on_a_sample_with_all_kinds() -> None:
    y = np.r_[-np.ones(3000), np.ones(5000), np.zeros(50_000)].astype(int)
    chosen = sample_to_measure(y)
    assert len(chosen) == len(set(chosen.tolist())) == module.MOST_FITTED
    assert [(y[chosen] == side).sum() for side in (-1, 1, 0)] == [375, 625, 600]
    np.testing.assert_array_equal(sample_to_measure(y[[0, 4000, 9000]]), [0, 1, 2])


def test_a_sample_keeps_the_share_of_anomalies() -> None:
    y = np.where(np.arange(30_000) % 50 == 0, -1, np.where(np.arange(30_000) % 3 == 0, 0, 1))
    chosen = y[sample_to_measure(y)]
    assert (chosen < 0).sum() / (chosen != 0).sum() == pytest.approx((y < 0).sum() / (y != 0).sum(), rel=0.05)
    rare = np.where(np.arange(30_000) < 30, -1, 1)
    assert (rare[sample_to_measure(rare)] < 0).sum() == 20
