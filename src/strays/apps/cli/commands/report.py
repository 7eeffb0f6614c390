"""strays report: one page about a file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from strays.apps.cli.options import (
    Device,
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
    Pooling,
    Precision,
    Revision,
    Seed,
    Strict,
    TextColumn,
)
from strays.apps.cli.resolve import encoder_of, known_texts, loaded_model, refuse_beside_a_model, rules_of


def report(
    file: File,
    out: Annotated[str, typer.Option(help="HTML page to write; - writes to stdout.", metavar="PAGE")],
    model: Annotated[
        str | None, typer.Option(help="Folder of a model to score with. Default: fit one on FILE.", metavar="DIR")
    ] = None,
    known: Known = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    top: Annotated[int, typer.Option(help="Number of texts to show and explain, oddest first.", min=0, max=1000)] = 50,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    max_false_alarms: MaxFalseAlarms = None,
    max_false_share: MaxFalseShare = None,
    flag_rate: FlagRate = None,
    encoder: Annotated[str | None, typer.Option(help="As in scan; not with --model.")] = None,
    detector: Annotated[str | None, typer.Option(help="As in scan; not with --model.")] = None,
    seed: Seed = 0,
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
    """Write a page about a file: its oddest texts explained, a map of all texts, scores, p-values and curves."""
    from strays.apps.cli import terminal
    from strays.jobs.report.report import KEPT_EXAMPLES, Report, check_page
    from strays.jobs.scan import scan_table, scan_with
    from strays.tables import open_table

    rules = rules_of(max_false_alarms=max_false_alarms, max_false_share=max_false_share, flag_rate=flag_rate)
    table = open_table(file, format, text_column=text_column)
    check_page(out, table.name)
    shared: dict[str, Any] = {
        "text_column": text_column,
        "label_column": label_column,
        "strict": strict,
        "progress": terminal.progress_bar,
    }
    if model is not None:
        fitting: dict[str, Any] = {
            "known": known,
            "encoder": encoder,
            "detector": detector,
            "revision": revision,
            "pooling": pooling,
        }
        fitting |= {"normalize": normalize, "max_length": max_length, "precision": precision}
        refuse_beside_a_model({name: value for name, value in fitting.items() if value is not None})
        found = scan_with(loaded_model(model, device, rules), table, **shared)
    else:
        found = scan_table(
            table,
            encoder_of(encoder or "default", revision, pooling, normalize, max_length, precision, device),
            detector or "auto",
            known=known_texts(known, text_column),
            seed=seed,
            keep_examples=KEPT_EXAMPLES,
            **rules,
            **shared,
        )
    made = Report.of(found, top=top, title=title, random_state=seed, progress=terminal.progress_bar)
    with terminal.progress_bar("writing"):
        made.write(out)
    if as_json and out != "-":
        typer.echo(made.json())
        return
    facts = made.facts
    terminal.say(f"{facts['n_flagged']:,} of {facts['n_texts']:,} texts flagged: {facts['flagged_are']}.")
    terminal.say_without_text(facts["n_without_text"])
    if out != "-":
        terminal.say(f"The report is {out}.")
