"""Measuring a fitted model on a file with labels, and what every threshold would make of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strays.encoders import Progress
from strays.errors import DataError, UsageError
from strays.jobs.columns import NormalValues
from strays.jobs.corpus import read_corpus
from strays.jobs.metrics import Evaluation, evaluate
from strays.model import Scores, TextOutlierDetector
from strays.model.calibration import Calibration, Rule, Threshold
from strays.model.contamination import Contamination
from strays.model.labels import parse_labels
from strays.tables import Table

# What is compared: thresholds a person might choose.
THRESHOLDS = (
    *(Threshold("max_false_alarms", rate) for rate in (0.001, 0.01, 0.02, 0.05, 0.1)),
    *(Threshold("max_false_share", share) for share in (0.1, 0.2, 0.5)),
    *(Threshold("flag_rate", rate) for rate in (0.01, 0.02, 0.05, 0.1)),
)


@dataclass(frozen=True)
class ThresholdOutcome:
    """What a threshold makes of labelled rows, as counts and shares; `precision` is None where nothing is flagged.

    >>> y, flagged = np.array([1, 1, 1, -1, -1]), np.array([False, True, False, True, False])
    >>> one = ThresholdOutcome.of(Threshold("flag_rate", 0.4), y, flagged)
    >>> one.found, one.missed, one.false_alarms, one.passed, one.recall, one.precision
    (1, 1, 1, 2, 0.5, 0.5)
    """

    rule: Rule
    value: float
    flagged: int
    found: int
    missed: int
    false_alarms: int
    passed: int
    recall: float
    precision: float | None
    false_alarm_rate: float

    @classmethod
    def of(cls, used: Threshold, y: np.ndarray, flagged: np.ndarray) -> ThresholdOutcome:
        """Of rows of both labels (+1 normal, -1 anomaly) and their flags."""
        found, false_alarms = int(flagged[y < 0].sum()), int(flagged[y > 0].sum())
        n_anomalies, n_normals, n_flagged = int((y < 0).sum()), int((y > 0).sum()), found + false_alarms
        return cls(
            rule=used.rule,
            value=used.value,
            flagged=n_flagged,
            found=found,
            missed=n_anomalies - found,
            false_alarms=false_alarms,
            passed=n_normals - false_alarms,
            recall=found / n_anomalies,
            precision=found / n_flagged if n_flagged else None,
            false_alarm_rate=false_alarms / n_normals,
        )


@dataclass(frozen=True)
class TableEvaluation:
    """The paper's metrics, what the model's threshold makes of the file, and what others would.

    `thresholds` holds the chosen one too. `normals_beyond_chance` tells whether the normal rows are odder than those
    the model was fitted on, which makes false alarms more than promised. `fitted_on_these` tells whether most of the
    texts that the model keeps are in the file: then it was fitted on it, and the figures are too good.
    """

    metrics: Evaluation
    n_unlabelled: int
    n_without_text: int
    anomalies_flagged: float
    false_alarms: float
    flagged_are: str
    chosen: ThresholdOutcome
    thresholds: tuple[ThresholdOutcome, ...]
    normals_beyond_chance: Contamination | None
    fitted_on_these: bool

    def to_words(self) -> dict[str, str]:
        """The figures in percent, as the paper prints them."""
        m, chosen = self.metrics, self.chosen
        left_out = f"; left out: {self.n_unlabelled:,} unlabelled, {self.n_without_text:,} without a text"
        words = {
            "rows": f"{m.n:,}, {m.n_anomalies:,} of them anomalies{left_out}",
            "MAP": f"{100 * m.map:.1f}",
            "Recall@5": _recall_in_words(m),
            "AUC": f"{100 * m.auc:.1f}",
            "FPR at 80 % TPR": f"{100 * m.fpr_at_80_tpr:.1f}",
            "threshold": self.flagged_are,
            "anomalies flagged": f"{100 * self.anomalies_flagged:.1f} %: {chosen.found:,}, {chosen.missed:,} missed",
            "false alarms": f"{100 * self.false_alarms:.1f} % of the normal texts: {chosen.false_alarms:,}, "
            f"{chosen.passed:,} not flagged",
        }
        if self.fitted_on_these:
            words["fitted on"] = "these very texts, which makes the figures too good: measure on rows it has not seen"
        odder = self.normals_beyond_chance
        if odder and odder.beyond_chance:
            words["normal texts"] = (
                f"about {100 * odder.share:.1f} % ({100 * odder.low:.1f} to {100 * odder.high:.1f} %) are odder than "
                "those the model was fitted on: expect more false alarms than the threshold says"
            )
        return words


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
    texts = [corpus.texts[i] for i in labelled]
    scored = model.score(texts, progress=progress)
    chosen = ThresholdOutcome.of(model.threshold_, y, scored.flagged)
    return TableEvaluation(
        metrics=evaluate(y, scored.anomaly_score),
        n_unlabelled=len(corpus.texts) - len(labelled),
        n_without_text=corpus.n_without_text,
        anomalies_flagged=chosen.recall,
        false_alarms=chosen.false_alarm_rate,
        flagged_are=str(model.threshold_),
        chosen=chosen,
        thresholds=_outcomes(model.calibration_, model.threshold_, y, scored),
        normals_beyond_chance=model.calibration_.contamination(scored.p_value[y > 0]),
        fitted_on_these=_are_most_in(set(model.examples_.texts), set(texts)),
    )


def _are_most_in(kept: set[str], texts: set[str]) -> bool:
    """Whether more than half of the kept texts are among these; of other files only a few are, such as greetings."""
    return len(kept & texts) > len(kept) / 2


def _outcomes(
    calibration: Calibration, chosen: Threshold, y: np.ndarray, scored: Scores
) -> tuple[ThresholdOutcome, ...]:
    """What the usual thresholds and the chosen one make of the rows, by rule and from strict to loose."""
    finest = calibration.lowest_p_value
    usual = [wanted for wanted in THRESHOLDS if not wanted.rule.startswith("max_") or wanted.value >= finest]
    rules = list(dict.fromkeys(wanted.rule for wanted in (*usual, chosen)))
    all_of_them = sorted({*usual, chosen}, key=lambda wanted: (rules.index(wanted.rule), wanted.value))
    return tuple(
        ThresholdOutcome.of(wanted, y, calibration.flagged(wanted, scored.anomaly_score)) for wanted in all_of_them
    )
