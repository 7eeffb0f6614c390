"""AutoDetector: its parts against references, its left-out values against refits, and what labels do to it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression

from strays.detectors import AutoDetector, NearestNormals, kernel_ridge
from strays.detectors.auto import _FEATURES, FITTED, _Known, _Normals
from strays.detectors.auto_on_gpu import features_on
from strays.detectors.base import FOUND
from strays.detectors.logistic_head import left_out_log_odds, logistic_regression
from strays.errors import DataError, ModelError
from strays.jobs.metrics import auc


def kinds(n: int = 300, d: int = 16, shift: float = 2.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normals, and anomalies of two kinds, each off along its own axis."""
    rng = np.random.default_rng(seed)
    normal, first, second = (rng.normal(size=(n, d)) for _ in range(3))
    first[:, 0] += shift
    second[:, 1] += 2 * shift
    return normal, first, second


# ---- the parts -------------------------------------------------------------------------------------------------------


def test_what_is_kept_for_scoring_is_that_of_the_last_fit() -> None:
    """The rows compared with are made ready once; a refit, a restored state and a clone have others."""
    normal, first, second = kinds(60)
    expected = [AutoDetector().fit(rows).anomaly_score(second) for rows in (normal, first)]
    detector = AutoDetector().fit(normal)
    other = detector.get_state()
    for rows, scores in zip((normal, first, normal), (*expected, expected[0]), strict=True):
        np.testing.assert_array_equal(detector.fit(rows).anomaly_score(second), scores)
        np.testing.assert_array_equal(
            detector.anomaly_score(second[:3]), AutoDetector().fit(rows).anomaly_score(second[:3])
        )
    detector.fit(first).anomaly_score(second)
    np.testing.assert_array_equal(detector.set_state(other).anomaly_score(second), expected[0])
    np.testing.assert_array_equal(clone(detector).fit(first).anomaly_score(second), expected[1])


@pytest.mark.parametrize("known", [0, 8])
def test_a_gpu_would_see_the_same(known: int) -> None:
    """The lines that run on a GPU, run here by torch: copies, rows that were fitted on, and fresh ones."""
    pytest.importorskip("torch", reason="GPUs need PyTorch (pip install 'strays[torch]')")
    normal, first, second = kinds(90)
    normal[40:43] = normal[39] + 1e-4
    X = np.vstack([first[:known], normal])
    detector = AutoDetector().fit(X, np.where(np.arange(len(X)) < known, -1, 0))
    rows = np.vstack([X, second])
    features = _FEATURES.of(detector)
    np.testing.assert_allclose(features_on("cpu", features, rows), detector._features(rows), rtol=1e-8, atol=1e-8)


def test_the_ridge_is_a_gaussian_process_mean() -> None:
    rng = np.random.default_rng(0)
    X, X_test, t = rng.normal(size=(60, 5)), rng.normal(size=(20, 5)), rng.normal(size=60)
    ridge = kernel_ridge.fit_ridge(kernel_ridge.gauss(kernel_ridge.squared_distances(X, X)), t, 0.5)
    predicted = kernel_ridge.gauss(kernel_ridge.squared_distances(X_test, X)) @ ridge.coefficients
    process = GaussianProcessRegressor(RBF(np.sqrt(0.5)), alpha=0.5, optimizer=None).fit(X, t)
    np.testing.assert_allclose(predicted, process.predict(X_test), atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 64, 65, 129, 300])
def test_triangular_matrices_of_any_size_are_inverted(n: int) -> None:
    L = np.tril(np.random.default_rng(0).normal(size=(n, n)) / n) + np.eye(n)
    inverse = L.copy()
    kernel_ridge._invert_lower(inverse)
    np.testing.assert_allclose(inverse @ L, np.eye(n), atol=1e-12)
    assert not np.triu(inverse, 1).any()


@pytest.mark.parametrize("function", [kernel_ridge.gauss, kernel_ridge.laplace])
def test_left_out_predictions_are_those_of_a_refit(function) -> None:
    rng = np.random.default_rng(1)
    X, t, weight = rng.normal(size=(40, 3)), rng.normal(size=40), rng.uniform(0.2, 5, size=40)
    whole = kernel_ridge.fit_ridge(function(kernel_ridge.squared_distances(X, X)), t, 0.3, weight)
    for i in (0, 17, 39):
        rest = np.arange(40) != i
        K = function(kernel_ridge.squared_distances(X[rest], X[rest]))
        refit = kernel_ridge.fit_ridge(K, t[rest], 0.3, weight[rest])
        at_i = function(kernel_ridge.squared_distances(X[i : i + 1], X[rest])) @ refit.coefficients
        assert float(whole.left_out[i]) == pytest.approx(float(at_i[0]), abs=1e-9)


def test_a_row_of_weight_two_is_two_rows() -> None:
    normal, first, second = (rows[:30] for rows in kinds(30, 6))
    X, twice, t = np.vstack([normal, first]), np.vstack([normal, first, first]), np.r_[np.zeros(30), np.ones(60)]
    weight = np.r_[np.ones(30), np.full(30, 2.0)]
    np.testing.assert_allclose(
        logistic_regression(X, t[:60] > 0, 1.0, weight), logistic_regression(twice, t > 0, 1.0), atol=1e-3
    )
    at = []
    for rows, counts in ((X, weight), (twice, np.ones(90))):
        K = kernel_ridge.gauss(kernel_ridge.squared_distances(rows, rows))
        ridge = kernel_ridge.fit_ridge(K, t[: len(rows)], 0.5, counts)
        at.append(kernel_ridge.gauss(kernel_ridge.squared_distances(second, rows)) @ ridge.coefficients)
    np.testing.assert_allclose(at[0], at[1], atol=1e-9)


@pytest.mark.parametrize("heaviest", [1.0, 3.0])
def test_left_out_log_odds_are_nearly_those_of_refits(heaviest: float) -> None:
    normal, first, _ = kinds(80, 6)
    X, anomalous = np.vstack([normal, first[:20]]), np.r_[np.zeros(80), np.ones(20)].astype(bool)
    weight = np.r_[np.ones(80), np.linspace(1, heaviest, 20)]
    fitted = logistic_regression(X, anomalous, 1.0, weight)
    approximate = left_out_log_odds(X, anomalous, fitted, 1.0, weight)
    exact = []
    for i in range(100):
        rest = np.arange(100) != i
        head = LogisticRegression(C=1.0, max_iter=1000, tol=1e-8).fit(X[rest], anomalous[rest], weight[rest])
        exact.append(X[i] @ head.coef_[0] + fitted[-1])
    in_sample = X @ fitted[:-1] + fitted[-1]
    assert np.abs(approximate - exact).max() < 0.5 * np.abs(in_sample - exact).max()
    assert np.corrcoef(approximate - in_sample, exact - in_sample)[0, 1] > 0.95


def test_left_out_log_odds_promise_no_more_and_no_less_than_fresh_rows_show() -> None:
    """With labels that mean nothing, left-out anomalies rank neither above nor below the normals."""
    ranks = []
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(150, 30)) / np.sqrt(30)
        anomalous = np.arange(150) < 5
        left_out = left_out_log_odds(X, anomalous, logistic_regression(X, anomalous, C=1.0), C=1.0)
        ranks.append(auc(np.where(anomalous, -1, 1), left_out))
    assert np.mean(ranks) == pytest.approx(0.5, abs=0.1)


def test_the_first_part_is_the_distance_to_the_nearest_normals() -> None:
    normal, first, _ = kinds()
    auto = AutoDetector().fit(np.vstack([normal, first[:9]]), np.r_[np.ones(300), -np.ones(9)].astype(int))
    nearest = NearestNormals(n_neighbors=5).fit(normal.astype(np.float32), np.ones(300))
    for rows in (first[9:], auto.rows_[: auto.n_normals_]):
        np.testing.assert_allclose(auto._features(rows)[:, 0] * auto.scale_, nearest.anomaly_score(rows), rtol=1e-5)


def test_the_scale_of_the_rows_changes_nothing() -> None:
    normal, first, second = kinds()
    X, y = np.vstack([normal, first[:10]]), np.r_[np.zeros(300), -np.ones(10)].astype(int)
    one = AutoDetector().fit(X, y).anomaly_score(second)
    np.testing.assert_allclose(
        AutoDetector().fit(40 * X + 7, y).anomaly_score(40 * second + 7), one, rtol=1e-3, atol=2e-3
    )


# ---- rows it was fitted on -------------------------------------------------------------------------------------------


def test_normal_training_rows_score_as_if_they_had_not_been_seen() -> None:
    """The weights set aside, a training row scores as in a detector fitted without it."""
    normal, first, _ = kinds(120)
    X, y = np.vstack([normal, first[:10]]), np.r_[np.ones(120), -np.ones(10)].astype(int)
    whole = AutoDetector().fit(X, y)
    at_training = whole._features(X[:120])
    without = AutoDetector().fit(X[1:], y[1:])
    without.center_, without.scale_ = whole.center_, whole.scale_
    one = np.ones(119, dtype=bool)
    form = np.zeros((119, 0))
    known = _Known(X[120:], form[:10], one[:10])
    without._fit_without(~one, _Normals(X[1:120], form, ~one, one, one, np.zeros(119)), known, np.ones(10))
    np.testing.assert_allclose(at_training[0, :3], without._features(X[:1])[0, :3], atol=1e-5)
    assert at_training[0, 3] == pytest.approx(without._features(X[:1])[0, 3], abs=0.05)
    assert whole.anomaly_score(X[:120]).mean() == pytest.approx(0, abs=1e-6)


def test_a_known_anomaly_that_comes_again_scores_high() -> None:
    normal, first, _ = kinds(shift=1.0)
    detector = AutoDetector().fit(np.vstack([normal, first[:20]]), np.r_[np.zeros(300), -np.ones(20)].astype(int))
    assert np.median(detector.anomaly_score(first[:20])) > np.median(detector.anomaly_score(first[20:]))


def test_the_same_with_a_memory_smaller_than_the_rows() -> None:
    normal, first, _ = kinds(1000)
    X, y = np.vstack([normal, first[:100]]), np.r_[np.zeros(1000), -np.ones(100)].astype(int)
    small = AutoDetector(memory=50).fit(X, y)
    assert len(small.rows_) <= 100
    truth = np.r_[np.ones(900), -np.ones(900)].astype(int)
    test = np.vstack([kinds(900, seed=1)[0], first[100:]])
    assert auc(truth, small.anomaly_score(test)) > auc(truth, AutoDetector().fit(X, y).anomaly_score(test)) - 0.05


# ---- labels ----------------------------------------------------------------------------------------------------------


def quality(n_known: int, shuffled: bool = False, shift: float = 1.5) -> tuple[float, float]:
    """AUC on the known kind and on the other, with some of the first kind known."""
    normal, first, second = kinds(shift=shift)
    y = np.r_[np.zeros(200), -np.ones(n_known)].astype(int)
    if shuffled:
        y = np.random.default_rng(0).permutation(y)
    detector = AutoDetector().fit(np.vstack([normal[:200], first[:n_known]]), y)
    scores = [detector.anomaly_score(rows) for rows in (normal[200:], first[200:], second[200:])]
    truth = np.r_[np.ones(100), -np.ones(100)].astype(int)
    seen, unseen = (auc(truth, np.r_[scores[0], scores[i]]) for i in (1, 2))
    return seen, unseen


def test_labels_help_on_their_kind_and_a_few_hardly_hurt_on_another() -> None:
    none, few, many = quality(0), quality(10), quality(100)
    assert none[0] + 0.05 < few[0] + 0.02 < many[0]
    assert many[0] > 0.8
    assert few[1] > none[1] - 0.03
    assert many[1] > 0.6  # where all hundred known are of one kind, the other counts for less


def test_shuffled_labels_do_little() -> None:
    assert quality(100, shuffled=True)[0] < quality(0)[0] + 0.05
    assert quality(20, shuffled=True)[1] > quality(0)[1] - 0.1


def test_heads_gain_weight_with_what_they_prove() -> None:
    def heads(n_known: int) -> float:
        normal, first, _ = kinds(shift=1.5)
        X, y = np.vstack([normal, first[:n_known]]), np.r_[np.ones(300), -np.ones(n_known)].astype(int)
        shares = AutoDetector().fit(X, y).shares_
        assert set(shares) == set(FITTED)
        assert sum(shares.values()) == pytest.approx(1)
        return shares["kernel"] + shares["linear"]

    assert heads(2) < heads(20) < heads(200)
    normal, *_ = kinds()
    assert AutoDetector().fit(normal).shares_["kernel"] == 0


def test_unlabelled_anomalies_are_set_aside_and_rows_called_normal_are_not() -> None:
    normal, first, _ = kinds(400, shift=5.0)
    X = np.vstack([normal, first[:20], first[20:40]])  # twenty hidden, twenty known
    y = np.r_[np.zeros(420), -np.ones(20)].astype(int)
    doubted = AutoDetector().fit(X, y)
    assert 5 <= doubted.n_set_aside_ <= 30
    trusted = AutoDetector().fit(X, np.where(y == 0, 1, y))
    assert trusted.n_set_aside_ == 0
    assert len(trusted.rows_) == 440
    assert np.median(doubted.anomaly_score(first[40:])) > np.median(trusted.anomaly_score(first[40:]))


def searched_by_hand(seed: int) -> tuple[float, float]:
    """AUC on fresh rows with ten anomalies known, and after twenty more verdicts on whatever was the oddest."""
    rng = np.random.default_rng(seed)
    normal, anomaly = rng.normal(size=(900, 12)), 0.5 * rng.normal(size=(260, 12))
    anomaly[:, 0] += 3.5
    X, truth = np.vstack([normal[:500], anomaly[:60]]), np.r_[np.ones(500), -np.ones(60)].astype(int)
    fresh, answer = np.vstack([normal[500:], anomaly[60:]]), np.r_[np.ones(400), -np.ones(200)].astype(int)
    y = np.r_[np.zeros(500), -np.ones(10), np.zeros(50)].astype(int)
    first = AutoDetector().fit(X, y).anomaly_score(fresh)
    for _ in range(4):
        scores = AutoDetector().fit(X, y).anomaly_score(X)
        oddest = np.argsort(np.where(y == 0, -scores, np.inf))[:5]
        y[oddest] = np.where(truth[oddest] < 0, FOUND, 1)
    return auc(answer, first), auc(answer, AutoDetector().fit(X, y).anomaly_score(fresh))


def test_anomalies_found_by_searching_do_not_make_the_hidden_ones_normal() -> None:
    """They rank above all that are still hidden, of which none then ranked above half of the known."""
    before, after = np.mean([searched_by_hand(seed) for seed in range(3)], axis=0)
    assert after > before - 0.002


def test_many_found_of_one_kind_do_not_drown_the_few_known_of_all_kinds() -> None:
    """Ten known at random are of both kinds, sixty found by searching of the easier one."""
    before, after, unaware = [], [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        normal, easy, hard = rng.normal(size=(900, 12)), 0.5 * rng.normal(size=(200, 12)), rng.normal(size=(200, 12))
        easy[:, 0] += 6
        hard[:, 1] += 2.5
        X = np.vstack([normal[:500], easy[:65], hard[:5]])
        y = np.r_[np.zeros(500), np.full(5, -1), np.full(60, FOUND), np.full(5, -1)].astype(int)
        fresh, answer = np.vstack([normal[500:], easy[65:], hard[5:]]), np.r_[np.ones(400), -np.ones(330)].astype(int)
        first = (y == 0) | (y == -1)
        before.append(auc(answer, AutoDetector().fit(X[first], y[first]).anomaly_score(fresh)))
        after.append(auc(answer, AutoDetector().fit(X, y).anomaly_score(fresh)))
        unaware.append(auc(answer, AutoDetector().fit(X, np.sign(y)).anomaly_score(fresh)))
    assert np.mean(after) > np.mean(unaware) + 0.01
    assert np.mean(after) > np.mean(before) - 0.01


def test_a_search_is_told_by_the_rows_labelled_normal_until_they_are_as_many() -> None:
    """A label column of somebody who judged the oddest rows is enough; no need to say which were found."""
    normal, first, _ = kinds(400, shift=5.0)
    X = np.vstack([normal, first[:40], first[40:60] + 3])  # forty hidden, the twenty farthest known
    y = np.r_[np.zeros(440), -np.ones(20)].astype(int)
    n = []
    for n_normal in (0, 5, 20):
        y[:n_normal] = 1
        n.append(AutoDetector().fit(X, y).n_set_aside_)
    assert max(n[0], n[2]) < 5
    assert n[1] >= 20
    y[:20] = 0
    assert AutoDetector().fit(X, np.where(y < 0, FOUND, y)).n_set_aside_ >= 20


# ---- in words --------------------------------------------------------------------------------------------------------


def test_it_says_what_it_is_made_of() -> None:
    normal, first, _ = kinds(shift=5.0)
    assert AutoDetector().fit(normal).describe().endswith("no anomalies are known")
    X, y = np.vstack([normal, first[:30], first[30:40]]), np.r_[np.zeros(330), -np.ones(10)].astype(int)
    detector = AutoDetector().fit(X, y)
    words = detector.describe()
    for share in detector.shares_.values():
        assert f"({share:.0%})" in words
    assert "10 known anomalies" in words
    assert f"{detector.n_set_aside_} texts presumed normal were set aside" in words
    assert detector.auc_ > detector.auc_of_distances_ > 50


def test_rows_far_from_the_origin_know_themselves() -> None:
    X = np.random.default_rng(0).normal(size=(300, 16)) + 1000
    detector = AutoDetector().fit(X[:200], np.ones(200))
    assert detector.anomaly_score(X[:200]).mean() == pytest.approx(0, abs=1e-6)
    assert (detector.predict(X[200:]) == -1).mean() < 0.15


def test_a_memory_of_equal_rows_gets_one_that_differs() -> None:
    X = np.zeros((1000, 3))
    X[[5, 80, 701]] = np.eye(3)  # none of which is among forty evenly spaced rows
    assert np.isfinite(AutoDetector(memory=40).fit(X).anomaly_score(np.vstack([X[:2], np.eye(3)]))).all()


@pytest.mark.parametrize("seed", range(5))
def test_few_rows_and_few_labels_are_no_problem(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for n, m in ((2, 1), (2, 3), (3, 3), (5, 8), (19, 3)):
        y = np.r_[np.zeros(n), -np.ones(m)].astype(int)
        detector = AutoDetector().fit(rng.normal(size=(n + m, 4)), y)
        assert detector.n_set_aside_ == 0
        assert np.abs(detector.anomaly_score(rng.normal(size=(9, 4)))).max() < 1e4
        assert "nan" not in detector.describe()


def test_two_rows_are_enough() -> None:
    detector = AutoDetector().fit(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert np.isfinite(detector.anomaly_score(np.array([[5.0, 5.0], [0.0, 1.0]]))).all()
    with_one = AutoDetector().fit(np.array([[0.0, 1.0], [1.0, 0.0], [9.0, 9.0]]), [0, 0, -1])
    far, near = with_one.anomaly_score(np.array([[8.0, 8.0], [0.4, 0.6]]))
    assert far > near


# ---- the form --------------------------------------------------------------------------------------------------------


def with_form(X: np.ndarray, odd: int = 0, seed: int = 0) -> np.ndarray:
    """Rows with three columns of a form beside them, of which the last `odd` rows are far out."""
    form = np.random.default_rng(seed).normal(size=(len(X), 3))
    form[len(X) - odd :] += 8
    return np.hstack([X, form]).astype(np.float32)


def test_the_form_is_a_part_of_its_own() -> None:
    normal, fresh = kinds(300, 64)[0], kinds(50, 64, seed=9)[0]
    X, fresh = with_form(normal, odd=6), with_form(fresh, odd=10, seed=1)
    detector = AutoDetector(form_columns=3).fit(X)
    plain = AutoDetector().fit(X[:, :64])
    np.testing.assert_array_equal(detector._features(fresh)[:, :4], plain._features(fresh[:, :64])[:, :4])
    y = np.r_[np.ones(40), -np.ones(10)].astype(int)
    assert auc(y, detector.anomaly_score(fresh)) > auc(y, plain.anomaly_score(fresh[:, :64])) + 0.1
    assert 0.05 < detector.shares_["form"] < 0.5
    assert f"how unusual the form of the text is ({detector.shares_['form']:.0%})" in detector.describe()
    assert "form" not in plain.describe()
    shares, low = detector.form_shares(fresh[:, 64:])
    assert (shares[-10:, 0] == shares.max(axis=0)[0]).all()
    assert not low[-10:].any()
    np.testing.assert_array_equal(detector.form_shares(detector.usual_form[None])[0], 0)


def test_a_form_that_says_nothing_changes_nothing() -> None:
    normal, first, second = kinds()
    X, y = np.vstack([normal, first[:9]]), np.r_[np.zeros(300), -np.ones(9)].astype(int)
    for labels in (None, y):
        flat, fresh = (np.hstack([rows, np.ones((len(rows), 3))]) for rows in (X, second))
        found = AutoDetector(form_columns=3).fit(flat, labels).anomaly_score(fresh)
        np.testing.assert_allclose(found, AutoDetector().fit(X, labels).anomaly_score(second), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("known", [0, 9])
def test_a_detector_of_the_form_is_restored(known: int) -> None:
    normal, first, second = kinds()
    X = with_form(np.vstack([normal, first[:known]]), odd=known)
    detector = AutoDetector(form_columns=3).fit(X, np.r_[np.zeros(300), -np.ones(known)].astype(int))
    again = clone(detector).set_state(detector.get_state())
    np.testing.assert_array_equal(again.anomaly_score(with_form(second)), detector.anomaly_score(with_form(second)))
    for params in ({"form_columns": 0}, {"form_columns": 2}):
        with pytest.raises(ModelError):
            clone(detector).set_params(**params).set_state(detector.get_state())


def test_near_copies_tie_in_their_form_too() -> None:
    normal, _, _ = kinds(300, 16)
    X = np.vstack([normal, normal[0] + 0.01 * np.random.default_rng(2).normal(size=(4, 16))])
    detector = AutoDetector(form_columns=3).fit(with_form(X))
    assert detector.n_compared_ <= 300
    assert np.ptp(detector.anomaly_score(with_form(X))[[0, 300, 301, 302, 303]]) == 0


def test_an_embedding_is_needed_beside_the_form() -> None:
    rows = with_form(np.zeros((20, 4)))
    with pytest.raises(DataError, match="one embedding"):
        AutoDetector(form_columns=3).fit(rows)
    with pytest.raises(DataError, match="expected an embedding before these"):
        AutoDetector(form_columns=7).fit(rows)
