"""Commands that fit models and score texts: scan, fit, score, explain, evaluate."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from strays.cli.common import (
    encoder_of,
    engine_of,
    facts_of,
    known_texts,
    print_json,
    promise_in_words,
    runs_on,
    say_without_text,
    stopped_by_sigterm,
)
from strays.cli.options import (
    Address,
    DetectorName,
    Device,
    EncoderName,
    Engine,
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
    Recall,
    Revision,
    SafeCells,
    Seed,
    Strict,
    TextColumn,
)
from strays.errors import UsageError

if TYPE_CHECKING:
    from strays.scoring import ScoreSummary


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
    from strays import terminal
    from strays.scanning import scan_table
    from strays.scoring import check_output, stream_format, write_scored
    from strays.tables import open_table

    table = open_table(file, format, text_column=text_column)
    if out:
        out_format = stream_format(table, out, out_format)
        check_output(table, out, out_format)
    if report:
        from strays.report.job import KEPT_EXAMPLES, MOST_SHOWN, SHOWN_TEXTS, check_page, write_report

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
        max_false_alarms=max_false_alarms,
        max_false_share=max_false_share,
        flag_rate=flag_rate,
        seed=seed,
        keep_examples=KEPT_EXAMPLES if report else 0,
        strict=strict,
        progress=terminal.progress_bar,
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
    from strays import terminal
    from strays.persistence import check_target
    from strays.scanning import fit_table
    from strays.tables import open_table

    check_target(model)
    table = open_table(file, format, text_column=text_column)
    fitted, corpus = fit_table(
        table,
        encoder_of(encoder, revision, pooling, normalize, max_length, precision, device),
        detector,
        text_column=text_column,
        label_column=label_column,
        known=known_texts(known, text_column),
        max_false_alarms=max_false_alarms,
        max_false_share=max_false_share,
        flag_rate=flag_rate,
        seed=seed,
        keep_examples=keep_examples,
        cascade=cascade,
        strict=strict,
        progress=terminal.progress_bar,
    )
    fitted.save(model)
    if as_json:
        on = runs_on(fitted).removeprefix(" on ")
        print_json({"model": model, "n_without_text": corpus.n_without_text, "encoder_runs_on": on, **fitted.info()})
        return
    facts = facts_of(fitted)
    terminal.show_facts(facts | {"encoder": facts["encoder"] + runs_on(fitted)}, f"Fitted and saved to {model}")
    say_without_text(corpus.n_without_text)


@stopped_by_sigterm()
def score(
    file: Annotated[str, typer.Argument(help="A file as for scan, or a folder of such files; - is stdin.")],
    model: Model,
    out: Annotated[str, typer.Option(help="File to write, or folder/ for parts; - is stdout.", metavar="PATH")],
    max_false_alarms: MaxFalseAlarms = None,
    max_false_share: MaxFalseShare = None,
    flag_rate: FlagRate = None,
    top: Annotated[int | None, typer.Option(help="Flag this many rows, the highest-scoring ones.", metavar="K")] = None,
    cascade: Annotated[
        bool,
        typer.Option("--cascade", help="Let a cheap head look at every row and the model only at those it could flag."),
    ] = False,
    recall: Recall = None,
    text_column: TextColumn = None,
    device: Device = "auto",
    format: Format = None,
    out_format: OutFormat = None,
    part_rows: Annotated[
        int | None, typer.Option(help="How many rows are scored and kept at a time.", min=1, metavar="N")
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Throw away what an earlier, stopped run has done, and start anew.")
    ] = False,
    engine: Engine = "local",
    address: Address = None,
    safe_cells: SafeCells = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Score a file or a folder of files: every row with anomaly_score, p_value and flagged added."""
    from strays import terminal
    from strays.cascade import RECALL
    from strays.model import TextOutlierDetector
    from strays.scoring import RowProgress, score_files
    from strays.triage import CascadeScorer

    cluster = engine_of(engine, address)
    progress = RowProgress(terminal.progress_bar)
    fitted = TextOutlierDetector.load(model, device=device, progress=progress.within)
    if any(option is not None for option in (max_false_alarms, max_false_share, flag_rate, top)):
        fitted.set_threshold(
            max_false_alarms=max_false_alarms, max_false_share=max_false_share, flag_rate=flag_rate, top=top
        )
    if recall is not None and not cascade:
        raise UsageError("--recall is what --cascade promises; give both or neither")
    scorer = CascadeScorer(fitted, RECALL if recall is None else recall) if cascade else None
    try:
        summary = score_files(
            scorer or fitted,
            file,
            out,
            text_column=text_column,
            format=format,
            out_format=out_format,
            part_rows=part_rows,
            strict=strict,
            safe_cells=safe_cells,
            restart=restart,
            progress=progress,
            engine=cluster,
        )
    except KeyboardInterrupt:
        if "-" not in (file, out):
            terminal.say("stopped; the same command goes on from what is finished")
        raise
    if as_json and out != "-":
        facts = {"out": out, **asdict(summary)}
        n_by_full = facts.pop("n_by_full")
        print_json(facts | ({"cascade": {"n_by_full": n_by_full, **scorer.promise()}} if scorer else {}))
        return
    terminal.say(f"{_score_words(summary, out)}; {summary.n_flagged:,} flagged: {fitted.threshold_}.")
    terminal.say(f"Encoder: {fitted.info()['encoder']['name']}{'' if cluster else runs_on(fitted)}.")
    if scorer:
        terminal.say(f"{summary.n_by_full:,} rows went to the model; {promise_in_words(scorer.promise())}.")
    say_without_text(summary.n_without_text)
    if summary.n_remade:
        terminal.say(
            f"{summary.n_remade:,} parts of the earlier run were gone or cut off, and are made again.", "yellow"
        )
    if summary.ignored:
        listed = ", ".join(summary.ignored[:5]) + (", ..." if len(summary.ignored) > 5 else "")
        terminal.say(f"{len(summary.ignored):,} files of other kinds were left out: {listed}", "yellow")


def explain(
    text: Annotated[str, typer.Argument(help="The text to explain; - reads it from stdin.")],
    model: Model,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Say why a text scores as it does: the words that raise its score, and the known texts it is like."""
    from strays import terminal
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
    from strays import terminal
    from strays.evaluation.tables import evaluate_table
    from strays.model import TextOutlierDetector
    from strays.tables import open_table

    table = open_table(file, format, text_column=text_column)
    with terminal.progress_bar("scoring") as progress:
        fitted = TextOutlierDetector.load(model, device=device, progress=progress)
        result = evaluate_table(fitted, table, label_column, text_column=text_column)
    if as_json:
        print_json(asdict(result))
        return
    terminal.show_facts(result.to_words(), f"{model} on {table.name}")


def _score_words(summary: ScoreSummary, out: str) -> str:
    """What was written where; that as many rows came out as went in was checked before."""
    where = "stdout" if out == "-" else out
    if summary.n_resumed_rows == summary.n_rows and summary.rows_per_second is None and not summary.n_remade:
        words = f"all {summary.n_rows:,} rows were in {where} already"
    else:
        words = f"{summary.n_rows:,} rows to {where}"
    if summary.n_parts > 1 or summary.n_files > 1:
        words += f", {summary.n_parts:,} parts of {summary.n_files:,} files, checked: as many rows out as in"
    if 0 < summary.n_resumed_rows < summary.n_rows:
        words += f", {summary.n_resumed_rows:,} of them scored before"
    return words + (f" ({summary.rows_per_second:,.0f} rows/s)" if summary.rows_per_second else "")
