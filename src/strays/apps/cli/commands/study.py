"""strays study: run the paper's experiments again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from typer import Argument, Option

from strays.apps.cli import options as opt


def study(
    names: Annotated[
        list[str] | None, Argument(help="Studies to run, or all; --list shows them.", metavar="STUDY...")
    ] = None,
    *,
    listing: Annotated[bool, Option("--list", help="List the studies and exit.")] = False,
    data: Annotated[
        str | None,
        Option(help="Folder with the corpora. Default: the environment variable STRAYS_DATA.", metavar="DIR"),
    ] = None,
    download: Annotated[
        bool, Option("--download", help="Download the public originals of missing corpora and convert them.")
    ] = False,
    out: Annotated[
        str, Option(help="Folder for the rows of results; finished rows are not computed again.", metavar="DIR")
    ] = "study",
    page: Annotated[
        str | None, Option(help="Markdown page to write, with figures beside it, from the rows.", metavar="FILE")
    ] = None,
    runs: Annotated[
        int, Option(help="Number of runs, each with its own draw; case studies and tuning ignore it.", min=1)
    ] = 5,
    trainings: Annotated[
        int, Option(help="How often a run trains each method that has a seed; its row is the mean.", min=1)
    ] = 5,
    encoder: opt.EncoderName = "default",
    encoder_options: opt.EncoderOptions,
    device: opt.Device = "auto",
    as_json: opt.Json = False,
) -> None:
    """Run the paper's experiments again: rows of results, tables beside the printed ones, a page with figures."""
    from strays.apps.cli import terminal
    from strays.encoders import load_encoder
    from strays.studies.paper.registry import titles
    from strays.studies.paper.run import run_studies

    if listing:
        terminal.print_json(titles()) if as_json else terminal.show_facts(titles(), "Studies")
        return
    try:
        tables = run_studies(
            names or [],
            out=out,
            data=data,
            encoder=load_encoder(encoder, **vars(encoder_options), precision="full", device=device),
            runs=runs,
            trainings=trainings,
            download=download,
            page=page,
            progress=terminal.progress_bar,
            say=terminal.say,
        )
    except KeyboardInterrupt:
        terminal.say(f"interrupted; finished rows are in {out}, run the same command again to resume")
        raise
    if as_json:
        terminal.print_json({name: [asdict(table) for table in found] for name, found in tables.items()})
        return
    for name, found in tables.items():
        for table in found:
            terminal.show_table(table.header, table.rows, f"{name}: {table.title}")
    if names:
        terminal.say(f"The rows are in {out}.")
    if page:
        terminal.say(f"The page is {page}.")
