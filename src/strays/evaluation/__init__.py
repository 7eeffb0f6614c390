"""Measuring detectors: metrics now; corpora, protocols and studies build on them."""

from strays.evaluation.metrics import (
    Evaluation,
    Roc,
    auc,
    evaluate,
    fpr_at_tpr,
    mean_average_precision,
    recall_at,
    roc_points,
)

__all__ = [
    "Evaluation",
    "Roc",
    "auc",
    "evaluate",
    "fpr_at_tpr",
    "mean_average_precision",
    "recall_at",
    "roc_points",
]
