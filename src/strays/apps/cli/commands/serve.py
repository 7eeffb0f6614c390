"""strays serve: score texts over HTTP."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from strays.apps.cli import options as opt
from strays.apps.server.limits import Limits
from strays.errors import UsageError

LIMITS = Limits()
TOKEN = "STRAYS_TOKEN"  # noqa: S105 (where it is, not what it is)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Stop at once on SIGTERM while loading: process 1 of a container ignores signals that it does not handle."""
    before = signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if hangup := getattr(signal, "SIGHUP", None):  # has models looked at, and must not end a server that loads them
        before_hangup = signal.signal(hangup, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if hangup:
            signal.signal(hangup, before_hangup)


@_stoppable()
def serve(
    *,
    model: Annotated[
        list[str], Option("--model", help="Folder of a model, or NAME=DIR; may be repeated.", metavar="DIR")
    ],
    host: Annotated[str, Option(help="Address to listen on; 0.0.0.0 for all interfaces.")] = "127.0.0.1",
    port: opt.Port = 8000,
    token_file: Annotated[
        str | None, Option(help=f"File with the token that clients must send. Default: {TOKEN}.", metavar="FILE")
    ] = None,
    no_token: Annotated[bool, Option("--no-token", help="Allow clients on other machines without a token.")] = False,
    allow_host: Annotated[
        list[str] | None, Option(help="Host name that clients use for this server; may be repeated.")
    ] = None,
    flagging: opt.FlaggingRules,
    max_body: Annotated[int, Option(help="Most bytes in a request.", min=1)] = LIMITS.body_bytes,
    max_texts: Annotated[int, Option(help="Most texts in a request.", min=1)] = LIMITS.texts,
    max_characters: Annotated[int, Option(help="Most characters in a text.", min=1)] = LIMITS.characters,
    max_waiting: Annotated[
        int, Option(help="Texts that may wait before requests are refused.", min=1)
    ] = LIMITS.waiting,
    explanations: Annotated[
        bool, Option("--explanations/--no-explanations", help="Answer requests for explanations.")
    ] = True,
    access_log: Annotated[
        bool, Option("--access-log/--no-access-log", help="Log every request, or only failed ones.")
    ] = True,
    device: opt.Device = "auto",
    allow_download: opt.AllowDownload = False,
) -> None:
    """Score texts over HTTP (POST /v1/score) until stopped."""
    from strays.apps.cli import terminal
    from strays.apps.web.sockets import bind, require_extra

    require_extra("a model", "serve", "fastapi", "uvicorn", "prometheus_client")
    token = _token(token_file)
    if token is None and not no_token and not _is_loopback(host):
        raise UsageError(
            f"--host {host} can be reached from other machines, but no token is set; set {TOKEN} or --token-file, or "
            "pass --no-token if something else controls access"
        )
    # Slow to import, so only after the options have been checked.
    from strays.apps.server.registry import named_folders
    from strays.apps.server.serve import serve as run
    from strays.apps.web.log import Log

    for name in allow_host or []:
        if not name or set(name) & set("/:@ "):
            raise UsageError(f"--allow-host is {name!r:.200}; expected a host name such as odd.example.org")
    load = partial(opt.loaded_model, device=device, allow_download=allow_download, rules=flagging.given())
    with bind(port, host) as bound:
        address = f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}"

        def announce() -> None:
            typer.echo(address)
            if sys.stderr.isatty():  # elsewhere it holds the log, for machines
                terminal.say("Stop with Ctrl-C.")

        run(
            named_folders(model),
            load,
            bound,
            token=token,
            hosts=[host, *(allow_host or [])],
            limits=Limits(body_bytes=max_body, texts=max_texts, characters=max_characters, waiting=max_waiting),
            explanations=explanations,
            log=Log(requests=access_log),
            announce=announce,
        )


def _token(file: str | None) -> str | None:
    """The token, from a file or the environment: on the command line everybody on the machine could read it."""
    if file is None and TOKEN not in os.environ:
        return None
    try:
        token = (os.environ[TOKEN] if file is None else Path(file).read_text(encoding="utf-8")).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: the token could not be read ({error})") from error
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"the token in {file or TOKEN} has {len(token)} characters; expected at least 16, printable ASCII without "
            "spaces, for example from: openssl rand -hex 32"
        )
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
