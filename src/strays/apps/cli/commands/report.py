"""strays report: one page about a file."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import Option

from strays.apps.cli import options as opt
from strays.errors import UsageError


def report(
    file: opt.File,
    *,
    out: Annotated[str, Option(help="HTML page to write; - writes to stdout.", metavar="PAGE")],
    model: Annotated[
        str | None, Option(help="Folder of a model to score with. Default: fit one on FILE.", metavar="DIR")
    ] = None,
    known: opt.Known = None,
    text_column: opt.TextColumn = None,
    id_column: opt.IdColumn = None,
    labels: opt.LabelOptions,
    top: Annotated[
        int, Option(help="Number of texts to show and explain, oddest first, alike ones as one.", min=0, max=1000)
    ] = 50,
    title: Annotated[str | None, Option(help="Title of the page.")] = None,
    flagging: opt.FlaggingRules,
    encoder: Annotated[str | None, Option(help="As in scan; not with --model.")] = None,
    detector: Annotated[str | None, Option(help="As in scan; not with --model.")] = None,
    seed: opt.Seed = 0,
    encoder_options: opt.EncoderOptions,
    precision: opt.Precision = None,
    device: opt.Device = "auto",
    allow_download: opt.AllowDownload = False,
    reading: opt.ReadOptions,
    strict: opt.Strict = False,
    as_json: opt.Json = False,
) -> None:
    """Write a page about a file: its oddest texts explained, a map of all texts, scores, p-values and curves."""
    from strays.apps.cli import terminal
    from strays.encoders import load_encoder
    from strays.jobs.report.report import KEPT_EXAMPLES, Report, check_page
    from strays.jobs.scan import scan_table, scan_with

    rules = flagging.given()
    table, column = opt.opened(file, reading, text_column, (*labels.columns, id_column))
    check_page(out, table.name)
    progress = terminal.progress_bar
    shared: dict[str, Any] = {"text_column": column, "id_column": id_column, "strict": strict}
    shared |= labels.given()
    if model is not None:
        own = opt.given(known=known, encoder=encoder, detector=detector, **vars(encoder_options), precision=precision)
        if own:
            raise UsageError(f"got --model and {opt.named(own)}: a fitted model has its own; omit one of them")
        found = scan_with(opt.loaded_model(model, device, allow_download, rules), table, progress=progress, **shared)
    else:
        found = scan_table(
            table,
            load_encoder(encoder or "default", **vars(encoder_options), precision=precision, device=device),
            detector or "auto",
            known=opt.known_texts(known, text_column),
            seed=seed,
            keep_examples=KEPT_EXAMPLES,
            progress=progress,
            **rules,
            **shared,
        )
    made = Report.of(found, top=top, title=title, random_state=seed, progress=progress)
    with progress("writing"):
        made.write(out)
    if as_json and out != "-":
        typer.echo(made.json())
        return
    facts = made.facts
    terminal.say(f"{facts['n_flagged']:,} of {facts['n_texts']:,} texts flagged: {facts['flagged_are']}.")
    if found.contamination:
        terminal.say(str(found.contamination))
    terminal.say_without_text(facts["n_without_text"])
    if out != "-":
        terminal.say(f"The report is {out}.")
