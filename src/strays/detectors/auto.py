"""The default: distances to the normal rows and likeness to known anomalies, weighed by how far each can be trusted.

Rows are centred on the normals and scaled to a mean squared distance of 1.5 between them. These parts look at a row x:

    nearest   mean distance to the k nearest normal rows
    field     -f(x), f a kernel ridge regression on 1 (normal) and 0 (known anomaly): how settled x's surroundings are
    kernel    f(x), the same on -1 (normal) and +1 (known anomaly): is x like the one or like the other, or like neither
    linear    log odds of a known anomaly under logistic regression
    form      how unusual the form of the text is, where further columns of x describe it (form_part.py)

The score T(x) is a weighted sum of the parts, of deviation about one over the normals. No part is weighed by rows it
was fitted on: all have left-out values in closed form, which set the weights (mixture.py), and which also are what
normal training rows score, so that a corpus can be ranked by the model fitted on it.

Some presumed normal rows are left out of the two distances, because they may be anomalies that vouch for their like:
all but one of a small group of copies, and rows at the outskirts that have each other for neighbours (copies.py). Rows
that rank among the known anomalies are set aside (set_aside.py), and all parts fitted once more without them. Known
anomalies that were found by searching count for what they stand for (found_by_search.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import ClassVar, NamedTuple, Self

import numpy as np

from strays.detectors import mixture
from strays.detectors.array_spec import WHOLE, ArraySpec
from strays.detectors.auto_features import AutoFeatures
from strays.detectors.auto_in_words import in_words
from strays.detectors.auto_parts import FITTED, PARTS, fit_parts
from strays.detectors.base import EMBEDDED, FOUND, Detector
from strays.detectors.copies import find_groups, outskirts, unit_of_length
from strays.detectors.exact import ComparedRows, Prepared, placed, weighted_sums
from strays.detectors.form_part import trust_in_form
from strays.detectors.found_by_search import first_weights, weights_of_known
from strays.detectors.limits import COUNT, Interval
from strays.detectors.sampling import different, evenly, evenly_by_label
from strays.detectors.set_aside import set_aside
from strays.detectors.threads import one_thread
from strays.errors import DataError, ModelError

# State that has an entry for the form at its end, and what that is where there is no form.
_WITH_FORM = {"location_": 0.0, "spread_": 1.0, "weights_": 0.0}


class _Normals(NamedTuple):
    """Normal rows and their form: which are only presumed so, which are no copies, which of these to measure distances
    to, and how near a copy of each is.
    """

    X: np.ndarray
    form: np.ndarray
    presumed: np.ndarray
    counted: np.ndarray
    compared: np.ndarray
    radius: np.ndarray


class _Known(NamedTuple):
    """Known anomalies and their form, and which of them were found by searching."""

    X: np.ndarray
    form: np.ndarray
    found: np.ndarray


@dataclass(eq=False, repr=False)
class AutoDetector(Detector):
    """Score a row by whatever can be learnt from the rows there are and from the anomalies known, none to thousands.

    Nothing in it is random.

    Parameters
    ----------
    n_neighbors
        k of the part `nearest`.
    memory
        Most normal rows, and most known anomalies, that are kept to compare with: of more, evenly spaced ones, half of
        them rows labelled normal where there are as many.
    form_columns
        How many columns at the end of a row describe the form of a text, the first of them how rare its letters are
        (`strays.model.form`). 0 is plain embeddings.

    Attributes
    ----------
    rows_, n_normals_, n_compared_
        The rows learnt from, `n_normals_` normals and then known anomalies; distances are to the first `n_compared_`.
    n_known_
        How many anomalies were known, also where fewer are kept.
    n_set_aside_
        How many presumed normal rows were set aside for looking like the known anomalies.
    radius_
        A row within this distance of a normal compared with is a copy of it, and gets the two distances of that one.
    form_
        The columns of the normals' form.
    weights_
        Of the first four parts, of kernel and linear where they are above the mean of the normals, and of the form.
    auc_, auc_of_distances_
        How many percent of the normals a left-out known anomaly ranks above, with all parts and with the first two;
        NaN where no anomaly was known.

    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> X[:5] += 4
    >>> blind, taught = AutoDetector().fit(X), AutoDetector().fit(X, [-1] * 5 + [0] * 55)
    >>> blind.describe().partition("; ")[2]
    'no anomalies are known'
    >>> near, far = taught.anomaly_score([[0] * 4, [4] * 4])
    >>> bool(far > near)
    True
    """

    n_neighbors: int = 5
    memory: int = 4096
    form_columns: int = 0
    flag_rate: float = 0.05

    _parameter_constraints: ClassVar = {
        **Detector._parameter_constraints,
        "n_neighbors": [COUNT],
        "memory": [Interval(Integral, 2, None, closed="left")],
        "form_columns": [Interval(Integral, 0, None, closed="left")],
    }
    left_out_scores: ClassVar = True
    _state: ClassVar = {
        "rows_": replace(EMBEDDED, shape=("n", "e")),
        "n_normals_": ArraySpec((), WHOLE, low=2),
        "n_known_": ArraySpec((), WHOLE, low=0),
        "n_set_aside_": ArraySpec((), WHOLE, low=0),
        "n_compared_": ArraySpec((), WHOLE, low=2),
        "radius_": ArraySpec(("n_compared_",), low=0),
        "center_": ArraySpec(("e",)),
        "scale_": ArraySpec(low=1e-30),
        "field_": ArraySpec(("n",)),
        "kernel_": ArraySpec(("n",)),
        "linear_": ArraySpec(("e and b",), fewest=2),
        "form_": ArraySpec(("n_normals_", "f"), ("float32",), fewest=0),
        "left_out_": ArraySpec(("n_normals_", len(FITTED))),
        "location_": ArraySpec((len(PARTS),)),
        "spread_": ArraySpec((len(PARTS),), low=0.9 * mixture.VARIES**0.5),
        "weights_": ArraySpec((mixture.N_FEATURES,)),
        "bias_": ArraySpec(),
        "auc_": ArraySpec(low=0, high=100, may_be_nan=True),
        "auc_of_distances_": ArraySpec(low=0, high=100, may_be_nan=True),
    }

    # ---- fitting -----------------------------------------------------------------------------------------------------

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.n_known_ = int((y < 0).sum())
        X, form = np.hsplit(X, [self._n_embedded])
        if (X[y >= 0] == X[y >= 0][0]).all():
            raise DataError("the rows that are not labelled -1 all have one embedding; expected different ones")
        kept = different(X, evenly_by_label(y, self.memory), np.flatnonzero(y >= 0))
        anomalies = evenly(np.flatnonzero(y < 0), self.memory)
        normals, known = X[kept], _Known(X[anomalies], form[anomalies], y[anomalies] == FOUND)
        self.center_ = normals.mean(axis=0, dtype=np.float64)
        self.scale_ = unit_of_length(normals)
        presumed = y[kept] == 0
        with one_thread():
            Z = (normals - self.center_) / self.scale_
            groups = find_groups(Z, trusted=~presumed)
            compared = groups.kept.copy()
            compared[compared] = ~outskirts(Z[compared], presumed[compared], groups.evenness)
        self._fit_and_weigh(_Normals(normals, form[kept], presumed, groups.kept, compared, groups.radius), known)

    def _fit_and_weigh(self, normals: _Normals, known: _Known) -> None:
        """Fit the parts and weigh them; again with what that tells of normals and of known anomalies."""
        aside, counts = np.zeros(len(normals.X), dtype=bool), first_weights(known.found)
        at_normals, at_known = self._fit_without(aside, normals, known, counts)
        scores, known_scores, n_normal = self._mixed(at_normals), self._mixed(at_known), int((~normals.presumed).sum())
        aside = set_aside(scores, known_scores, normals.presumed, n_normal, searched=bool(known.found.any()))
        if (normals.compared & ~aside).sum() < 2:
            aside[:] = False
        self.n_set_aside_ = int(aside.sum())
        settled = weights_of_known(known_scores, known.found)
        if aside.any() or (settled != counts).any():
            self._fit_without(aside, normals, known, settled)

    def _fit_without(
        self, aside: np.ndarray, normals: _Normals, known: _Known, counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Fit and weigh the parts without some normals; their left-out values at all normals and at the known.

        `counts` is how much each known anomaly counts.
        """
        first = np.flatnonzero(normals.compared & ~aside)
        # The others tell the heads what is normal; without known anomalies there are none.
        then = np.flatnonzero(~normals.compared & ~aside)[: None if len(known.X) else 0]
        rows = np.r_[first, then]
        self.rows_ = np.vstack([normals.X[rows], known.X]).astype(np.float32)
        self.form_ = normals.form[rows].astype(np.float32)
        self.n_normals_, self.n_compared_, self.radius_ = len(rows), len(first), normals.radius[first]
        Z = placed(self.rows_, self.center_, self.scale_)
        fitted = fit_parts(Z, self.n_normals_, self.radius_, counts, n_neighbors=self.n_neighbors)
        self.field_, self.kernel_, self.linear_ = fitted.field, fitted.kernel, fitted.linear
        self.left_out_, at_known = fitted.left_out[: self.n_normals_], fitted.left_out[self.n_normals_ :]
        features = _FEATURES.of(self)
        at_known = np.column_stack([at_known, features.form_part.at(known.form)])
        at_normals = features.at(np.hstack([normals.X, normals.form]))
        with one_thread():
            self._weigh(at_normals[normals.counted], at_known, counts, trust_in_form(Z[: self.n_normals_]))
        return at_normals, at_known

    def _weigh(self, at_normals: np.ndarray, at_known: np.ndarray, counts: np.ndarray, trust: float) -> None:
        self.location_ = at_normals.mean(axis=0)
        deviation = at_normals.std(axis=0)
        # Both distances are lengths of one space already, and the form has its unit; the heads' units are their own.
        heads = np.where(deviation[2:4] ** 2 > mixture.VARIES, deviation[2:4], 1.0)
        self.spread_ = np.array([1.0, 1.0, *heads, 1 / trust if self.form_columns else 1.0])
        normals, known = self._standardised(at_normals), self._standardised(at_known)
        self.auc_ = self.auc_of_distances_ = float("nan")
        if len(known):
            found = mixture.mix(normals, known, counts)
            self.weights_, self.auc_, self.auc_of_distances_ = found.weights, found.auc, found.auc_of_distances
        else:
            self.weights_ = mixture.distances_alone(normals)
        self.bias_ = float((normals @ self.weights_).mean())

    @property
    def n_form(self) -> int:
        """The parameter form_columns."""
        return self.form_columns

    @property
    def copies_tie(self) -> bool:
        """Near copies tie while no anomalies are known, equal rows always; of only two rows, both."""
        return self.n_compared_ > 2

    def get_state(self) -> dict[str, np.ndarray]:
        """Like every detector's; without copies and form it is what 0.1 wrote, and a model of 0.1 is the same again."""
        state = super().get_state()
        if not self.form_columns:
            del state["form_"]
            state |= {name: state[name][:-1] for name in _WITH_FORM}
        if self.n_compared_ == self.n_normals_ and not self.radius_.any():
            del state["radius_"], state["n_compared_"]
        return state

    def set_state(self, state: Mapping[str, np.ndarray]) -> Self:
        """Like every detector's, or what 0.1 wrote, which compared with all rows, copies or not, and saw no form."""
        written = {"left_out_", *_WITH_FORM} <= state.keys()
        if "form_" not in state and not self.form_columns and written:
            none = np.zeros((len(state["left_out_"]), 0), np.float32)
            state = {**state, "form_": none} | {name: np.append(state[name], _WITH_FORM[name]) for name in _WITH_FORM}
        if "radius_" not in state and "left_out_" in state and "n_normals_" in state:
            state = {**state, "radius_": np.zeros(len(state["left_out_"])), "n_compared_": state["n_normals_"]}
        return super().set_state(state)

    def _check_state(self) -> None:
        fits = self.n_compared_ <= self.n_normals_ <= len(self.rows_)
        fits &= len(self.linear_) == self._n_embedded + 1 and self.center_.shape == (self._n_embedded,)
        if not fits or self.form_.shape[1] != self.form_columns:
            raise ModelError(
                f"the saved AutoDetector has {self.n_compared_} of {self.n_normals_} normals in {len(self.rows_)} rows "
                f"and {len(self.linear_)} weights for {self.n_features_in_} features, {self.form_columns} of them of "
                f"the form, of which it has {self.form_.shape[1]}; these do not fit. Fit it again"
            )

    # ---- scoring -----------------------------------------------------------------------------------------------------

    def _anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return self._mixed(self._features(X))

    def _anomaly_score_on(self, device: str, X: np.ndarray) -> np.ndarray:
        if device == "cpu":
            return self._anomaly_score(X)
        from strays.detectors.auto_on_gpu import features_on

        return self._mixed(features_on(device, _FEATURES.of(self), X))

    def _mixed(self, features: np.ndarray) -> np.ndarray:
        return weighted_sums(self._standardised(features), self.weights_) - self.bias_

    def _normal_scores(self, normals: np.ndarray) -> np.ndarray:
        return self._anomaly_score(evenly(normals, self.memory))

    def _standardised(self, features: np.ndarray) -> np.ndarray:
        return mixture.with_bounded_heads((features - self.location_) / self.spread_)

    @property
    def _n_embedded(self) -> int:
        """How many columns of a row are its embedding."""
        n = self.n_features_in_ - self.form_columns
        if n < 1:
            raise DataError(
                f"the rows have {self.n_features_in_} columns, {self.form_columns} of them of the form; expected an "
                "embedding before these",
            )
        return n

    def _features(self, X: np.ndarray) -> np.ndarray:
        """The parts at each row; see AutoFeatures."""
        return _FEATURES.of(self).at(X)

    def _prepared(self) -> AutoFeatures:
        return AutoFeatures(
            compared=ComparedRows.of(self.rows_, self.center_, self.scale_),
            n_neighbors=self.n_neighbors,
            field=self.field_,
            kernel=self.kernel_,
            linear=self.linear_,
            radius=self.radius_,
            left_out=self.left_out_,
            form=self.form_,
        )

    # ---- the form ----------------------------------------------------------------------------------------------------

    @property
    def usual_form(self) -> np.ndarray:
        """The median of each column of the form."""
        return _FEATURES.of(self).form_part.middle

    def form_shares(self, form: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What every column of the form of rows adds to their scores, and where a row is low in it: (rows, columns)."""
        part, form = _FEATURES.of(self).form_part, form.astype(np.float32)
        return self.weights_[-1] / self.spread_[-1] * part.shares(form), form < part.middle

    # ---- in words ----------------------------------------------------------------------------------------------------

    @property
    def shares_(self) -> dict[str, float]:
        """How much of the score each part makes: the deviation it gives the normals, as shares of one."""
        form = _FEATURES.of(self).form_part.at(self.form_)
        features = self._standardised(np.column_stack([self.left_out_, form])) * self.weights_
        features[:, 2:4] += features[:, 4:6]
        size = features[:, [0, 1, 2, 3, 6]].std(axis=0)
        named = PARTS if self.form_columns else FITTED
        return dict(zip(named, (size / (size.sum() or 1)).tolist(), strict=False))

    def describe(self) -> str:
        """Which parts the score is made of, and why, in a sentence."""
        return in_words(self.shares_, self.n_known_, self.auc_, self.auc_of_distances_, self.n_set_aside_)


_FEATURES = Prepared(AutoDetector._prepared, "rows_", "field_", "left_out_", "form_", "n_neighbors")
