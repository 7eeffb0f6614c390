"""One suite for all detectors: what base.Detector promises."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from strays.detectors import DETECTORS, AutoDetector, Detector, detector_class
from strays.errors import DataError, ModelError, StraysWarning, UsageError
from strays.jobs.metrics import auc

CLASSES = [detector_class(name) for name in DETECTORS]
LEARN_FROM_LABELS = {"AISVDD", "AutoDetector", "DeepSAD", "HypersphereClassifier", "LogisticHead"}


# May set unlabelled rows aside that look like the known anomalies, but no row that a person called normal.
DOUBT_UNLABELLED = {"AutoDetector", "NearestNormals"}


# Of networks and forests: what is promised here holds for small ones too.
SMALL = {"hidden_size": 64, "latent_size": 16, "min_steps": 100, "n_estimators": 40, "random_state": 0}


def make(cls: type[Detector]) -> Detector:
    return cls(**{name: value for name, value in SMALL.items() if name in cls().get_params()})


@pytest.fixture(params=CLASSES, ids=lambda cls: cls.__name__)
def detector(request: pytest.FixtureRequest) -> Detector:
    return make(request.param)


def test_scikit_learns_own_checks(detector: Detector) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(detector)


def test_the_ladder_from_anomaly_score_to_predict(detector: Detector, blobs) -> None:
    X, y, X_test, _ = blobs
    score = detector.fit(X, y).anomaly_score(X_test)
    assert np.array_equal(detector.score_samples(X_test), -score)
    assert np.array_equal(detector.decision_function(X_test), -score - detector.offset_)
    assert np.array_equal(detector.predict(X_test), np.where(score <= -detector.offset_, 1, -1))


def test_far_rows_score_higher(detector: Detector, blobs) -> None:
    X = blobs[0]
    far = X[:50] * 30
    score = detector.fit(X).anomaly_score(np.vstack([X[:50], far]))
    assert auc(np.r_[np.ones(50), -np.ones(50)].astype(int), score) > 0.95


def test_flag_rate_of_the_normals_is_flagged(detector: Detector, blobs) -> None:
    X, y, *_ = blobs
    predicted = detector.set_params(flag_rate=0.1).fit(X, y).predict(X[y > 0])
    assert (predicted == -1).mean() == pytest.approx(0.1, abs=0.005)


def test_same_seed_same_scores_and_other_seed_is_allowed_to_differ(detector: Detector, blobs) -> None:
    X, y, X_test, _ = blobs
    first = clone(detector).fit(X, y).anomaly_score(X_test)
    assert np.array_equal(first, clone(detector).fit(X, y).anomaly_score(X_test))
    if "random_state" in detector.get_params():
        assert not np.array_equal(first, clone(detector).set_params(random_state=1).fit(X, y).anomaly_score(X_test))


def test_fitting_leaves_the_global_random_state_alone(detector: Detector, blobs) -> None:
    X, y, *_ = blobs
    before = np.random.get_state()[1].copy()
    detector.fit(X, y)
    assert np.array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_scores_the_same_alone_and_in_any_batch(detector: Detector, blobs, dtype: type) -> None:
    X, y, X_test, _ = (a.astype(dtype) if a.dtype.kind == "f" else a for a in blobs)
    together = detector.fit(X, y).anomaly_score(X_test)
    order = np.random.default_rng(0).permutation(len(X_test))
    np.testing.assert_allclose(detector.anomaly_score(X_test[order]), together[order], rtol=1e-5)
    alone = np.concatenate([detector.anomaly_score(row[None]) for row in X_test[:20]])
    np.testing.assert_allclose(alone, together[:20], rtol=1e-5)


def test_scores_are_not_constant(detector: Detector, blobs) -> None:
    assert np.ptp(detector.fit(blobs[0]).anomaly_score(blobs[2])) > 1e-3


def test_known_anomalies_never_count_as_normal(detector: Detector, blobs) -> None:
    """Many copies of one anomaly in the data: labelled, they must not make its like look normal."""
    X = blobs[0]
    spam = np.tile(X[0] + 6, (200, 1))
    y = np.r_[np.zeros(len(X)), -np.ones(len(spam))].astype(int)
    scores = detector.fit(np.vstack([X, spam]), y).anomaly_score(np.vstack([X, spam[:1]]))
    assert scores[-1] > np.quantile(scores[:-1], 0.95)


def test_labels_are_used_only_where_the_method_learns_from_them(detector: Detector, blobs) -> None:
    X, y, X_test, _ = blobs
    with_labels = clone(detector).fit(X, y).anomaly_score(X_test)
    normals_only = clone(detector).fit(X[y > 0], y[y > 0]).anomaly_score(X_test)
    assert np.allclose(with_labels, normals_only) == (type(detector).__name__ not in LEARN_FROM_LABELS)


def test_unlabelled_rows_are_presumed_normal(detector: Detector, blobs) -> None:
    X, y, X_test, _ = blobs
    unlabelled = clone(detector).fit(X, np.where(y > 0, 0, -1)).anomaly_score(X_test)
    normal = clone(detector).fit(X, y).anomaly_score(X_test)
    assert np.array_equal(unlabelled, normal) == (type(detector).__name__ not in DOUBT_UNLABELLED)
    assert np.corrcoef(unlabelled, normal)[0, 1] > 0.95


def test_state_restores_the_scores(detector: Detector, blobs) -> None:
    X, y, X_test, _ = blobs
    detector.fit(X, y)
    restored = clone(detector).set_state(detector.get_state())
    assert np.array_equal(restored.anomaly_score(X_test), detector.anomaly_score(X_test))
    assert np.array_equal(restored.predict(X_test), detector.predict(X_test))
    assert all(isinstance(array, np.ndarray) for array in detector.get_state().values())


def test_incomplete_state_is_refused(detector: Detector, blobs) -> None:
    state = detector.fit(blobs[0]).get_state()
    del state[next(iter(state))]
    if any("." in name for name in state):  # a list of arrays: drop all of it
        state = {name: array for name, array in state.items() if not name.startswith("weights_")}
    with pytest.raises(ModelError, match="fit it again"):
        clone(detector).set_state(state)


def test_fresh_normals_score_like_those_seen(detector: Detector) -> None:
    """With fewer rows than dimensions a network can learn its rows by heart; it must not, without labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(480, 128)) + 1
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    detector.fit(X[:96])
    seen, fresh = detector.anomaly_score(X[:96]), detector.anomaly_score(X[96:])
    assert np.median(fresh) - np.median(seen) < 6 * np.std(seen)


def test_a_fit_that_fails_leaves_nothing_to_score_with(detector: Detector, blobs) -> None:
    detector.fit(blobs[0])
    with pytest.raises(DataError):
        detector.fit(np.ones((20, 24)))
    with pytest.raises(NotFittedError):
        detector.anomaly_score(blobs[0])


def test_pipeline_and_grid_search(detector: Detector, blobs) -> None:
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(StandardScaler(), clone(detector)).fit(X, y)
    assert pipeline.score_samples(X_test).shape == (len(X_test),)
    search = GridSearchCV(
        clone(detector),
        {"flag_rate": [0.05, 0.1]},
        scoring=lambda fitted, rows, labels: auc(labels, fitted.anomaly_score(rows)),
        cv=2,
        error_score="raise",
    )
    assert 0 <= search.fit(X, y).best_score_ <= 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_are_refused_with_their_row(detector: Detector, blobs, bad: float) -> None:
    X, _, X_test, _ = (a.copy() for a in blobs)
    detector.fit(X)
    X[17, 3] = X_test[5, 0] = bad
    with pytest.raises(DataError, match=r"X\[17\] contains NaN or infinity"):
        clone(detector).fit(X)
    with pytest.raises(DataError, match=r"X\[5\] contains NaN or infinity"):
        detector.anomaly_score(X_test)


def test_wrong_dimension_is_refused(detector: Detector, blobs) -> None:
    detector.fit(blobs[0])
    with pytest.raises(ValueError, match=r"23 features.*24 features"):
        detector.anomaly_score(blobs[2][:, 1:])


def test_only_anomalies_are_refused(detector: Detector, blobs) -> None:
    with pytest.raises(DataError, match="every label in y is -1"):
        detector.fit(blobs[0], -np.ones(len(blobs[0])))


def test_rows_that_are_all_equal_are_refused(detector: Detector) -> None:
    with pytest.raises(DataError, match="20 rows that are not labelled -1 are all equal"):
        detector.fit(np.vstack([np.ones((20, 4)), np.eye(4)]), np.r_[np.ones(20), -np.ones(4)])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["normal"] * 440, "Unknown label type"),
        (np.ones(3), "3 labels for 440 rows"),
        (np.r_[np.ones(439), np.nan], r"y\[439\] is nan"),
    ],
)
def test_labels_that_are_none_are_refused(detector: Detector, blobs, y, message: str) -> None:
    with pytest.raises(DataError, match=message):
        detector.fit(blobs[0], y)


def test_other_numbers_as_labels_draw_a_warning(detector: Detector, blobs) -> None:
    with pytest.warns(StraysWarning, match=r"y holds 3, which are not labels"):
        detector.fit(blobs[0], np.full(len(blobs[0]), 3))


def test_parameters_out_of_range_are_refused(detector: Detector, blobs) -> None:
    with pytest.raises(ValueError, match="flag_rate"):
        detector.set_params(flag_rate=0.9).fit(blobs[0])


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="ai-svdd, deep-svdd, deep-sad"):
        detector_class("svdd")


def test_every_detector_documents_its_parameters_and_formula_and_shows_an_example() -> None:
    import sys

    for cls in CLASSES:
        documented = "".join(base.__doc__ or "" for base in cls.__mro__)
        for name in cls().get_params():
            assert f"{name}" in documented, f"{cls.__name__} does not document {name}"
        assert "T(x)" in sys.modules[cls.__module__].__doc__
        assert ">>> " in cls.__doc__


def test_fit_predict_learns_from_the_labels() -> None:
    """scikit-learn's own fit_predict drops them."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(100, 4)), rng.normal(1, 1, size=(20, 4))]
    y = np.r_[np.zeros(100), -np.ones(20)]
    detector = AutoDetector()
    assert np.array_equal(detector.fit_predict(X, y), AutoDetector().fit(X, y).predict(X))
    assert not np.array_equal(detector.fit_predict(X, y), AutoDetector().fit(X).predict(X))
