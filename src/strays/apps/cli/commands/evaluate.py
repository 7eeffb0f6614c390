"""strays evaluate: measure a model on a file with labels."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from strays.apps.cli import options as opt

if TYPE_CHECKING:
    from strays.jobs.evaluate import TableEvaluation


def evaluate(
    file: opt.File,
    *,
    model: opt.Model,
    labels: opt.LabelOptions,
    flagging: opt.FlaggingRules,
    top: opt.TopFlagged = None,
    text_column: opt.TextColumn = None,
    device: opt.Device = "auto",
    allow_download: opt.AllowDownload = False,
    reading: opt.ReadOptions,
    as_json: opt.Json = False,
) -> None:
    """Measure a fitted model on labelled rows: MAP, Recall@5, AUC, and what thresholds would find."""
    from strays.apps.cli import terminal
    from strays.jobs.evaluate import evaluate_table

    rules = flagging.given(top=top)
    table, column = opt.opened(file, reading, text_column, labels.columns)
    with terminal.progress_bar("scoring") as progress:
        fitted = opt.loaded_model(model, device, allow_download, rules)
        result = evaluate_table(fitted, table, **labels.given(), text_column=column, progress=progress)
    if as_json:
        terminal.print_json(asdict(result))
        return
    terminal.show_facts(result.to_words(), f"{model} on {table.name}")
    header = ["threshold", "", "flagged", "anomalies found", "precision", "false alarms"]
    terminal.show_table(header, _rows(result), "What thresholds make of these rows (*: the one in use)")


def _rows(result: TableEvaluation) -> list[list[str]]:
    """One line for each threshold: what it flags, and how much of that is right."""
    return [
        [
            opt.named([one.rule]),
            f"{one.value:g}{' *' if one == result.chosen else ''}",
            f"{one.flagged:,}",
            f"{one.found:,} ({one.recall:.0%})",
            "" if one.precision is None else f"{one.precision:.0%}",
            f"{one.false_alarms:,} ({one.false_alarm_rate:.1%})",
        ]
        for one in result.thresholds
    ]
