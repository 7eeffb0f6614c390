"""How well scores and labels agree: ROC and precision-recall curves, drawn from scores that are fair to draw them from.

A model that has seen a label ranks its text better than a fresh one. So for labels that a model was fitted on, every
labelled text is scored by a detector fitted without it; only labels that a model has not seen measure its own scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from strays.detectors import Detector
from strays.detectors.estimator import clone
from strays.detectors.sampling import evenly
from strays.jobs.metrics import evaluate, roc_points

FOLDS = 5
# Corners of a drawn curve; more cannot be told apart on a page.
MOST_CORNERS = 400
# Texts that are fitted on, and labelled ones that are scored in turns; 6,000 took 48 seconds on two busy cores.
MOST_FITTED, MOST_MEASURED = 1600, 1000
# Labels of a kind to measure by, where there are as many.
FEWEST_MEASURED = 20


def curves(y: np.ndarray, scores: np.ndarray) -> dict[str, Any]:
    """The paper's metrics and both curves, as plain data, from labels (+1, -1, 0: left out) and scores."""
    roc = roc_points(y, scores)
    n_anomalies, n_normals = int((y < 0).sum()), int((y > 0).sum())
    # Where one more anomaly is found: the corners whose precision counts in the mean.
    at = np.flatnonzero(np.diff(roc.tpr) > 0) + 1
    found, false = roc.tpr[at] * n_anomalies, roc.fpr[at] * n_normals
    precision = found / (found + false)
    return {
        "metrics": asdict(evaluate(y, scores)),
        "roc": _corners(roc.fpr, roc.tpr),
        "precision_recall": _corners(roc.tpr[at], precision),
        "share_of_anomalies": n_anomalies / (n_anomalies + n_normals),
    }


def why_no_curves(y: np.ndarray) -> str | None:
    """In words why labels allow no curves; None where they do."""
    n = {"anomaly": int((y < 0).sum()), "normal": int((y > 0).sum())}
    if all(n.values()):
        return None
    if not any(n.values()):
        return "No text has a label, so there is nothing to measure the ranking by."
    missing, there = sorted(n, key=n.__getitem__)
    return (
        f"{n[there]:,} texts are labelled {there} and none is labelled {missing}. Curves need labels of both kinds, "
        "from a column of the file."
    )


def out_of_fold(
    detector: Detector, texts: Sequence[str], X: np.ndarray, y: np.ndarray, *, random_state: int | None
) -> np.ndarray:
    """Scores of the labelled texts, each by a detector fitted without it and its copies; NaN for the others.

    Where scores of different fits do not compare (networks), they are ranks within their fold.
    """
    folds = _folds(texts, y, np.random.default_rng(random_state))
    scores = np.full(len(y), np.nan)
    for k in range(int(folds.max(initial=-1)) + 1):
        left_out = folds == k
        asked = left_out & (y != 0)
        found = clone(detector).fit(X[~left_out], y[~left_out]).anomaly_score(X[asked])
        scores[asked] = found if detector.comparable_fits else _rank(found)
    return scores


def sample_to_measure(y: np.ndarray) -> np.ndarray:
    """Which texts to fit and measure by: labelled ones up to a bound, and unlabelled texts to fill up.

    Of both kinds of labels the same share is taken, because precision depends on how rare anomalies are; but of few
    enough to measure by.
    """
    share = min(1.0, MOST_MEASURED / max(1, int(np.count_nonzero(y))))
    kinds = (np.flatnonzero(y < 0), np.flatnonzero(y > 0))
    sides = [evenly(kind, max(FEWEST_MEASURED, round(share * len(kind)))) for kind in kinds]
    room = max(0, MOST_FITTED - sum(map(len, sides)))
    return np.sort(np.concatenate([*sides, evenly(np.flatnonzero(y == 0), room)]))


def _folds(texts: Sequence[str], y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The fold of each text, -1 for those never left out; equal texts share one, and the kinds are dealt evenly."""
    fold_of: dict[str, int] = {}
    for side in (y < 0, y > 0):
        shuffled = (texts[i] for i in rng.permutation(np.flatnonzero(side)))
        distinct = dict.fromkeys(text for text in shuffled if text not in fold_of)
        fold_of |= {text: i % FOLDS for i, text in enumerate(distinct)}
    used = {fold: k for k, fold in enumerate(sorted(set(fold_of.values())))}
    return np.array([used[fold_of[text]] if text in fold_of else -1 for text in texts])


def _rank(scores: np.ndarray) -> np.ndarray:
    """The share of scores each one is above, ties counting half."""
    ascending = np.sort(scores)
    both = np.searchsorted(ascending, scores, "left") + np.searchsorted(ascending, scores, "right")
    return both / (2 * len(scores))


def _corners(x: np.ndarray, y: np.ndarray) -> list[list[float]]:
    kept = evenly(np.arange(len(x)), MOST_CORNERS)
    return [[round(float(a), 5), round(float(b), 5)] for a, b in zip(x[kept], y[kept], strict=True)]


def measured(
    detector: Detector, texts: Sequence[str], X: np.ndarray, y: np.ndarray, *, random_state: int | None
) -> dict[str, Any]:
    """Curves of labels the detector was fitted on, by scores of detectors that were not; or why there are none."""
    try:
        scores = out_of_fold(detector, texts, X, y, random_state=random_state)
        return curves(y, np.where(y == 0, 0, scores))
    except ValueError as error:  # as the detectors and scikit-learn say it
        why = "There are too few texts to score the labelled ones by models that have not seen them"
        return {"why_not": f"{why}: {error}."}
