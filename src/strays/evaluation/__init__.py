"""Measuring detectors: metrics, and what builds on them: corpora, protocols, the studies of the paper."""

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
