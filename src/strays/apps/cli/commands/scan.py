"""strays scan: fit on a file and show its oddest rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from strays.apps.cli import options as opt
from strays.errors import UsageError

if TYPE_CHECKING:
    from strays.model.calibration import Threshold


def scan(
    file: opt.File,
    *,
    known: opt.Known = None,
    top: Annotated[
        int, Option(help="Number of rows to show, oddest first, alike ones as one; it flags none.", min=0)
    ] = 20,
    out: Annotated[
        str | None, Option(help="File to write all rows with their scores to; - writes to stdout.", metavar="PATH")
    ] = None,
    report: Annotated[
        str | None,
        Option(help="HTML page to write a report to: the oddest texts explained, a map, curves.", metavar="PAGE"),
    ] = None,
    text_column: opt.TextColumn = None,
    id_column: opt.IdColumn = None,
    labels: opt.LabelOptions,
    flagging: opt.FlaggingRules,
    encoder: opt.EncoderName = "default",
    detector: opt.DetectorName = "auto",
    form: opt.Form = True,
    tune: opt.Tune = False,
    seed: opt.Seed = 0,
    encoder_options: opt.EncoderOptions,
    precision: opt.Precision = None,
    device: opt.Device = "auto",
    reading: opt.ReadOptions,
    out_format: opt.OutFormat = None,
    sort: opt.Sort = False,
    safe_cells: opt.SafeCells = False,
    strict: opt.Strict = False,
    as_json: opt.Json = False,
) -> None:
    """Fit on a file of texts and show its oddest rows."""
    from strays.apps.cli import terminal
    from strays.encoders import load_encoder
    from strays.jobs.scan import scan_table

    if sort and not out:
        raise UsageError("--sort orders the rows of --out; add --out PATH, or omit --sort")
    rules = flagging.given()
    table, column = opt.opened(file, reading, text_column, (*labels.columns, id_column))
    if out:
        from strays.jobs.score import check_output, stream_format, write_scored

        out_format = stream_format(table, out, out_format)
        check_output(table, out, out_format)
    if report:
        from strays.jobs.report.report import KEPT_EXAMPLES, MOST_SHOWN, SHOWN_TEXTS, Report, check_page

        if report == "-":
            raise UsageError("--report expects a file; use `strays report --out -` to write the page to stdout")
        check_page(report, table.name, besides=out)
    found = scan_table(
        table,
        load_encoder(encoder, **vars(encoder_options), precision=precision, device=device),
        detector,
        form=form,
        tune=tune,
        text_column=column,
        id_column=id_column,
        **labels.given(),
        known=opt.known_texts(known, text_column),
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
        write_scored(table, out, found.scores, out_format=out_format, safe_cells=safe_cells, sort=sort)
    if out == "-":
        return
    facts = found.to_dict(top)
    if as_json:
        terminal.print_json(facts)
        return
    oddest = facts["oddest"]
    terminal.show_ranking(
        oddest,
        id_column=facts["id_column"],
        title=_title(oddest, facts["n_rows"], table.name),
    )
    terminal.say(_flags_in_words(found.model.threshold_, facts["n_flagged"], len(found.corpus.rows)))
    terminal.say(f"Detector: {facts['detector']}. Encoder: {encoder}{terminal.runs_on(found.model)}.")
    terminal.say_of_tuning(found.model, found.corpus)
    terminal.say_without_text(facts["n_without_text"])
    if out:
        terminal.say(f"All rows with their scores are in {out}{', oddest first' if sort else ''}.")
    if report:
        terminal.say(f"The report is {report}.")


def _title(oddest: list[dict[str, Any]], n_rows: int, name: str) -> str:
    """What stands above the ranking: rows that are alike are one entry of `oddest`."""
    n_alike = sum(row["n_alike"] for row in oddest)
    alike = ", those alike on one line" if n_alike else ""
    if len(oddest) + n_alike == n_rows > 1:
        return f"All {n_rows:,} rows in {name}, oddest first{alike}"
    return f"The {f'{len(oddest):,} ' if len(oddest) != 1 else ''}oddest of {n_rows:,} rows in {name}{alike}"


def _flags_in_words(used: Threshold, n_flagged: int, n_texts: int) -> str:
    """What the flags of a file that was compared with itself mean: a share of it is flagged whatever is in it."""
    words = f"{n_flagged:,} of {n_texts:,} rows are flagged"
    if used.rule == "max_false_share":
        return f"{words}: {used}."
    if used.rule == "flag_rate":
        meaning = f": the oddest {100 * used.value:.2g} % at most, odd or not; rows with the same score all or none"
    elif n_flagged:
        meaning = f": with this threshold about {100 * used.value:.2g} % of any file is, odd or not"
    else:
        meaning = f"; this threshold flags {used}"
    return (
        f"{words}{meaning}. A file compared with itself cannot tell how many of its rows are odd: read the oddest, "
        "judge some with `strays review`, or `strays fit` on texts that are all normal and `strays score` this file."
    )
