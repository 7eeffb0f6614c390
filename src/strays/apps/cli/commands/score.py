"""strays score: score files and folders of any size."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from strays.apps.cli.options import (
    Address,
    Device,
    Engine,
    FlagRate,
    Format,
    Json,
    MaxFalseAlarms,
    MaxFalseShare,
    Model,
    OutFormat,
    Recall,
    SafeCells,
    Strict,
    TextColumn,
)
from strays.apps.cli.resolve import engine_of, rules_of
from strays.apps.cli.words import promise_in_words, runs_on
from strays.errors import UsageError

if TYPE_CHECKING:
    from strays.jobs.score import ScoreSummary


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """Let SIGTERM stop a job as Ctrl-C does, so that it releases what it holds; then end the process by it."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield
        return
    told = False

    def stop(*_: object) -> None:
        nonlocal told
        told = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
        if told:
            signal.raise_signal(signal.SIGTERM)


@_stopped_by_sigterm()
def score(
    file: Annotated[
        str, typer.Argument(help="A file as for scan, or a folder of such files; - reads stdin.", metavar="FILE")
    ],
    model: Model,
    out: Annotated[
        str, typer.Option(help="File to write, or folder/ for one file per chunk; - writes to stdout.", metavar="PATH")
    ],
    max_false_alarms: MaxFalseAlarms = None,
    max_false_share: MaxFalseShare = None,
    flag_rate: FlagRate = None,
    top: Annotated[int | None, typer.Option(help="Flag the K highest-scoring rows.", metavar="K")] = None,
    cascade: Annotated[
        bool,
        typer.Option(
            "--cascade",
            help="Score all rows with a cheap first stage, and only those that could be flagged with the model.",
        ),
    ] = False,
    recall: Recall = None,
    text_column: TextColumn = None,
    device: Device = "auto",
    format: Format = None,
    out_format: OutFormat = None,
    part_rows: Annotated[int | None, typer.Option(help="Rows to score and save at a time.", min=1, metavar="N")] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard what an earlier, interrupted run has done and start over.")
    ] = False,
    engine: Engine = "local",
    address: Address = None,
    safe_cells: SafeCells = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Score a file or a folder of files: every row with anomaly_score, p_value and flagged added."""
    from strays.apps.cli import terminal
    from strays.jobs.score import RowProgress, score_files
    from strays.model import TextOutlierDetector
    from strays.model.cascade import RECALL
    from strays.model.cascade_scorer import CascadeScorer

    rules = rules_of(max_false_alarms=max_false_alarms, max_false_share=max_false_share, flag_rate=flag_rate, top=top)
    who = engine_of(engine, address)
    progress = RowProgress(terminal.progress_bar)
    fitted = TextOutlierDetector.load(model, device=device)
    if rules:
        fitted.set_threshold(**rules)
    if recall is not None and not cascade:
        raise UsageError("--recall works only with --cascade; add --cascade, or omit --recall")
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
            engine=who,
        )
    except KeyboardInterrupt:
        if "-" not in (file, out):
            terminal.say("interrupted; run the same command again to resume")
        raise
    if as_json and out != "-":
        facts = {"out": out, **asdict(summary)}
        n_by_full = facts.pop("n_by_full")
        terminal.print_json(facts | ({"cascade": {"n_by_full": n_by_full, **scorer.promise()}} if scorer else {}))
        return
    terminal.say(f"{_score_words(summary, out)}; {summary.n_flagged:,} flagged: {fitted.threshold_}.")
    terminal.say(f"Encoder: {fitted.info()['encoder']['name']}{runs_on(fitted) if engine == 'local' else ''}.")
    if scorer:
        terminal.say(f"{summary.n_by_full:,} rows went to the model; {promise_in_words(scorer.promise())}.")
    terminal.say_without_text(summary.n_without_text)
    if summary.n_remade:
        terminal.say(
            f"{summary.n_remade:,} parts of the earlier run were missing or truncated and were written again.", "yellow"
        )
    if summary.ignored:
        listed = ", ".join(summary.ignored[:5]) + (", ..." if len(summary.ignored) > 5 else "")
        terminal.say(f"{len(summary.ignored):,} files of other formats were ignored: {listed}", "yellow")


def _score_words(summary: ScoreSummary, out: str) -> str:
    """What was written where; the job has checked that as many rows came out as went in."""
    where = "stdout" if out == "-" else out
    if summary.n_resumed_rows == summary.n_rows and summary.rows_per_second is None and not summary.n_remade:
        words = f"all {summary.n_rows:,} rows were in {where} already"
    else:
        words = f"{summary.n_rows:,} rows to {where}"
    if summary.n_parts > 1 or summary.n_files > 1:
        words += f", {summary.n_parts:,} parts of {summary.n_files:,} files; row counts match"
    if 0 < summary.n_resumed_rows < summary.n_rows:
        words += f", {summary.n_resumed_rows:,} of them scored before"
    return words + (f" ({summary.rows_per_second:,.0f} rows/s)" if summary.rows_per_second else "")
