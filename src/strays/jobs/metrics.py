"""How well scores separate anomalies from normals: the paper's metrics, all of them aware of ties.

Every function takes `labels` (+1 normal, -1 anomaly; rows with 0 are ignored) and `scores` (higher is odder), and
returns shares between 0 and 1. Where rows share a score no order among them is assumed: a constant score earns an AUC
of one half and a MAP equal to the share of anomalies, however the rows are sorted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from strays.errors import DataError


@dataclass(frozen=True)
class Roc:
    """The ROC curve: true and false positive rates when everything scoring at least `thresholds` is flagged.

    >>> roc = roc_points(labels=[1, 1, -1], scores=[0.1, 0.2, 0.3])
    >>> roc.fpr.tolist(), roc.tpr.tolist()
    ([0.0, 0.0, 0.5, 1.0], [0.0, 1.0, 1.0, 1.0])
    """

    fpr: np.ndarray
    tpr: np.ndarray
    thresholds: np.ndarray


@dataclass(frozen=True)
class Evaluation:
    """The paper's metrics in one place.

    `recall_at_5_ceiling` is the highest Recall@5 there can be: where anomalies are more than 5 % of the rows, not all
    of them fit into the highest-scoring 5 %.

    >>> found = evaluate(labels=[1, 1, -1, 1, -1], scores=[0.1, 0.2, 0.9, 0.3, 0.25])
    >>> found.n, found.n_anomalies, round(found.auc, 3)
    (5, 2, 0.833)
    """

    n: int
    n_anomalies: int
    map: float
    recall_at_5: float
    auc: float
    fpr_at_80_tpr: float
    recall_at_5_ceiling: float


def mean_average_precision(labels: ArrayLike, scores: ArrayLike) -> float:
    """MAP: the mean, over the anomalies, of the precision among all rows scoring at least as high as that anomaly."""
    anomalies, normals, _ = _at_least(*_labelled(labels, scores))
    return float(np.diff(anomalies, prepend=0) @ (anomalies / (anomalies + normals)) / anomalies[-1])


def recall_at(labels: ArrayLike, scores: ArrayLike, percent: float = 5.0) -> float:
    """Recall@k: the share of anomalies among the highest-scoring k % of the rows.

    Of rows tied at the edge as many as fit are counted, each anomaly among them with the chance to be one of those.
    """
    if not 0 < percent <= 100:
        raise DataError(f"{{percent}} is {percent}; must be above 0 and at most 100", param="percent")
    anomaly, score = _labelled(labels, scores)
    if (top := _rows_in(percent, len(score))) == 0:
        return 0.0
    edge = np.partition(score, -top)[-top]
    above, tied = score > edge, score == edge
    caught = anomaly[above].sum() + anomaly[tied].mean() * (top - above.sum())
    return float(caught / anomaly.sum())


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Area under the ROC curve: the chance that a random anomaly scores above a random normal, ties counting half."""
    anomalies, normals, _ = _at_least(*_labelled(labels, scores))
    newly, above_or_tied = np.diff(anomalies, prepend=0), 2 * (normals[-1] - normals) + np.diff(normals, prepend=0)
    return float(newly @ above_or_tied / (2 * anomalies[-1] * normals[-1]))


def roc_points(labels: ArrayLike, scores: ArrayLike) -> Roc:
    """Every corner of the ROC curve, from (0, 0) to (1, 1); tied rows are one straight step."""
    anomalies, normals, score = _at_least(*_labelled(labels, scores))
    return Roc(np.r_[0, normals] / normals[-1], np.r_[0, anomalies] / anomalies[-1], np.r_[np.inf, score])


def fpr_at_tpr(labels: ArrayLike, scores: ArrayLike, tpr: float = 0.8) -> float:
    """The lowest false positive rate at which the given share of anomalies is found, on the straight-line ROC curve."""
    if not 0 < tpr <= 1:
        raise DataError(f"{{tpr}} is {tpr}; must be above 0 and at most 1", param="tpr")
    roc = roc_points(labels, scores)
    # The first corner that reaches the rate; 1e-12 forgives rounding in shares such as 4/5.
    after = int(np.argmax(roc.tpr >= tpr - 1e-12))
    step = roc.tpr[after] - roc.tpr[after - 1]
    part = min(1.0, (tpr - roc.tpr[after - 1]) / step)
    return float(roc.fpr[after - 1] + part * (roc.fpr[after] - roc.fpr[after - 1]))


def evaluate(labels: ArrayLike, scores: ArrayLike) -> Evaluation:
    """All of the paper's metrics."""
    anomaly, _ = _labelled(labels, scores)
    return Evaluation(
        n=len(anomaly),
        n_anomalies=int(anomaly.sum()),
        map=mean_average_precision(labels, scores),
        recall_at_5=recall_at(labels, scores, 5),
        auc=auc(labels, scores),
        fpr_at_80_tpr=fpr_at_tpr(labels, scores, 0.8),
        recall_at_5_ceiling=min(1.0, _rows_in(5, len(anomaly)) / int(anomaly.sum())),
    )


def _at_least(anomaly: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How many anomalies and how many normals score at least so much, and that score: each there is, highest first."""
    order = np.argsort(-score, kind="stable")
    last = np.flatnonzero(np.diff(score[order], append=-np.inf))  # of the rows that share a score
    anomalies = anomaly[order].cumsum()[last]
    return anomalies, last + 1 - anomalies, score[order][last]


def _rows_in(percent: float, n: int) -> int:
    return int(percent * n / 100 + 1e-9)


def _labelled(labels: ArrayLike, scores: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    label, score = np.asarray(labels), np.asarray(scores, dtype=np.float64)
    if label.ndim != 1 or label.shape != score.shape:
        raise DataError(
            f"{{labels}} have shape {label.shape} and {{scores}} {score.shape}; expected two lists of one length",
            param=("labels", "scores"),
        )
    strange = ~np.isin(label, (-1, 0, 1))
    if strange.any():
        raise DataError(
            f"{{labels}} hold {label[strange][0]!r}; expected +1 (normal), -1 (anomaly) and 0 (ignored)", param="labels"
        )
    known = label != 0
    anomaly, score = label[known] < 0, score[known]
    if not np.isfinite(score).all():
        raise DataError("{scores} hold NaN or infinity; expected finite numbers", param="scores")
    if anomaly.all() or not anomaly.any():
        raise DataError(
            f"{{labels}} hold {anomaly.sum()} anomalies and {(~anomaly).sum()} normals; expected at least one of each",
            param="labels",
        )
    return anomaly, score
