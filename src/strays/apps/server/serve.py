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

from fastapi import FastAPI

from strays.apps.server.app import Lifespan, make_app
from strays.apps.server.limits import Limits
from strays.apps.server.metrics import Metrics
from strays.apps.server.middleware import with_middleware
from strays.apps.server.registry import Load, ModelRegistry
from strays.apps.server.request_log import log_refused
from strays.apps.web.connections import LimitedServer, make_server
from strays.apps.web.log import Log
from strays.apps.web.stopping import run_until_stopped


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
    registry = ModelRegistry(folders, load, limits=limits, metrics=Metrics(lambda: log.dropped), log=log)

    def on_ready() -> None:
        if hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, registry.reload_soon)
        announce()

    running = lifespan(registry, on_ready, fail=lambda error: server.stop(error))
    app = make_app(registry, explanations=explanations, has_token=token is not None, lifespan=running)
    server = limited_server(with_middleware(app, registry, token=token, hosts=hosts), registry)
    run_until_stopped(server, bound, log, finish=lambda: None)


def limited_server(shell: Any, registry: ModelRegistry) -> LimitedServer:
    """Uvicorn with the limits of a registry, for an app with its middleware."""
    limits = registry.limits
    return make_server(
        shell,
        connections=limits.connections,
        idle_seconds=limits.idle_seconds,
        shutdown_seconds=limits.shutdown_seconds,
        on_refused=partial(log_refused, registry.metrics, registry.log),
    )


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
