"""strays info: what a saved model is."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from strays.apps.cli import options as opt


def info(
    model: Annotated[str, Argument(help="Folder of the model.", metavar="DIR")], as_json: opt.Json = False
) -> None:
    """Describe a saved model: its encoder and detector, what it was fitted on, what it flags."""
    from strays.apps.cli import terminal
    from strays.model import TextOutlierDetector

    fitted = TextOutlierDetector.load(model)
    if as_json:
        terminal.print_json({"model": model, **fitted.info()})
    else:
        terminal.show_facts(terminal.facts_of(fitted), model)
