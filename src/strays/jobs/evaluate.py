"""Measuring a fitted model on a file with labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strays.encoders import Progress
from strays.errors import DataError, UsageError
from strays.jobs.columns import NormalValues
from strays.jobs.corpus import read_corpus
from strays.jobs.metrics import Evaluation, evaluate
from strays.model import TextOutlierDetector
from strays.model.labels import parse_labels
from strays.tables import Table


@dataclass(frozen=True)
class TableEvaluation:
    """The paper's metrics, and what the model's threshold makes of the file.

    >>> metrics = evaluate(labels=[1, 1, -1], scores=[0.1, 0.2, 0.3])
    >>> found = TableEvaluation(metrics, 0, 0, anomalies_flagged=1.0, false_alarms=0.5, flagged_are="score > 0.15")
    >>> found.to_words()["false alarms"]
    '50.0 % of the normal texts'
    """

    metrics: Evaluation
    n_unlabelled: int
    n_without_text: int
    anomalies_flagged: float
    false_alarms: float
    flagged_are: str

    def to_words(self) -> dict[str, str]:
        """The figures in percent, as the paper prints them."""
        m = self.metrics
        left_out = f"; left out: {self.n_unlabelled:,} unlabelled, {self.n_without_text:,} without a text"
        return {
            "rows": f"{m.n:,}, {m.n_anomalies:,} of them anomalies{left_out}",
            "MAP": f"{100 * m.map:.1f}",
            "Recall@5": _recall_in_words(m),
            "AUC": f"{100 * m.auc:.1f}",
            "FPR at 80 % TPR": f"{100 * m.fpr_at_80_tpr:.1f}",
            "anomalies flagged": f"{100 * self.anomalies_flagged:.1f} %",
            "false alarms": f"{100 * self.false_alarms:.1f} % of the normal texts",
            "flags": self.flagged_are,
        }


def _recall_in_words(m: Evaluation) -> str:
    words = f"{100 * m.recall_at_5:.1f}"
    if m.recall_at_5_ceiling >= 1:
        return words
    return f"{words} of at most {100 * m.recall_at_5_ceiling:.1f}: more anomalies do not fit into 5 % of the rows"


def evaluate_table(
    model: TextOutlierDetector,
    table: Table,
    label_column: str | None = None,
    *,
    normal: NormalValues | None = None,
    text_column: str | None = None,
    progress: Progress | None = None,
) -> TableEvaluation:
    """Score the labelled rows of a table and compare with their labels."""
    if label_column is None and normal is None:
        raise UsageError(
            "there are no labels to measure by; name a column with {label_column} or {normal}",
            param=("label_column", "normal"),
        )
    corpus = read_corpus(table, text_column, label_column=label_column, normal=normal)
    y = parse_labels(corpus.labels, len(corpus.labels))
    labelled = np.flatnonzero(y)
    y = y[labelled]
    if not (y > 0).any() or not (y < 0).any():
        raise DataError(
            f"{table.name}: column {normal.column if normal else label_column!r} gives {(y > 0).sum()} normal and "
            f"{(y < 0).sum()} anomaly labels; expected at least one of each"
        )
    scored = model.score([corpus.texts[i] for i in labelled], progress=progress)
    return TableEvaluation(
        metrics=evaluate(y, scored.anomaly_score),
        n_unlabelled=len(corpus.texts) - len(labelled),
        n_without_text=corpus.n_without_text,
        anomalies_flagged=float(scored.flagged[y < 0].mean()),
        false_alarms=float(scored.flagged[y > 0].mean()),
        flagged_are=str(model.threshold_),
    )
