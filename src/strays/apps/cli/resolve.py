"""From options to what they name: encoders, engines, models, rules for flagging, known texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strays.errors import UsageError

if TYPE_CHECKING:
    from strays.encoders import LoadedEncoder
    from strays.jobs.score import Engine
    from strays.model import TextOutlierDetector


def option(parameter: str) -> str:
    """What the command line calls a parameter."""
    return f"--{parameter.replace('_', '-')}"


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


def engine_of(name: str, address: str | None) -> Engine:
    """What scores: this process or a cluster."""
    if name not in ("local", "ray"):
        raise UsageError(f"no such engine: {name!r}; expected local or ray")
    if name == "local":
        if address is not None:
            raise UsageError("--address works only with --engine ray; add --engine ray, or omit --address")
        from strays.engines.local import LocalEngine

        return LocalEngine()
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
        raise UsageError(f"got --model and {given}: a fitted model has its own; omit one of them")


def known_texts(known: str | None, text_column: str | None) -> list[str]:
    """The texts of the file of known anomalies, if there is one."""
    from strays.jobs.corpus import read_texts
    from strays.tables import open_table

    if known is None:
        return []
    table = open_table(known, text_column=text_column)
    asked = text_column if text_column in table.columns else None
    return read_texts(table, table.text_column(asked))
