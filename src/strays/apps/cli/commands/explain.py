"""strays explain: why a text scores as it does."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from strays.apps.cli.options import Device, Json, Model


def explain(
    text: Annotated[str, typer.Argument(help="The text to explain; - reads it from stdin.")],
    model: Model,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Say why a text scores as it does: the words that raise its score, and the known texts it is like."""
    from strays.apps.cli import terminal
    from strays.model import TextOutlierDetector

    fitted = TextOutlierDetector.load(model, device=device)
    explanation = fitted.explain(sys.stdin.read().strip() if text == "-" else text)
    if as_json:
        terminal.print_json(explanation.to_dict())
        return
    terminal.show_explanation(explanation.to_dict())
