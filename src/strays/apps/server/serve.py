"""The server's process: from models and limits to a socket that answers, until it is stopped."""

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

from strays.apps.server.app import Lifespan, make_app
from strays.apps.server.limits import Limits
from strays.apps.server.log import Log
from strays.apps.server.metrics import Metrics
from strays.apps.server.middleware import with_middleware
from strays.apps.server.registry import Load, ModelRegistry
from strays.apps.web.connections import QUIET, LimitedConnection, LimitedServer


def serve(
    folders: dict[str, str],
    load: Load,
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
    registry = ModelRegistry(folders, load, limits=limits, metrics=Metrics(), log=log)

    def on_ready() -> None:
        if hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, registry.reload_soon)
        announce()

    running = lifespan(registry, on_ready, fail=lambda error: server.stop(error))
    app = make_app(registry, explanations=explanations, has_token=token is not None, lifespan=running)
    server = make_server(with_middleware(app, registry, token=token, hosts=hosts), limits)
    # Having finished its calls, uvicorn raises the signal again; being told to stop is not a failure. A signal that
    # comes before uvicorn handles it is not lost.
    before = signal.signal(signal.SIGTERM, lambda *_: server.stop())
    try:
        server.run([bound])
    finally:
        signal.signal(signal.SIGTERM, before)
    if server.failure:
        raise server.failure


def make_server(shell: Any, limits: Limits) -> LimitedServer:
    """uvicorn, set up for an app with its middleware."""
    options: dict[str, Any] = {
        **QUIET,
        "http": partial(LimitedConnection, max_connections=limits.connections),
        "backlog": 100,  # all that wait are accepted at once: with more of them, too many files could be open
        "proxy_headers": False,  # a caller could claim any address
        "timeout_keep_alive": int(limits.idle_seconds),
        "timeout_graceful_shutdown": int(limits.shutdown_seconds),
    }
    return LimitedServer(uvicorn.Config(shell, **options), limits.idle_seconds)


def lifespan(registry: ModelRegistry, announce: Callable[[], None], fail: Callable[[Exception], None]) -> Lifespan:
    """What goes on beside the requests: models are opened, then watched, and closed in the end."""

    async def open_and_watch() -> None:
        try:
            await registry.open()
        except Exception as error:
            fail(error)
            return
        registry.log.write("ready", models=registry.names)
        with suppress(OSError):  # nobody reads stdout
            announce()
        await registry.watch()

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, what: registry.log.error("broken", what.get("exception") or Exception()))
        task = loop.create_task(open_and_watch())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await registry.close()
        registry.log.write("stopped")

    return running
