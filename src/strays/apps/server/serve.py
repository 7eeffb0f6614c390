"""The server's process: from models and limits to a socket that answers, until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
import warnings
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI

from strays.apps.server.app import make_app
from strays.apps.server.connections import Connection, Server
from strays.apps.server.gate import Gate
from strays.apps.server.limits import Limits
from strays.apps.server.log import Log
from strays.apps.server.metrics import Metrics
from strays.apps.server.shelf import Shelf
from strays.model import TextOutlierDetector

# Connections that may wait to be taken, which all are at once: few, or they could be more than files may be open.
BACKLOG = 100


def serve(
    folders: dict[str, str],
    load: Callable[[str], TextOutlierDetector],
    bound: socket.socket,
    *,
    token: str | None,
    hosts: Iterable[str],
    limits: Limits,
    explanations: bool,
    log: Log,
    announce: Callable[[], None],
) -> None:
    """Serve models until stopped; `announce` is called once all of them can answer."""
    warnings.showwarning = log.warning
    metrics = Metrics()
    shelf = Shelf(folders, load, limits=limits, metrics=metrics, log=log)
    app = make_app(shelf, limits=limits, metrics=metrics, explanations=explanations, has_token=token is not None)
    gate = Gate(
        app,
        token=token,
        hosts=hosts,
        paths=[route.path for route in app.routes if hasattr(route, "path")],
        limits=limits,
        metrics=metrics,
        log=log,
        is_full=lambda: shelf.waiting > limits.waiting,
    )
    options: dict[str, Any] = {
        "access_log": False,
        "log_config": None,
        "log_level": "critical",  # its tracebacks may hold texts; ours do not
        "http": partial(Connection, limits=limits),
        "backlog": BACKLOG,
        "server_header": False,
        "proxy_headers": False,  # whoever calls could claim to come from anywhere
        "timeout_keep_alive": int(limits.idle_seconds),
        "timeout_graceful_shutdown": int(limits.shutdown_seconds),
        "ws": "none",
    }
    server = Server(uvicorn.Config(gate, **options), limits)
    app.router.lifespan_context = _running(shelf, server, log, announce)
    # Having finished what was taken, uvicorn raises the signal again; being told to stop is no failure. One that comes
    # before uvicorn listens for it is not lost.
    before = signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
    try:
        server.run([bound])
    finally:
        signal.signal(signal.SIGTERM, before)
    if server.failed:
        raise server.failed


def _running(shelf: Shelf, server: Server, log: Log, announce: Callable[[], None]) -> Callable[[FastAPI], Any]:
    """What goes on beside the requests: models are made ready, then watched; SIGHUP has them looked at now."""

    async def go() -> None:
        try:
            await shelf.open()
        except Exception as error:
            server.failed, server.should_exit = error, True
            return
        log.write("ready", models=shelf.names)
        with suppress(OSError):  # nobody reads stdout
            announce()
        await shelf.watch()

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, what: log.error("broken", what.get("exception") or Exception()))
        task = loop.create_task(go())
        looks: set[asyncio.Task[None]] = set()

        def look() -> None:
            looking = loop.create_task(shelf.look(again=True))
            looks.add(looking)  # or it might be collected before it has looked
            looking.add_done_callback(looks.discard)

        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, look)
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await shelf.close()
        log.write("stopped")

    return running
