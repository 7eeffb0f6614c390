"""strays fit: fit a model on a file and save it."""

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
    KeepExamples,
    Known,
    LabelColumn,
    MaxFalseAlarms,
    MaxFalseShare,
    MaxLength,
    Model,
    Normalize,
    Pooling,
    Precision,
    Revision,
    Seed,
    Strict,
    TextColumn,
)
from strays.apps.cli.resolve import encoder_of, known_texts, rules_of
from strays.apps.cli.words import facts_of, runs_on


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
        bool, typer.Option("--cascade", help="Also fit a cheap first stage, for `strays score --cascade`.")
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
        terminal.print_json(
            {"model": model, "n_without_text": corpus.n_without_text, "encoder_runs_on": on, **fitted.info()}
        )
        return
    facts = facts_of(fitted)
    terminal.show_facts(facts | {"encoder": facts["encoder"] + runs_on(fitted)}, f"Fitted and saved to {model}")
    terminal.say_without_text(corpus.n_without_text)
