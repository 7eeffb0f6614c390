"""strays review: judge the oddest texts of a file in a browser."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from strays.apps.cli.options import (
    Device,
    Format,
    Known,
    LabelColumn,
    MaxLength,
    Normalize,
    Pooling,
    Precision,
    Revision,
    Seed,
    TextColumn,
)
from strays.apps.cli.resolve import known_texts


def review(
    file: Annotated[
        str, typer.Argument(help="A file as for scan, or a project file (.strays); - reads stdin.", metavar="FILE")
    ],
    project: Annotated[
        str | None, typer.Option(help="Project file for texts and verdicts. Default: FILE.strays.", metavar="FILE")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Folder of a model to start from.", metavar="DIR")] = None,
    known: Known = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    every: Annotated[int, typer.Option(help="Refit the model after this many verdicts.", min=1)] = 5,
    who: Annotated[str | None, typer.Option(help="Your name, saved with your verdicts. Default: your login.")] = None,
    save_model: Annotated[
        str | None, typer.Option(help="Folder to save the model to. Default: FILE.model.", metavar="DIR")
    ] = None,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="As in scan. Default: the project's, or default.")
    ] = None,
    detector: Annotated[
        str | None, typer.Option("--detector", help="As in scan. Default: the project's, or auto.")
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
    """Judge the oddest texts of a file in a browser while the model learns from your verdicts."""
    from strays.apps.cli import terminal
    from strays.apps.review.open_project import last_port, open_desk
    from strays.apps.review.serve import serve
    from strays.apps.web.sockets import bind, require_extra
    from strays.model.folder import check_target

    require_extra("the desk", "review", "fastapi", "uvicorn")
    if save_model:
        check_target(save_model)
    with bind(port, before=last_port(file, project)) as bound:
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
            known=known_texts(known, text_column),
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
            terminal.say(f"Verdicts are saved in {desk.store.path}. Stop with Ctrl-C.")
            if browser:
                _open_browser(link)

        model_folder = save_model or f"{desk.store.path.with_suffix('')}.model"
        serve(desk, bound, who=who or _login(), model_folder=model_folder, announce=announce)


def _login() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # nobody has this number
        return ""


def _open_browser(link: str) -> None:
    """Open it from a thread: some browsers return only when they are closed."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
