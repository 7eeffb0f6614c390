"""strays review: judge the oddest texts of a file in a browser."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

from strays.apps.cli import options as opt


def review(
    file: Annotated[
        str, Argument(help="A file or folder as for scan, or a project file (.strays); - reads stdin.", metavar="FILE")
    ],
    *,
    project: Annotated[
        str | None, Option(help="Project file for texts and verdicts. Default: FILE.strays.", metavar="FILE")
    ] = None,
    model: Annotated[str | None, Option(help="Folder of a model to start from.", metavar="DIR")] = None,
    known: opt.Known = None,
    text_column: opt.TextColumn = None,
    id_column: opt.IdColumn = None,
    labels: opt.LabelOptions,
    every: Annotated[int, Option(help="Refit the model after this many verdicts.", min=1)] = 5,
    who: Annotated[str | None, Option(help="Your name, saved with your verdicts. Default: your login.")] = None,
    save_model: Annotated[
        str | None, Option(help="Folder to save the model to. Default: FILE.model.", metavar="DIR")
    ] = None,
    port: opt.Port = 0,
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    encoder: Annotated[str | None, Option("--encoder", help="As in scan. Default: the project's, or default.")] = None,
    detector: Annotated[str | None, Option("--detector", help="As in scan. Default: the project's, or auto.")] = None,
    seed: opt.Seed = 0,
    encoder_options: opt.EncoderOptions,
    precision: opt.Precision = None,
    device: opt.Device = "auto",
    allow_download: opt.AllowDownload = False,
    reading: opt.ReadOptions,
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
        desk = open_desk(
            file,
            project=project,
            model=model,
            known=opt.known_texts(known, text_column),
            text_column=text_column,
            id_column=id_column,
            **labels.given(),
            **vars(reading),
            encoder=opt.given(name=encoder, **vars(encoder_options), precision=precision),
            detector=detector,
            device=device,
            allow_download=allow_download,
            seed=seed,
            every=every,
            progress=terminal.progress_bar,
            tell=opt.tell,
        )

        def announce(link: str) -> None:
            typer.echo(link)
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
