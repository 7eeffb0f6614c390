"""strays score: score files and folders of any size."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from strays.apps.cli import options as opt
from strays.errors import UsageError

if TYPE_CHECKING:
    from strays.jobs.score import Engine, ScoreSummary
    from strays.model import TextOutlierDetector
    from strays.model.contamination import Contamination


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
    file: Annotated[str, Argument(help="A file or folder as for scan, of any size; - reads stdin.", metavar="FILE")],
    *,
    model: opt.Model,
    out: Annotated[
        str,
        Option(
            help="File to write. A name without extension, or folder/, is a folder with one file per chunk, in the "
            "format of FILE; - writes to stdout.",
            metavar="PATH",
        ),
    ],
    flagging: opt.FlaggingRules,
    top: opt.TopFlagged = None,
    cascade: Annotated[
        bool,
        Option(
            "--cascade",
            help="Score all rows with a cheap first stage, and only those that could be flagged with the model.",
        ),
    ] = False,
    recall: Annotated[
        float | None,
        Option(help="With --cascade: share of the rows the model would flag that must reach it.", metavar="R"),
    ] = None,
    text_column: opt.TextColumn = None,
    device: opt.Device = "auto",
    allow_download: opt.AllowDownload = False,
    reading: opt.ReadOptions,
    out_format: opt.OutFormat = None,
    sort: opt.Sort = False,
    part_rows: Annotated[int | None, Option(help="Rows to score and save at a time.", min=1, metavar="N")] = None,
    restart: Annotated[
        bool, Option("--restart", help="Discard what an earlier, interrupted run has done and start over.")
    ] = False,
    engine: Annotated[str, Option(help="local (this process) or ray (a cluster).")] = "local",
    address: Annotated[
        str | None,
        Option(
            help="With --engine ray: address of the cluster. Default: start one on this machine.", metavar="HOST:PORT"
        ),
    ] = None,
    safe_cells: opt.SafeCells = False,
    strict: opt.Strict = False,
    as_json: opt.Json = False,
) -> None:
    """Score a file or a folder of files: every row with anomaly_score, p_value and flagged added."""
    from strays.apps.cli import terminal
    from strays.jobs.score import RowProgress, score_files
    from strays.model.cascade import RECALL, check_recall
    from strays.model.cascade_scorer import CascadeScorer

    rules, who = flagging.given(top=top), _engine(engine, address)
    if recall is not None and not cascade:
        raise UsageError("--recall works only with --cascade; add --cascade, or omit --recall")
    recall = check_recall(RECALL if recall is None else recall)
    fitted = opt.loaded_model(model, device, allow_download, rules)
    scorer = CascadeScorer(fitted, recall) if cascade else None
    try:
        summary = score_files(
            scorer or fitted,
            file,
            out,
            text_column=text_column,
            **vars(reading),
            out_format=out_format,
            part_rows=part_rows,
            strict=strict,
            safe_cells=safe_cells,
            restart=restart,
            sort=sort,
            progress=RowProgress(terminal.progress_bar),
            engine=who,
            tell=opt.tell,
        )
    except KeyboardInterrupt:
        if "-" not in (file, out):
            terminal.say("interrupted; run the same command again to resume")
        raise
    found = None if scorer else _contamination(fitted, summary)
    if as_json and out != "-":
        facts = {"out": out, **asdict(summary), "beyond_chance": asdict(found) if found else None}
        n_by_full = facts.pop("n_by_full")
        terminal.print_json(facts | ({"cascade": {"n_by_full": n_by_full, **scorer.promise()}} if scorer else {}))
        return
    terminal.say(f"{_score_words(summary, out)}; {summary.n_flagged:,} flagged: {fitted.threshold_}.")
    if found:
        terminal.say(str(found))
    terminal.say(f"Encoder: {fitted.info()['encoder']['name']}{terminal.runs_on(fitted) if engine == 'local' else ''}.")
    if scorer:
        terminal.say(f"{summary.n_by_full:,} rows went to the model; {terminal.promise_in_words(scorer.promise())}.")
    terminal.say_without_text(summary.n_without_text)
    if summary.n_remade:
        remade = f"{summary.n_remade:,} parts of the earlier run were missing or changed and were written again."
        terminal.say(remade, "yellow")
    if summary.ignored:
        listed = ", ".join(summary.ignored[:5]) + (", ..." if len(summary.ignored) > 5 else "")
        terminal.say(f"{len(summary.ignored):,} files of other formats were ignored: {listed}", "yellow")


def _contamination(model: TextOutlierDetector, summary: ScoreSummary) -> Contamination | None:
    """The share of rows that are odd beyond chance, where the flags are those of p-values up to a rate."""
    from strays.model.contamination import estimate_contamination

    if model.threshold_.rule != "max_false_alarms":
        return None
    n, n_held_out = summary.n_rows - summary.n_without_text, len(model.calibration_.normal_scores)
    return estimate_contamination(summary.n_flagged, n, n_held_out, model.threshold_.value)


def _engine(name: str, address: str | None) -> Engine:
    if name not in ("local", "ray"):
        raise UsageError(f"no such engine: {name!r}; expected local or ray")
    if name == "ray":
        from strays.engines.ray import RayEngine

        return RayEngine(address)
    if address is not None:
        raise UsageError("--address works only with --engine ray; add --engine ray, or omit --address")
    from strays.engines.local import LocalEngine

    return LocalEngine()


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
