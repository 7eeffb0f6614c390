"""The commands. Each one reads options, calls one job, and shows what came of it; the jobs live elsewhere."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from strays import __version__
from strays.detectors import DETECTORS
from strays.errors import StraysError, StraysWarning, UsageError

if TYPE_CHECKING:
    from strays.encoders import LoadedEncoder
    from strays.model import TextOutlierDetector
    from strays.scoring import ScoreSummary

app = typer.Typer(
    name="strays",
    help="Find the texts that do not belong. Scores point up: higher is odder.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)

cache = typer.Typer(
    name="cache",
    help="What is kept on disk so that no text is encoded twice: show it, or remove it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(cache)

File = Annotated[str, typer.Argument(help="csv, tsv, jsonl, parquet or txt (one text a line), also .gz; - is stdin.")]
Model = Annotated[str, typer.Option("--model", help="Folder of the model.", metavar="DIR")]
TextColumn = Annotated[
    str | None, typer.Option(help="Column with the texts; found by itself where only one can be it.")
]
LabelColumn = Annotated[str | None, typer.Option(help="Column with the labels: normal, anomaly, or empty.")]
Known = Annotated[str | None, typer.Option(help="File of texts known to be anomalies.", metavar="FILE")]
Format = Annotated[str | None, typer.Option(help="Format of FILE, where its name does not tell it.")]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse rows without a text instead of passing them through.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Out = Annotated[
    str | None, typer.Option(help="File to write all rows and their scores to; - is stdout.", metavar="PATH")
]
OutFormat = Annotated[str | None, typer.Option(help="Format of the output, where its name does not tell it.")]
SafeCells = Annotated[
    bool, typer.Option("--safe-cells", help="In csv and tsv, disarm cells that a spreadsheet would run as formulas.")
]
EncoderName = Annotated[
    str, typer.Option("--encoder", help="default, fast, bert, a Hugging Face id, or a folder; see strays encoders.")
]
KeepExamples = Annotated[
    int, typer.Option(help="Texts of each kind to keep in the model, for explanations; 0 keeps none.", min=0)
]
Revision = Annotated[str | None, typer.Option(help="Commit or tag of the encoder on the hub.")]
Pooling = Annotated[str | None, typer.Option(help="mean or cls; what the encoder's files say where not given.")]
Normalize = Annotated[
    bool | None,
    typer.Option(
        "--normalize/--no-normalize", help="Scale embeddings to length 1, or not; as the encoder's files say."
    ),
]
MaxLength = Annotated[int | None, typer.Option(help="Longest text in tokens; longer ones are cut.")]
Precision = Annotated[
    str | None, typer.Option(help="full or int8; int8 on a CPU where it is close enough to the exact embeddings.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")]
DetectorName = Annotated[
    str,
    typer.Option("--detector", help=f"{', '.join(DETECTORS)}."),
]
Recall = Annotated[
    float | None,
    typer.Option(help="With --cascade: the share of what the model would flag that it must get to see.", metavar="R"),
]
Seed = Annotated[int, typer.Option(help="Seed of everything random.", min=0)]
MaxFalseAlarms = Annotated[
    float | None, typer.Option(help="Flag so that at most this share of normal texts is flagged.", metavar="SHARE")
]
MaxFalseShare = Annotated[
    float | None,
    typer.Option(help="Flag as many rows as leave at most this share of the flagged ones normal.", metavar="SHARE"),
]
FlagRate = Annotated[
    float | None, typer.Option(help="Flag this share of texts like those the model was fitted on.", metavar="SHARE")
]


@app.callback(invoke_without_command=True)
def _version(
    show: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    if show:
        typer.echo(f"strays {__version__}")
        raise typer.Exit


@app.command()
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
        from strays.report.job import KEPT_EXAMPLES, SHOWN_TEXTS, check_page, write_report

        check_page(report, table.name, besides=out)
    found = scan_table(
        table,
        _encoder(encoder, revision, pooling, normalize, max_length, precision, device),
        detector,
        text_column=text_column,
        label_column=label_column,
        known=_known_texts(known, text_column),
        max_false_alarms=max_false_alarms,
        max_false_share=max_false_share,
        flag_rate=flag_rate,
        seed=seed,
        keep_examples=KEPT_EXAMPLES if report else 0,
        strict=strict,
        progress=terminal.progress_bar,
    )
    if report:
        shown = max(top, SHOWN_TEXTS)
        write_report(found, report, fitted_here=True, top=shown, random_state=seed, progress=terminal.progress_bar)
    if out:
        write_scored(table, out, found.scores, out_format=out_format, safe_cells=safe_cells)
    if out == "-":
        return
    if as_json:
        _print_json(found.to_dict(top))
        return
    facts = found.to_dict(top)
    terminal.show_ranking(
        facts["oddest"], f"The {len(facts['oddest'])} oddest of {facts['n_rows']:,} rows in {table.name}"
    )
    terminal.say(f"{facts['n_flagged']:,} flagged: {facts['flagged_are']}. Detector: {facts['detector']}.")
    terminal.say(f"Encoder: {encoder}{_runs_on(found.model)}.")
    _say_without_text(facts["n_without_text"])
    if out:
        terminal.say(f"All rows with their scores are in {out}.")
    if report:
        terminal.say(f"The report is {report}.")


@app.command()
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
        _encoder(encoder, revision, pooling, normalize, max_length, precision, device),
        detector,
        text_column=text_column,
        label_column=label_column,
        known=_known_texts(known, text_column),
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
        runs_on = _runs_on(fitted).removeprefix(" on ")
        _print_json(
            {"model": model, "n_without_text": corpus.n_without_text, "encoder_runs_on": runs_on, **fitted.info()}
        )
        return
    facts = _facts(fitted)
    terminal.show_facts(facts | {"encoder": facts["encoder"] + _runs_on(fitted)}, f"Fitted and saved to {model}")
    _say_without_text(corpus.n_without_text)


@app.command()
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
        )
    except KeyboardInterrupt:
        if "-" not in (file, out):
            terminal.say("stopped; the same command goes on from what is finished")
        raise
    if as_json and out != "-":
        facts = {"out": out, **asdict(summary)}
        n_by_full = facts.pop("n_by_full")
        _print_json(facts | ({"cascade": {"n_by_full": n_by_full, **scorer.promise()}} if scorer else {}))
        return
    terminal.say(f"{_score_words(summary, out)}; {summary.n_flagged:,} flagged: {fitted.threshold_}.")
    terminal.say(f"Encoder: {fitted.info()['encoder']['name']}{_runs_on(fitted)}.")
    if scorer:
        terminal.say(f"{summary.n_by_full:,} rows went to the model; {_promise(scorer.promise())}.")
    _say_without_text(summary.n_without_text)
    if summary.n_remade:
        terminal.say(
            f"{summary.n_remade:,} parts of the earlier run were gone or cut off, and are made again.", "yellow"
        )
    if summary.ignored:
        listed = ", ".join(summary.ignored[:5]) + (", ..." if len(summary.ignored) > 5 else "")
        terminal.say(f"{len(summary.ignored):,} files of other kinds were left out: {listed}", "yellow")


@app.command()
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
        _print_json(explanation.to_dict())
        return
    terminal.show_explanation(explanation.to_dict())


@app.command()
def report(
    file: File,
    out: Annotated[str, typer.Option(help="HTML page to write; - is stdout.", metavar="PAGE")],
    model: Annotated[
        str | None, typer.Option(help="Folder of a model to score with; else one is fitted on FILE.", metavar="DIR")
    ] = None,
    known: Known = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    top: Annotated[int, typer.Option(help="How many of the oddest texts to show and explain.", min=0, max=1000)] = 50,
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
    """Write a page about a file: its oddest texts explained, a map of all, scores and p-values, curves."""
    from strays import terminal
    from strays.report.job import KEPT_EXAMPLES, check_page, judge_table, without_map, write_report
    from strays.scanning import scan_table
    from strays.tables import open_table

    table = open_table(file, format, text_column=text_column)
    check_page(out, table.name)
    rules = {"max_false_alarms": max_false_alarms, "max_false_share": max_false_share, "flag_rate": flag_rate}
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
        _refuse_beside_a_model({name: value for name, value in fitting.items() if value is not None})
        found = judge_table(_loaded(model, device, rules), table, **shared)
    else:
        found = scan_table(
            table,
            _encoder(encoder or "default", revision, pooling, normalize, max_length, precision, device),
            detector or "auto",
            known=_known_texts(known, text_column),
            seed=seed,
            keep_examples=KEPT_EXAMPLES,
            **rules,
            **shared,
        )
    facts = write_report(
        found,
        out,
        fitted_here=model is None,
        top=top,
        title=title,
        random_state=seed,
        progress=terminal.progress_bar,
    )
    if as_json and out != "-":
        _print_json(without_map(facts))
        return
    terminal.say(f"{facts['n_flagged']:,} of {facts['n_texts']:,} texts flagged: {facts['flagged_are']}.")
    _say_without_text(facts["n_without_text"])
    if out != "-":
        terminal.say(f"The report is {out}.")


@app.command()
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
        _print_json(asdict(result))
        return
    terminal.show_facts(result.to_words(), f"{model} on {table.name}")


@app.command()
def study(
    names: Annotated[
        list[str] | None, typer.Argument(help="Studies to run, or all; see --list.", metavar="STUDY...")
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Name the studies and exit.")] = False,
    data: Annotated[
        str | None,
        typer.Option(help="Folder with the corpora; else the environment variable STRAYS_DATA.", metavar="DIR"),
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Make corpora that DIR lacks from their public originals.")
    ] = False,
    out: Annotated[
        str, typer.Option(help="Folder for the rows of results; finished rows are kept.", metavar="DIR")
    ] = "study",
    page: Annotated[
        str | None, typer.Option(help="Markdown page to write, with figures beside it, from the rows.", metavar="FILE")
    ] = None,
    runs: Annotated[int, typer.Option(help="Runs, each with its own seed; not of case studies and tuning.", min=1)] = 5,
    encoder: EncoderName = "default",
    revision: Revision = None,
    pooling: Pooling = None,
    normalize: Normalize = None,
    max_length: MaxLength = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Run the paper's experiments again: rows of results, tables beside the printed ones, a page with figures."""
    from strays import terminal
    from strays.evaluation.paper import run

    if listing:
        titles = run.titles()
        _print_json(titles) if as_json else terminal.show_facts(titles, "Studies")
        return
    try:
        tables = run.run_studies(
            names or [],
            out=out,
            data=data,
            encoder=_encoder(encoder, revision, pooling, normalize, max_length, "full", device),
            runs=runs,
            download=download,
            page=page,
            progress=terminal.progress_bar,
        )
    except KeyboardInterrupt:
        terminal.say(f"stopped; finished rows are kept in {out}, and the same command goes on from there")
        raise
    if as_json:
        _print_json({name: [asdict(table) for table in found] for name, found in tables.items()})
        return
    for name, found in tables.items():
        for table in found:
            terminal.show_table(table.header, table.rows, f"{name}: {table.title}")
    if names:
        terminal.say(f"The rows are in {out}.")
    if page:
        terminal.say(f"The page is {page}.")


@app.command()
def review(
    file: Annotated[str, typer.Argument(help="A file as for scan, or a project (.strays) of one; - is stdin.")],
    project: Annotated[
        str | None, typer.Option(help="File for texts and verdicts; FILE.strays where not given.", metavar="FILE")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Folder of a model to start from.", metavar="DIR")] = None,
    known: Known = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    every: Annotated[int, typer.Option(help="Verdicts after which the model learns from them.", min=1)] = 5,
    who: Annotated[str | None, typer.Option(help="Your name beside your verdicts; else your login.")] = None,
    save_model: Annotated[
        str | None, typer.Option(help="Folder for the model that the page saves; else FILE.model.", metavar="DIR")
    ] = None,
    port: Annotated[int, typer.Option(help="Port of the page; 0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser, or not.")] = True,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="As for scan; the project's, or default, where not given.")
    ] = None,
    detector: Annotated[
        str | None, typer.Option("--detector", help="As for scan; the project's, or auto, where not given.")
    ] = None,
    seed: Seed = 0,
    revision: Revision = None,
    pooling: Pooling = None,
    normalize: Normalize = None,
    max_length: MaxLength = None,
    precision: Precision = None,
    device: Device = "auto",
    format: Format = None,
) -> None:
    """Judge the oddest texts of a file in a browser, while the model learns from what you say."""
    from strays import terminal
    from strays.persistence import check_target
    from strays.review.opening import open_desk
    from strays.review.serve import bind, require_extra, serve

    require_extra()
    if save_model:
        check_target(save_model)
    with bind(port) as bound:
        asked = {
            "name": encoder,
            "revision": revision,
            "pooling": pooling,
            "normalize": normalize,
            "max_length": max_length,
            "precision": precision,
        }
        desk = open_desk(
            file,
            project=project,
            model=model,
            known=_known_texts(known, text_column),
            text_column=text_column,
            label_column=label_column,
            format=format,
            encoder={name: value for name, value in asked.items() if value is not None},
            detector=detector,
            device=device,
            seed=seed,
            every=every,
            progress=terminal.progress_bar,
        )

        def announce(link: str) -> None:
            typer.echo(link)
            sys.stdout.flush()
            terminal.say(f"Verdicts are kept in {desk.store.path}. Stop with Ctrl-C.")
            if browser:
                _open_browser(link)

        model_folder = save_model or f"{desk.store.path.with_suffix('')}.model"
        serve(desk, bound, who=who or _login(), model_folder=model_folder, announce=announce)


@app.command()
def encoders(as_json: Json = False) -> None:
    """List the encoders that have names, and say how to use others."""
    from strays import terminal
    from strays.encoders.sources import NAMED, bundled_folder

    there = bundled_folder() is not None
    rows = {
        name: {
            "about": known.about,
            "hub_id": known.repo,
            "revision": known.revision,
            "offline": name in ("default", "fast") and there,
        }
        for name, known in NAMED.items()
    }
    if as_json:
        _print_json(rows)
        return
    facts = {
        name: f"{row['about']} ({'installed' if row['offline'] else 'fetched from the hub on first use'})"
        for name, row in rows.items()
    }
    terminal.show_facts(
        facts | {"org/name": "any Hugging Face model, at --revision", "folder": "any model saved on disk"},
        "Encoders for --encoder",
    )


@app.command()
def info(model: Annotated[str, typer.Argument(help="Folder of the model.")], as_json: Json = False) -> None:
    """Say what a saved model is: encoder, detector, what it was fitted on, what it flags."""
    from strays import terminal
    from strays.model import TextOutlierDetector

    fitted = TextOutlierDetector.load(model)
    if as_json:
        _print_json({"model": model, **fitted.info()})
        return
    terminal.show_facts(_facts(fitted), model)


@cache.command("info")
def cache_info(as_json: Json = False) -> None:
    """Say where the cache is, how large it is and may grow, and what it holds."""
    from strays import terminal
    from strays.cache import EmbeddingCache

    found = EmbeddingCache().info()
    if as_json:
        _print_json(found.to_dict())
        return
    terminal.show_facts(found.to_words(), str(found.folder))


@cache.command("clear")
def cache_clear(as_json: Json = False) -> None:
    """Remove all that is kept; the next job encodes its texts again."""
    from strays import terminal
    from strays.cache import cache_folder, clear, size_in_words

    freed = clear()
    if as_json:
        _print_json({"folder": str(cache_folder()), "bytes_freed": freed})
        return
    terminal.say(f"{size_in_words(freed)} freed in {cache_folder()}.")


def _encoder(
    name: str,
    revision: str | None,
    pooling: str | None,
    normalize: bool | None,
    max_length: int | None,
    precision: str | None,
    device: str,
) -> LoadedEncoder:
    from strays.encoders import load_encoder

    return load_encoder(
        name,
        revision=revision,
        pooling=pooling,
        normalize=normalize,
        max_length=max_length,
        precision=precision,
        device=device,
    )


def _loaded(model: str, device: str, rules: dict[str, Any]) -> TextOutlierDetector:
    """A saved model, with the threshold that is asked for, if any."""
    from strays.model import TextOutlierDetector

    fitted = TextOutlierDetector.load(model, device=device)
    return fitted.set_threshold(**rules) if any(rule is not None for rule in rules.values()) else fitted


def _refuse_beside_a_model(options: dict[str, Any]) -> None:
    if options:
        given = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise UsageError(f"got --model and {given}: a fitted model has its own; leave one of them away")


def _known_texts(known: str | None, text_column: str | None) -> list[str]:
    from strays.corpus import read_texts
    from strays.tables import open_table

    if known is None:
        return []
    table = open_table(known, text_column=text_column)
    asked = text_column if text_column in table.columns else None
    return read_texts(table, table.text_column(asked))


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


def _facts(fitted: TextOutlierDetector) -> dict[str, str]:
    facts = fitted.info()
    fitted_on = facts["fitted_on"]
    return {
        "encoder": f"{facts['encoder']['name']}",
        "detector": f"{facts['detector']['name']}: {facts['detector']['says']}",
        "fitted on": f"{fitted_on['n_texts']:,} texts: {fitted_on['n_normal']:,} normal, {fitted_on['n_anomaly']:,} "
        f"anomalies, {fitted_on['n_unlabelled']:,} unlabelled",
        "held out": f"{fitted_on['n_held_out']:,} normal or unlabelled texts"
        + (f", in {fitted_on['n_folds']} turns" if fitted_on["n_folds"] else "")
        + f", for p-values down to {facts['lowest_p_value']:.2g}",
        "flags": facts["flags"],
    } | ({"cascade": _promise(facts["cascade"])} if facts["cascade"] else {})


def _runs_on(fitted: TextOutlierDetector) -> str:
    """What runs the encoder, in words to put behind its name; nothing for encoders of other people."""
    found = getattr(fitted.encoder_, "runs_on", None)
    return f" on {found}" if found else ""


def _promise(cut: dict[str, Any]) -> str:
    return (
        f"{cut['expected_share']:.1%} of such texts, among them {cut['recall']:.3g} of those it would flag, as told by "
        f"{cut['n_held_out']:,} held-out texts"
    )


def _say_without_text(n: int) -> None:
    from strays import terminal

    if n:
        terminal.say(f"{n:,} rows without a text passed through unscored.", "yellow")


def _login() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # nobody has this number
        return ""


def _open_browser(link: str) -> None:
    """In a thread: some browsers do not give the terminal back before they are closed."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def main(argv: list[str] | None = None) -> NoReturn:
    """Run a command and exit: 0, 1 (could not do it) or 2 (called wrongly)."""
    from strays import terminal

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        terminal.say(f"warning: {message}", "yellow")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", StraysWarning)
        warnings.showwarning = show
        try:
            app(args=argv, prog_name="strays")
        except StraysError as error:
            terminal.say(f"error: {error}", "red")
            sys.exit(2 if isinstance(error, UsageError) else 1)
        except BrokenPipeError:
            sys.stderr.close()  # whoever read our output has gone; there is nobody to tell
            sys.exit(1)
        except OSError as error:
            terminal.say(f"error: could not read or write ({error})", "red")
            sys.exit(1)
        except KeyboardInterrupt:
            terminal.say("stopped")
            sys.exit(130)
    sys.exit(0)
