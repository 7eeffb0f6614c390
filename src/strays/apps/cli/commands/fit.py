"""strays fit: fit a model on a file and save it."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from strays.apps.cli import options as opt


def fit(
    file: opt.File,
    model: opt.Model,
    *,
    known: opt.Known = None,
    text_column: opt.TextColumn = None,
    labels: opt.LabelOptions,
    encoder: opt.EncoderName = "default",
    detector: opt.DetectorName = "auto",
    form: opt.Form = True,
    tune: opt.Tune = False,
    seed: opt.Seed = 0,
    keep_examples: Annotated[
        int, Option(help="Texts of each label to keep in the model for explanations; 0 keeps none.", min=0)
    ] = 1000,
    cascade: Annotated[
        bool, Option("--cascade", help="Also fit a cheap first stage, for `strays score --cascade`.")
    ] = False,
    flagging: opt.FlaggingRules,
    encoder_options: opt.EncoderOptions,
    precision: opt.Precision = None,
    device: opt.Device = "auto",
    reading: opt.ReadOptions,
    strict: opt.Strict = False,
    as_json: opt.Json = False,
) -> None:
    """Fit a model on a file of texts and save it."""
    from strays.apps.cli import terminal
    from strays.encoders import load_encoder
    from strays.jobs.scan import fit_table
    from strays.model.folder import check_target

    rules = flagging.given()
    check_target(model)
    table, column = opt.opened(file, reading, text_column, labels.columns)
    fitted, corpus = fit_table(
        table,
        load_encoder(encoder, **vars(encoder_options), precision=precision, device=device),
        detector,
        form=form,
        tune=tune,
        text_column=column,
        **labels.given(),
        known=opt.known_texts(known, text_column),
        seed=seed,
        keep_examples=keep_examples,
        cascade=cascade,
        strict=strict,
        progress=terminal.progress_bar,
        **rules,
    )
    fitted.save(model)
    runs_on = terminal.runs_on(fitted)
    if as_json:
        facts = {
            "model": model,
            "n_without_text": corpus.n_without_text,
            "encoder_runs_on": runs_on.removeprefix(" on "),
        }
        terminal.print_json(facts | fitted.info())
        return
    words = terminal.facts_of(fitted)
    terminal.show_facts(words | {"encoder": words["encoder"] + runs_on}, f"Fitted and saved to {model}")
    terminal.say_of_tuning(fitted, corpus)
    terminal.say_without_text(corpus.n_without_text)
