"""scikit-learn's protocol, without scikit-learn: what it makes of our estimators is what it makes of its own."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import pytest
import sklearn.base
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils._param_validation import Interval as SklearnInterval

from strays import TextOutlierDetector
from strays.detectors import AISVDD, AutoDetector, NearestNormals
from strays.detectors.estimator import Estimator, clone
from strays.detectors.limits import RANDOM_STATE, Interval, StrOptions, check_params
from strays.errors import UsageError

EXAMPLES = [
    AutoDetector(),
    NearestNormals(flag_rate=0.1, n_neighbors=3),
    AISVDD(hidden_size=12345, latent_size=678, anomaly_weight=None, learning_rate=0.123456, epochs=99, batch_size=64),
    TextOutlierDetector(detector=NearestNormals(n_neighbors=2), random_state=None),
]


def twin(estimator: Estimator) -> Any:
    """An estimator of scikit-learn's with the same name and parameters."""
    cls = type(type(estimator).__name__, (sklearn.base.BaseEstimator,), {"__init__": type(estimator).__init__})
    return cls(**estimator.get_params(deep=False))


@pytest.mark.parametrize("estimator", EXAMPLES, ids=lambda e: type(e).__name__)
def test_parameters_and_repr_are_those_of_scikit_learns_base(estimator: Estimator) -> None:
    theirs = twin(estimator)
    assert estimator.get_params() == theirs.get_params()
    assert list(estimator.get_params()) == list(theirs.get_params())
    assert repr(estimator) == repr(theirs)


@pytest.mark.parametrize("estimator", EXAMPLES, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("cloned", [clone, sklearn.base.clone], ids=["ours", "scikit-learn's"])
def test_clones(estimator: Estimator, cloned: Any) -> None:
    other = cloned(estimator)
    assert type(other) is type(estimator)
    assert repr(other) == repr(estimator)
    assert other is not estimator


def test_a_clone_is_unfitted_and_shares_nothing() -> None:
    seed = np.random.RandomState(0)
    model = TextOutlierDetector(detector=AISVDD(random_state=seed).set_params(epochs=2))
    model.detector.weights_ = []
    other = clone(model)
    assert other.detector is not model.detector
    assert other.detector.random_state is not seed
    assert not hasattr(other.detector, "weights_")


def test_parameters_of_parameters() -> None:
    model = TextOutlierDetector(detector=NearestNormals())
    model.set_params(detector__n_neighbors=7, random_state=3)
    assert (model.detector.n_neighbors, model.random_state) == (7, 3)
    model.set_params(detector__n_neighbors=2, detector=NearestNormals(flag_rate=0.2))
    assert model.detector.get_params() == {"flag_rate": 0.2, "n_neighbors": 2}


@pytest.mark.parametrize("name", ["neighbours", "neighbours__k"])
def test_an_unknown_parameter_lists_the_known_ones_and_changes_nothing(name: str) -> None:
    detector = NearestNormals()
    with pytest.raises(ValueError, match=r"Invalid parameter .*flag_rate.*n_neighbors"):
        detector.set_params(n_neighbors=9, **{name: 1})
    assert detector.n_neighbors == 5


def test_scikit_learn_knows_and_shows_an_outlier_detector() -> None:
    detector = NearestNormals(n_neighbors=3)
    pipeline = make_pipeline(StandardScaler(), detector)
    assert sklearn.base.is_outlier_detector(detector)
    assert sklearn.base.is_outlier_detector(pipeline)
    assert "NearestNormals" in estimator_html_repr(pipeline)
    shown = detector._repr_mimebundle_()
    assert shown["text/plain"] == repr(detector)
    assert "NearestNormals" in shown["text/html"]


@pytest.mark.parametrize("closed", ["left", "right", "both", "neither"])
@pytest.mark.parametrize("kind", [Integral, Real])
def test_intervals_allow_what_scikit_learns_do(kind: type, closed: str) -> None:
    ours, theirs = Interval(kind, 1, 3, closed=closed), SklearnInterval(kind, 1, 3, closed=closed)
    values = [0, 1, 2, 3, 4, 1.0, 1.5, 3.0, np.nan, np.inf, np.int64(2), np.float32(2), True, "2", None, [2]]
    assert [ours.allows(value) for value in values] == [bool(theirs.is_satisfied_by(value)) for value in values]


def test_an_open_end_leaves_infinity_out() -> None:
    assert Interval(Real, 0, None, closed="left").allows(1e300)
    assert not Interval(Real, 0, None, closed="left").allows(np.inf)


def test_random_states() -> None:
    assert all(RANDOM_STATE.allows(value) for value in (None, 0, 2**32 - 1, np.random.RandomState(0)))
    assert not any(RANDOM_STATE.allows(value) for value in (-1, 2**32, 0.5, "0", np.random.default_rng(0)))


def test_messages_say_what_was_got_and_what_is_allowed() -> None:
    limits = {"gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"scale", "auto"})]}
    with pytest.raises(
        UsageError, match="gamma of SVM is 'x'; must be a number above 0, or 'auto' or 'scale'"
    ) as error:
        check_params({"gamma": "x"}, limits, "SVM")
    assert error.value.param == "gamma"
    check_params({"gamma": "scale", "other": object()}, limits, "SVM")
