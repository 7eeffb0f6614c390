"""Fit a detector, and score normal texts that it has not seen: calibration rests on those.

Few texts are all held out in turn, in folds, and the detector is fitted on all of them; of many, and where scores do
not compare from fit to fit, a share is held out once for all. calibration.py says what either is worth.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strays.detectors import DETECTORS, Detector, detector_class
from strays.detectors.base import FOUND
from strays.detectors.copies import find_groups, unit_of_length
from strays.detectors.estimator import clone
from strays.detectors.sampling import evenly
from strays.encoders import Encoder, Progress
from strays.encoders.low_rank import LowRankUpdates
from strays.errors import DataError, StraysWarning, UsageError
from strays.model.calibration import MOST_KEPT
from strays.model.form import MOST_COUNTED, FormReader, text_hashes

# Fewer different texts than this leave nothing to compare a text with.
FEWEST_TEXTS = 3
# Up to this many presumed normal texts all are held out in turn, in folds; of more, a share is held out once for all.
MOST_IN_FOLDS = 2000
HELD_OUT = 0.2
# P-values rest on no fewer normal texts than this that a tuned encoder has not learnt from.
FEWEST_UNSEEN = 20


@dataclass(frozen=True)
class Fitted:
    """A fitted detector, the rows held out, and their scores by detectors that had not seen them.

    All rows were held out in `n_folds` turns; with 0, those rows once for all. `left_out` tells whether the training
    rows have scores as if they had not been seen.
    """

    detector: Detector
    held_out: np.ndarray
    held_out_scores: np.ndarray
    n_folds: int
    left_out: bool

    def scores_as_if_unseen(self, training_scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scores of the training rows, held-out ones where there are such, and which are as if never seen."""
        if self.left_out:
            return training_scores, y >= 0
        scores, unseen = training_scores.copy(), np.zeros(len(y), dtype=bool)
        scores[self.held_out], unseen[self.held_out] = self.held_out_scores, True
        return scores, unseen


@dataclass(frozen=True)
class FitSummary:
    """What a model was fitted on. Its p-values rest on `n_held_out` texts: a share, or all in `n_folds` turns."""

    n_texts: int
    n_normal: int
    n_anomaly: int
    n_unlabelled: int
    n_held_out: int
    n_folds: int = 0

    @property
    def n_presumed_normal(self) -> int:
        """Texts that are no known anomalies; where all of these were held out in turn, equal ones count once."""
        return self.n_held_out if self.n_folds else self.n_normal + self.n_unlabelled

    @classmethod
    def of(cls, y: np.ndarray, fitted: Fitted) -> FitSummary:
        """Of a fit on rows with these labels."""
        return cls(
            n_texts=len(y),
            n_normal=int((y > 0).sum()),
            n_anomaly=int((y < 0).sum()),
            n_unlabelled=int((y == 0).sum()),
            n_held_out=len(fitted.held_out_scores),
            n_folds=fitted.n_folds,
        )


def check_settings(held_out: float | None, keep_examples: int) -> None:
    """Raise unless a model can be fitted so."""
    if held_out is not None and not 0 < held_out < 1:
        raise UsageError(f"{{held_out}} is {held_out}; must be strictly between 0 and 1, or None", param="held_out")
    if keep_examples < 0:
        raise UsageError(f"{{keep_examples}} is {keep_examples}; must be 0 or more", param="keep_examples")


def mark_found(y: np.ndarray, searched: Sequence[bool] | np.ndarray | None) -> np.ndarray:
    """The labels, in which anomalies that were found by searching are told from the others.

    >>> mark_found(np.array([-1, -1, 1, 0]), [False, True, True, False])
    array([-1, -2,  1,  0])
    """
    if searched is None:
        return y
    mask = np.asarray(searched)
    if mask.shape != y.shape or mask.dtype != bool:
        found = f"{mask.dtype} values of shape {mask.shape}"
        raise DataError(
            f"{{searched}} holds {found}; expected True or False for each of {len(y)} texts", param="searched"
        )
    return np.where(mask & (y < 0), FOUND, y)


def read_form(texts: Sequence[str], X: np.ndarray, y: np.ndarray) -> FormReader:
    """What there is to know of the form of normal texts: of more than are counted, evenly spaced ones.

    As in the default detector, copies count once, lest they vouch for each other's letters.
    """
    rows = evenly(np.flatnonzero(y >= 0), MOST_COUNTED)
    presumed = y[rows] == 0
    Z = X[rows] - X[rows].mean(axis=0, dtype=np.float64)
    groups = find_groups(Z / unit_of_length(Z), trusted=~presumed)
    return FormReader.of([texts[i] for i in rows], groups.group)


def make_detector(asked: str | Detector, random_state: int | None, form_columns: int = 0) -> Detector:
    """An unfitted detector by name, or like the object given; one that takes a seed and has none gets this one.

    One that reads columns of the form is told how many there are.
    """
    if isinstance(asked, str):
        detector = detector_class(asked)()
    elif isinstance(asked, Detector):
        detector = clone(asked)
    else:
        raise UsageError(
            f"{{detector}} is {asked!r:.80}; must be one of {', '.join(DETECTORS)}, or an object from strays.detectors",
            param="detector",
        )
    params = detector.get_params()
    if "random_state" in params and params["random_state"] is None:
        detector.set_params(random_state=random_state)
    if "form_columns" in params:
        detector.set_params(form_columns=form_columns)
    return detector


def hold_out(
    y: np.ndarray, share: float | None, random_state: int | None, unseen: np.ndarray | None = None
) -> np.ndarray:
    """The presumed normal rows to hold out once for all, a `share` of them, or a usual one.

    Where only some are `unseen`, at most half of these, so that the detector learns from them, too.
    """
    normals = np.random.default_rng(random_state).permutation(np.flatnonzero(y >= 0))
    wanted = max(1, math.floor((share or HELD_OUT) * len(normals)))
    if unseen is not None:
        normals = normals[unseen[normals]]
        wanted = min(wanted, len(normals) // 2)
    return normals[: min(wanted, int((y >= 0).sum()) - 2, MOST_KEPT)]


def unseen_by(encoder: Encoder, texts: Sequence[str], y: np.ndarray) -> np.ndarray | None:
    """Which texts an encoder that was tuned before has not learnt from; None where it has learnt from none of them, or
    from so many that p-values cannot rest on the others.
    """
    updates = getattr(encoder, "updates", None)
    if not isinstance(updates, LowRankUpdates):
        return None
    unseen = ~np.isin(text_hashes(texts), updates.learnt_from)
    if unseen.all():
        return None
    if (unseen & (y >= 0)).sum() < FEWEST_UNSEEN:
        said = f"the encoder was tuned on these texts, of which fewer than {FEWEST_UNSEEN} normal ones are new to it"
        remedy = "expect more false alarms than promised. Fit with the encoder as it was, or add texts"
        warnings.warn(StraysWarning(f"{said}; {remedy}"), stacklevel=3)
        return None
    return unseen


def fit_and_hold_out(
    detector: Detector,
    X: np.ndarray,
    y: np.ndarray,
    share: float | None,
    random_state: int | None,
    progress: Progress | None = None,
    *,
    held_out: np.ndarray | None = None,
    unseen: np.ndarray | None = None,
) -> Fitted:
    """Fit a detector on rows and labels. `share` of the presumed normal rows is held out; None: what suits.

    Or the rows `held_out`, where X depends on the others; or of the rows `unseen` alone, where X depends on the others
    already. `progress` is called with (fits done, fits in all), also before the first.
    """
    tell = progress or (lambda done, total: None)
    normals = np.random.default_rng(random_state).permutation(np.flatnonzero(y >= 0))
    in_folds = share is None and held_out is None and detector.comparable_fits
    if in_folds and len(normals) <= MOST_IN_FOLDS:
        normals = normals if unseen is None else normals[unseen[normals]]
        folds = _folds(X[:, : X.shape[1] - detector.n_form], normals, 10 if len(normals) <= MOST_IN_FOLDS // 4 else 5)
        in_turn = []
        for i, fold in enumerate(folds):
            tell(i, len(folds) + 1)
            in_turn.append(_fit_without(detector, X, y, fold).anomaly_score(X[fold]))
        tell(len(folds), len(folds) + 1)
        fitted = detector.fit(X, y)
        return Fitted(fitted, np.concatenate(folds), np.concatenate(in_turn), len(folds), fitted.left_out_scores)
    tell(0, 1)
    once = hold_out(y, share, random_state, unseen) if held_out is None else held_out
    fitted = _fit_without(detector, X, y, once)
    left_out = fitted.left_out_scores and held_out is None
    return Fitted(fitted, once, fitted.anomaly_score(X[once]), 0, left_out)


def require_variety(texts: list[str], y: np.ndarray) -> None:
    """Raise unless there are enough different texts to learn from."""
    presumed_normal = {text for text, label in zip(texts, y, strict=True) if label >= 0}
    if texts and not presumed_normal:
        raise DataError(
            f"all {len(texts)} texts are labelled anomaly; normal or unlabelled texts are needed too, to learn from"
        )
    if len(presumed_normal) < FEWEST_TEXTS:
        raise DataError(
            f"got {len(texts)} texts, {len(presumed_normal)} of them normal or unlabelled and different from one "
            f"another; expected at least {FEWEST_TEXTS} such texts to tell what is normal, better a hundred"
        )


def require_different(X: np.ndarray, encoder: Encoder) -> None:
    """Raise where an encoder gives all texts one embedding."""
    if not np.ptp(X, axis=0).any():
        raise DataError(
            f"the encoder {encoder!r} cannot tell these texts apart: all {len(X)} get one embedding. Choose an encoder "
            "made for their language"
        )


def _folds(X: np.ndarray, rows: np.ndarray, k: int) -> list[np.ndarray]:
    """The rows dealt into k parts, so that what is left without one of them is never all equal.

    Rows unlike the commonest one are dealt first; where there is only one such row, it stays in every fit.
    """
    _, which, counts = np.unique(X[rows], axis=0, return_inverse=True, return_counts=True)
    unlike = which.reshape(-1) != counts.argmax()
    dealt = np.r_[rows[unlike], rows[~unlike]] if unlike.sum() > 1 else rows[~unlike]
    k = min(k, len(dealt))
    return [dealt[i::k] for i in range(k)]


def _fit_without(detector: Detector, X: np.ndarray, y: np.ndarray, held_out: np.ndarray) -> Detector:
    seen = np.ones(len(X), dtype=bool)
    seen[held_out] = False
    return clone(detector).fit(X[seen], y[seen])
