"""strays scan: fit on a file and show its oddest rows."""

from __future__ import annotations

from typing import Annotated

import typer

from strays.apps.cli.options import (
    DetectorName,
    Device,
    EncoderName,
    File,
    FlagRate,
    Format,
    Json,
    Known,
    LabelColumn,
    MaxFalseAlarms,
    MaxFalseShare,
    MaxLength,
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
from strays.apps.cli.resolve import encoder_of, known_texts, rules_of
from strays.apps.cli.words import runs_on
from strays.errors import UsageError


def scan(
    file: File,
    known: Known = None,
    top: Annotated[int, typer.Option(help="Number of rows to show, oddest first.", min=0)] = 20,
    out: Out = None,
    report: Annotated[
        str | None,
        typer.Option(help="HTML page to write a report to: the oddest texts explained, a map, curves.", metavar="PAGE"),
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
        from strays.jobs.report.report import KEPT_EXAMPLES, MOST_SHOWN, SHOWN_TEXTS, Report, check_page

        if report == "-":
            raise UsageError("--report expects a file; use `strays report --out -` to write the page to stdout")
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
        made = Report.of(found, top=shown, random_state=seed, progress=terminal.progress_bar)
        with terminal.progress_bar("writing"):
            made.write(report)
    if out:
        write_scored(table, out, found.scores, out_format=out_format, safe_cells=safe_cells)
    if out == "-":
        return
    if as_json:
        terminal.print_json(found.to_dict(top))
        return
    facts = found.to_dict(top)
    terminal.show_ranking(
        facts["oddest"], f"The {len(facts['oddest'])} oddest of {facts['n_rows']:,} rows in {table.name}"
    )
    terminal.say(f"{facts['n_flagged']:,} flagged: {facts['flagged_are']}. Detector: {facts['detector']}.")
    terminal.say(f"Encoder: {encoder}{runs_on(found.model)}.")
    terminal.say_without_text(facts["n_without_text"])
    if out:
        terminal.say(f"All rows with their scores are in {out}.")
    if report:
        terminal.say(f"The report is {report}.")
