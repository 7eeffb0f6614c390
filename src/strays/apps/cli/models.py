"""Commands that make models and ask them: scan, fit, explain, evaluate."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from strays.apps.cli.common import encoder_of, facts_of, known_texts, print_json, rules_of, runs_on, say_without_text
from strays.apps.cli.options import (
    DetectorName,
    Device,
    EncoderName,
    File,
    FlagRate,
    Format,
    Json,
    KeepExamples,
    Known,
    LabelColumn,
    MaxFalseAlarms,
    MaxFalseShare,
    MaxLength,
    Model,
    Normalize,
    Out,
    OutFormat,
    Pooling,
    Precision,
    Revision,
    SafeCells,
    Seed,
    Strict,
    TextColumn,
)
from strays.errors import UsageError


def scan(
    file: File,
    known: Known = None,
    top: Annotated[int, typer.Option(help="How many of the oddest rows to show.", min=0)] = 20,
    out: Out = None,
    report: Annotated[
        str | None, typer.Option(help="HTML page to write: the oddest texts explained, a map, curves.", metavar="PAGE")
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    max_false_alarms: MaxFalseAlarms = None,
    max_false_share: MaxFalseShare = None,
    flag_rate: FlagRate = None,
    encoder: EncoderName = "default",
    detector: DetectorName = "auto",
    seed: Seed = 0,
    revision: Revision = None,
    pooling: Pooling = None,
    normalize: Normalize = None,
    max_length: MaxLength = None,
    precision: Precision = None,
    device: Device = "auto",
    format: Format = None,
    out_format: OutFormat = None,
    safe_cells: SafeCells = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Fit on a file of texts and show its oddest rows."""
    from strays.apps.cli import terminal
    from strays.jobs.scan import scan_table
    from strays.jobs.score import check_output, stream_format, write_scored
    from strays.tables import open_table

    rules = rules_of(max_false_alarms=max_false_alarms, max_false_share=max_false_share, flag_rate=flag_rate)
    table = open_table(file, format, text_column=text_column)
    if out:
        out_format = stream_format(table, out, out_format)
        check_output(table, out, out_format)
    if report:
        from strays.jobs.report.job import KEPT_EXAMPLES, MOST_SHOWN, SHOWN_TEXTS, check_page, write_report

        if report == "-":
            raise UsageError("--report names a file; strays report --out - writes the page to stdout")
        check_page(report, table.name, besides=out)
    found = scan_table(
        table,
        encoder_of(encoder, revision, pooling, normalize, max_length, precision, device),
        detector,
        text_column=text_column,
        label_column=label_column,
        known=known_texts(known, text_column),
        seed=seed,
        keep_examples=KEPT_EXAMPLES if report else 0,
        strict=strict,
        progress=terminal.progress_bar,
        **rules,
    )
    if report:
        shown = min(max(top, SHOWN_TEXTS), MOST_SHOWN)
        write_report(found, report, fitted_here=True, top=shown, random_state=seed, progress=terminal.progress_bar)
    if out:
        write_scored(table, out, found.scores, out_format=out_format, safe_cells=safe_cells)
    if out == "-":
        return
    if as_json:
        print_json(found.to_dict(top))
        return
    facts = found.to_dict(top)
    terminal.show_ranking(
        facts["oddest"], f"The {len(facts['oddest'])} oddest of {facts['n_rows']:,} rows in {table.name}"
    )
    terminal.say(f"{facts['n_flagged']:,} flagged: {facts['flagged_are']}. Detector: {facts['detector']}.")
    terminal.say(f"Encoder: {encoder}{runs_on(found.model)}.")
    say_without_text(facts["n_without_text"])
    if out:
        terminal.say(f"All rows with their scores are in {out}.")
    if report:
        terminal.say(f"The report is {report}.")


def fit(
    file: File,
    model: Model,
    known: Known = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    encoder: EncoderName = "default",
    detector: DetectorName = "auto",
    seed: Seed = 0,
    keep_examples: KeepExamples = 1000,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Also fit a cheap head, for strays score --cascade.")
    ] = False,
    max_false_alarms: MaxFalseAlarms = None,
    max_false_share: MaxFalseShare = None,
    flag_rate: FlagRate = None,
    revision: Revision = None,
    pooling: Pooling = None,
    normalize: Normalize = None,
    max_length: MaxLength = None,
    precision: Precision = None,
    device: Device = "auto",
    format: Format = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Fit a model on a file of texts and save it."""
    from strays.apps.cli import terminal
    from strays.jobs.scan import fit_table
    from strays.model.folder import check_target
    from strays.tables import open_table

    rules = rules_of(max_false_alarms=max_false_alarms, max_false_share=max_false_share, flag_rate=flag_rate)
    check_target(model)
    table = open_table(file, format, text_column=text_column)
    fitted, corpus = fit_table(
        table,
        encoder_of(encoder, revision, pooling, normalize, max_length, precision, device),
        detector,
        text_column=text_column,
        label_column=label_column,
        known=known_texts(known, text_column),
        seed=seed,
        keep_examples=keep_examples,
        cascade=cascade,
        strict=strict,
        progress=terminal.progress_bar,
        **rules,
    )
    fitted.save(model)
    if as_json:
        on = runs_on(fitted).removeprefix(" on ")
        print_json({"model": model, "n_without_text": corpus.n_without_text, "encoder_runs_on": on, **fitted.info()})
        return
    facts = facts_of(fitted)
    terminal.show_facts(facts | {"encoder": facts["encoder"] + runs_on(fitted)}, f"Fitted and saved to {model}")
    say_without_text(corpus.n_without_text)


def explain(
    text: Annotated[str, typer.Argument(help="The text to explain; - reads it from stdin.")],
    model: Model,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Say why a text scores as it does: the words that raise its score, and the known texts it is like."""
    from strays.apps.cli import terminal
    from strays.model import TextOutlierDetector

    fitted = TextOutlierDetector.load(model, device=device)
    explanation = fitted.explain(sys.stdin.read().strip() if text == "-" else text)
    if as_json:
        print_json(explanation.to_dict())
        return
    terminal.show_explanation(explanation.to_dict())


def evaluate(
    file: File,
    model: Model,
    label_column: Annotated[str, typer.Option(help="Column with the true labels: normal, anomaly, or empty.")],
    text_column: TextColumn = None,
    device: Device = "auto",
    format: Format = None,
    as_json: Json = False,
) -> None:
    """Measure a fitted model on a file with labels: MAP, Recall@5, AUC, and false alarms."""
    from strays.apps.cli import terminal
    from strays.jobs.evaluate import evaluate_table
    from strays.model import TextOutlierDetector
    from strays.tables import open_table

    table = open_table(file, format, text_column=text_column)
    with terminal.progress_bar("scoring") as progress:
        fitted = TextOutlierDetector.load(model, device=device)
        result = evaluate_table(fitted, table, label_column, text_column=text_column, progress=progress)
    if as_json:
        print_json(asdict(result))
        return
    terminal.show_facts(result.to_words(), f"{model} on {table.name}")
