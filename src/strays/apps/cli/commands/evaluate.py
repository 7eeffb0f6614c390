"""strays evaluate: measure a model on a file with labels."""

from __future__ import annotations

from dataclasses import asdict

from strays.apps.cli import options as opt


def evaluate(
    file: opt.File,
    *,
    model: opt.Model,
    labels: opt.LabelOptions,
    text_column: opt.TextColumn = None,
    device: opt.Device = "auto",
    reading: opt.ReadOptions,
    as_json: opt.Json = False,
) -> None:
    """Measure a fitted model on labelled rows: MAP, Recall@5, AUC and false alarms."""
    from strays.apps.cli import terminal
    from strays.jobs.evaluate import evaluate_table
    from strays.model import TextOutlierDetector

    table, column = opt.opened(file, reading, text_column, labels.columns)
    with terminal.progress_bar("scoring") as progress:
        fitted = TextOutlierDetector.load(model, device=device)
        result = evaluate_table(fitted, table, **labels.given(), text_column=column, progress=progress)
    if as_json:
        terminal.print_json(asdict(result))
    else:
        terminal.show_facts(result.to_words(), f"{model} on {table.name}")
