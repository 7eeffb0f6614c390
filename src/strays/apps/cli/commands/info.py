"""strays info: what a saved model is."""

from __future__ import annotations

from typing import Annotated

import typer

from strays.apps.cli.options import Json
from strays.apps.cli.words import facts_of


def info(
    model: Annotated[str, typer.Argument(help="Folder of the model.", metavar="DIR")], as_json: Json = False
) -> None:
    """Describe a saved model: its encoder and detector, what it was fitted on, what it flags."""
    from strays.apps.cli import terminal
    from strays.model import TextOutlierDetector

    fitted = TextOutlierDetector.load(model)
    if as_json:
        terminal.print_json({"model": model, **fitted.info()})
        return
    terminal.show_facts(facts_of(fitted), model)
