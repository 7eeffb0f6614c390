"""strays explain: why a text scores as it does."""

from __future__ import annotations

import sys
from typing import Annotated

from typer import Argument

from strays.apps.cli import options as opt


def explain(
    text: Annotated[str, Argument(help="Text to explain; - reads it from stdin.", metavar="TEXT")],
    model: opt.Model,
    device: opt.Device = "auto",
    allow_download: opt.AllowDownload = False,
    as_json: opt.Json = False,
) -> None:
    """Explain the score of a text: the part that is odd, the words that raise the score, and texts it resembles."""
    from strays.apps.cli import terminal
    from strays.model import TextOutlierDetector

    fitted = TextOutlierDetector.load(model, device=device, allow_download=allow_download)
    explanation = fitted.explain(sys.stdin.read().strip() if text == "-" else text)
    if as_json:
        terminal.print_json(explanation.to_dict())
    else:
        terminal.show_explanation(explanation.to_dict())
