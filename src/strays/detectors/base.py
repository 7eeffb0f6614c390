"""What every detector promises: a scikit-learn outlier estimator whose anomaly score points up.

    anomaly_score       higher is odder                        each detector writes this one
    score_samples       = -anomaly_score                       scikit-learn's direction: higher is more normal
    decision_function   = score_samples - offset_              negative is flagged
    predict             = +1 where decision_function >= 0, else -1

A detector sees embeddings and labels, never a text. Labels are +1 (normal), -1 (anomaly), -2 (anomaly found by judging
the highest-scoring rows) and 0 (unlabelled, presumed normal). A detector is a dataclass whose fields are its
parameters, as scikit-learn's get_params and clone expect. It writes `_fit(X, y)` and `_anomaly_score(X)` and names the
arrays that make up its fitted state in `_state`, with what they must be, from which it can be saved and restored
without pickle.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from strays.detectors.array_spec import FLOATS, LARGEST_EMBEDDED, WHOLE, ArraySpec, check_arrays
from strays.detectors.estimator import Estimator
from strays.detectors.limits import FLAG_RATE, Limit, check_params
from strays.errors import DataError, StraysWarning

# The label of an anomaly that was found by judging the highest-scoring rows.
FOUND = -2
# Rows kept to compare with, as many as there are features wide.
EMBEDDED = ArraySpec(("n", "d"), FLOATS, -LARGEST_EMBEDDED, LARGEST_EMBEDDED, fewest=2)
_COMMON_STATE = {"offset_": ArraySpec(), "n_features_in_": ArraySpec((), WHOLE, low=1, high=2**31)}


class Detector(Estimator, ABC):
    """Base of all detectors. They all take `flag_rate`: the share of presumed normal training rows `predict` flags.

    >>> from dataclasses import dataclass
    >>> @dataclass(eq=False, repr=False)
    ... class FirstFeature(Detector):
    ...     flag_rate: float = 0.05
    ...     def _fit(self, X, y):
    ...         pass
    ...     def _anomaly_score(self, X):
    ...         return X[:, 0]
    >>> detector = FirstFeature(flag_rate=0.25).fit([[1, 0], [2, 0], [3, 0], [4, 0]])
    >>> detector.predict([[0, 0], [9, 0]])
    array([ 1, -1])
    """

    _estimator_type: ClassVar[str] = "outlier_detector"
    # Limits of the parameters; checked in fit, since constructors only store.
    _parameter_constraints: ClassVar[dict[str, list[Limit]]] = {"flag_rate": [FLAG_RATE]}
    # Fitted attributes, arrays or lists of arrays, from which anomaly_score follows. In shapes "d" is the number of
    # features, and the name of a number in the state is that number.
    _state: ClassVar[dict[str, ArraySpec | list[ArraySpec]]] = {}
    # Whether the scores of two fits on nearly the same rows can be compared with one another.
    comparable_fits: ClassVar[bool] = True
    # Whether presumed normal training rows get the scores they would have if they had not been trained on.
    left_out_scores: ClassVar[bool] = False

    flag_rate: float
    offset_: float
    n_features_in_: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what is normal from rows X (n, d) and labels y: +1 normal, -1 anomaly, 0 or no y at all: unlabelled.

        -2 is an anomaly that was found by judging the highest-scoring rows, as at the review desk.
        """
        self._check_params()
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a fit that fails leaves nothing to score with
        X = self._checked_rows(X, fewest=2)
        y = check_labels(y, len(X))
        normals = X[y >= 0]
        if (normals == normals[0]).all():
            raise DataError(
                f"the {len(normals)} rows that are not labelled -1 are all equal; expected different rows to learn from"
            )
        scores = self._fit(X, y)
        normal_scores = self._normal_scores(normals) if scores is None else scores[y >= 0]
        # Midway between the last row to flag and the first not to, so that neither depends on rounding.
        self.offset_ = -float(np.quantile(normal_scores, 1 - self.flag_rate, method="midpoint"))
        return self

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and +1 for normal rows, -1 for flagged ones; scikit-learn's own would drop the labels."""
        return self.fit(X, y).predict(X)

    @property
    def copies_tie(self) -> bool:
        """Whether rows get exactly the same score only because they are copies, or nearly, of one another."""
        return False

    @property
    def n_form(self) -> int:
        """How many columns at the end of a row describe the form of a text, the others being its embedding."""
        return 0

    @property
    def usual_form(self) -> np.ndarray:
        """The columns of a form that adds nothing to a score."""
        return np.empty(0)

    def form_shares(self, form: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What every column of the form of rows adds to their scores, and where a row is low in it: (rows, columns)."""
        return np.empty((len(form), 0)), np.empty((len(form), 0), dtype=bool)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "offset_")

    def anomaly_score(self, X: Any, *, device: str = "cpu") -> np.ndarray:
        """One float for each row; higher is odder. Detectors that can use a GPU compute on `device`, a torch device."""
        self._require_fitted()
        X = self._checked_rows(X)
        with np.errstate(all="ignore"):  # what comes of an overflow is noticed below
            scores = np.asarray(self._anomaly_score_on(device, X), dtype=np.float64)
        if not np.isfinite(scores).all():
            bad = int(np.argmin(np.isfinite(scores)))
            raise DataError(
                f"X[{bad}] has numbers too large to score (up to {np.abs(X[bad]).max():.1e}); scale the rows"
            )
        return scores

    def score_samples(self, X: Any) -> np.ndarray:
        """The negated anomaly score; lower is odder, as in scikit-learn."""
        return -self.anomaly_score(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """score_samples - offset_; negative means flagged."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """+1 for normal rows, -1 for flagged ones."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def describe(self) -> str:
        """What the score is made of, in a sentence."""
        return (type(self).__doc__ or "").partition("\n")[0]

    def get_state(self) -> dict[str, np.ndarray]:
        """The fitted state as named arrays; a list of arrays becomes name.0, name.1, ..."""
        self._require_fitted()
        state: dict[str, np.ndarray] = {}
        for name in (*self._state, *_COMMON_STATE):
            value = getattr(self, name)
            if isinstance(value, list):
                state |= {f"{name}.{i}": np.asarray(part) for i, part in enumerate(value)}
            else:
                state[name] = np.asarray(value)
        return state

    def set_state(self, state: Mapping[str, np.ndarray]) -> Self:
        """Become fitted from what get_state gave; an error where parameters or arrays could not come from a fit."""
        self._check_params()
        expected = self._state | _COMMON_STATE
        flat: dict[str, ArraySpec] = {}
        for name, array in expected.items():
            flat |= {f"{name}.{i}": part for i, part in enumerate(array)} if isinstance(array, list) else {name: array}
        numbers = {name: array for name, array in flat.items() if array.types == WHOLE and not array.shape}
        check_arrays(state, numbers)
        sizes = {name: int(state[name]) for name in numbers}
        sizes["d"] = sizes["n_features_in_"]
        check_arrays(state, flat, sizes)
        for name, array in expected.items():
            if isinstance(array, list):
                setattr(self, name, [state[f"{name}.{i}"] for i in range(len(array))])
            else:
                setattr(self, name, state[name] if array.shape else state[name].item())
        self._check_state()
        return self

    def _check_state(self) -> None:
        """Raise ModelError where a state that is right array by array makes no sense as a whole."""

    def _check_params(self) -> None:
        check_params(self.get_params(deep=False), self._parameter_constraints, type(self).__name__)

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self)  # raises the error that scikit-learn's users expect

    def _checked_rows(self, X: Any, fewest: int | None = None) -> np.ndarray:
        """Rows as a float array in C order, as a sum along a row is then the same whatever array the row comes from.

        In a fit there is a number of rows that are the `fewest`. An array of floats is looked at here; scikit-learn
        is imported for whatever else there is, and for its messages.
        """
        plain = type(X) is np.ndarray and X.dtype in (np.float64, np.float32) and X.ndim == 2
        if plain and fewest and len(X) >= fewest and X.shape[1]:
            X, self.n_features_in_ = np.ascontiguousarray(X), X.shape[1]
        elif (
            plain
            and not fewest
            and len(X)
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        ):
            X = np.ascontiguousarray(X)
        else:
            from sklearn.utils.validation import validate_data

            options = {"ensure_min_samples": fewest} if fewest else {"reset": False}
            X = validate_data(self, X, dtype=[np.float64, np.float32], order="C", ensure_all_finite=False, **options)
        bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
        if len(bad):
            raise DataError(f"X[{bad[0]}] contains NaN or infinity ({len(bad)} such rows); expected finite numbers")
        return X

    @abstractmethod
    def _fit(self, X: np.ndarray, y: np.ndarray) -> np.ndarray | None:
        """Fit; may return the anomaly scores of X where it has them at hand."""

    def _normal_scores(self, normals: np.ndarray) -> np.ndarray:
        """Scores from which `offset_` is taken: those of the normal training rows, or of a fair sample of them."""
        return self._anomaly_score(normals)

    @abstractmethod
    def _anomaly_score(self, X: np.ndarray) -> np.ndarray:
        """The scores of checked rows."""

    def _anomaly_score_on(self, device: str, X: np.ndarray) -> np.ndarray:
        """The scores of checked rows, computed on a device; a detector that can use a GPU overrides this."""
        return self._anomaly_score(X)


def check_labels(y: Any, n: int) -> np.ndarray:
    """Labels as an int8 array of +1, -1, FOUND and 0; no labels at all are n zeros.

    scikit-learn's contract lets any numbers arrive as y. Those other than the three are taken by their sign, with a
    warning, since refusing them would break every tool that passes class numbers along.
    """
    if y is None:
        return np.zeros(n, dtype=np.int8)
    if type(y) is not np.ndarray or y.ndim != 1:
        from sklearn.utils.validation import column_or_1d

        y = column_or_1d(y)
    y = y.astype(np.int8) if y.dtype.kind == "b" else y
    if y.dtype.kind not in "iuf":
        raise DataError(
            f"Unknown label type: y holds {y.dtype} values; expected +1 (normal), -1 (anomaly) and 0 (unlabelled)"
        )
    if len(y) != n:
        raise DataError(f"y has {len(y)} labels for {n} rows; expected one for each row")
    if not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DataError(f"y[{row}] is {y[row]}; expected +1 (normal), -1 (anomaly) or 0 (unlabelled)")
    labels = np.where(y == FOUND, FOUND, np.sign(y)).astype(np.int8)
    if (labels != y).any():
        found = ", ".join(f"{v:g}" for v in np.unique(y[labels != y])[:5])
        warnings.warn(
            f"y holds {found}, which are not labels; expected +1 (normal), -1 (anomaly) and 0 (unlabelled). "
            "Their signs are used.",
            StraysWarning,
            stacklevel=4,
        )
    if (labels < 0).all():
        raise DataError("every label in y is -1 (anomaly); at least some rows must be normal (+1) or unlabelled (0)")
    return labels


def generator(random_state: int | np.random.RandomState | None) -> np.random.Generator:
    """A generator of its own for one fit; the global random state is never touched."""
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    return np.random.default_rng(random_state)
