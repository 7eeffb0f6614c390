"""What several commands do: read what options name, and say what came of it."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from strays.errors import UsageError

if TYPE_CHECKING:
    from strays.encoders import LoadedEncoder
    from strays.jobs.score import Engine
    from strays.model import TextOutlierDetector


def option(parameter: str) -> str:
    """What the command line calls a parameter."""
    return f"--{parameter.replace('_', '-')}"


def in_options(message: str, options: Container[str]) -> str:
    """A message about parameters in the names of the options: `flag_rate is 2; ...` as `--flag-rate is 2; ...`.

    A name without an underscore could be any word, and counts only where the message begins with it.
    """
    names = r"(?<!\S)\w+_\w+(?=[\s,;=]|$)|^\w+(?= is |=| looks at )"
    return re.sub(names, lambda name: option(name[0]) if option(name[0]) in options else name[0], message)


def rules_of(**asked: float | None) -> dict[str, Any]:
    """The rule for flagging that options ask for, if any; what cannot be is refused now rather than after the work."""
    from strays.model.calibration import threshold

    given: dict[str, Any] = {rule: value for rule, value in asked.items() if value is not None}
    if len(given) > 1:
        raise UsageError(
            f"got {' and '.join(map(option, given))}; expected at most one of {', '.join(map(option, asked))}"
        )
    if given:
        threshold(**given)
    return given


def encoder_of(
    name: str,
    revision: str | None,
    pooling: str | None,
    normalize: bool | None,
    max_length: int | None,
    precision: str | None,
    device: str,
) -> LoadedEncoder:
    """The encoder that options name."""
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


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Let SIGTERM stop a job as Ctrl-C does, so that it lets go of all that it holds; then the process ends by it."""
    if threading.current_thread() is not threading.main_thread():  # the only one that may say what signals do
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


def engine_of(name: str, address: str | None) -> Engine | None:
    """Who scores; None is this process."""
    if name not in ("local", "ray"):
        raise UsageError(f"no such engine: {name!r}; expected local or ray")
    if name == "local":
        if address is not None:
            raise UsageError("--address is where a cluster is; give --engine ray with it, or leave it away")
        return None
    from strays.engines.ray import RayEngine

    return RayEngine(address)


def loaded_model(model: str, device: str, rules: dict[str, Any]) -> TextOutlierDetector:
    """A saved model, with the threshold that is asked for, if any."""
    from strays.model import TextOutlierDetector

    fitted = TextOutlierDetector.load(model, device=device)
    return fitted.set_threshold(**rules) if rules else fitted


def refuse_beside_a_model(options: dict[str, Any]) -> None:
    """Raise where options of fitting are given beside a fitted model."""
    if options:
        given = ", ".join(map(option, options))
        raise UsageError(f"got --model and {given}: a fitted model has its own; leave one of them away")


def known_texts(known: str | None, text_column: str | None) -> list[str]:
    """The texts of the file of known anomalies, if there is one."""
    from strays.jobs.corpus import read_texts
    from strays.tables import open_table

    if known is None:
        return []
    table = open_table(known, text_column=text_column)
    asked = text_column if text_column in table.columns else None
    return read_texts(table, table.text_column(asked))


def facts_of(fitted: TextOutlierDetector) -> dict[str, str]:
    """What a model is, in words by heading."""
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
        "version": facts["version"],
    } | ({"cascade": promise_in_words(facts["cascade"])} if facts["cascade"] else {})


def runs_on(fitted: TextOutlierDetector) -> str:
    """What runs the encoder, in words to put behind its name; nothing for encoders of other people."""
    found = getattr(fitted.encoder_, "runs_on", None)
    return f" on {found}" if found else ""


def promise_in_words(cut: dict[str, Any]) -> str:
    """What a cascade promises."""
    return (
        f"{cut['expected_share']:.1%} of such texts, among them {cut['recall']:.3g} of those it would flag, as told by "
        f"{cut['n_held_out']:,} held-out texts"
    )


def say_without_text(n: int) -> None:
    """Say how many rows had no text, where there were any."""
    from strays.apps.cli import terminal

    if n:
        terminal.say(f"{n:,} rows without a text passed through unscored.", "yellow")


def print_json(value: Any) -> None:
    """To stdout, for machines."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
