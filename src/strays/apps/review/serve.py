"""The desk's server: on this machine only, on a free port unless one is asked for, until it is stopped."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable

from strays.apps.review.desk import Desk
from strays.apps.review.link import desk_link
from strays.apps.review.refit import RefitWorker

# Limits of connections; docs/operations.md explains them. A browser opens at most six.
CONNECTIONS, IDLE_SECONDS, SHUTDOWN_SECONDS = 200, 30.0, 3.0
# How long a stop waits for a fit; nothing that people said depends on it.
FIT_SECONDS = 2.0


def serve(desk: Desk, bound: socket.socket, *, who: str, model_folder: str, announce: Callable[[str], None]) -> None:
    """Serve a desk until stopped; `announce` is called with the link once the server answers."""
    from strays.apps.review.app import make_app
    from strays.apps.review.middleware import with_middleware
    from strays.apps.web.connections import make_server
    from strays.apps.web.log import Log
    from strays.apps.web.stopping import run_until_stopped

    port = bound.getsockname()[1]
    desk.store.set(port=port)
    token, log = secrets.token_urlsafe(32), Log()
    app = make_app(desk, who=who, model_folder=model_folder)

    def on_started() -> None:
        # Of what breaks around the app: a line on stderr, which never blocks.
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, what: log.error("broken", what.get("exception") or Exception()))
        announce(desk_link(port, token))

    server = make_server(
        with_middleware(app, port=port, token=token),
        connections=CONNECTIONS,
        idle_seconds=IDLE_SECONDS,
        shutdown_seconds=SHUTDOWN_SECONDS,
        on_started=on_started,
    )
    worker = RefitWorker(desk)

    def finish() -> None:
        app.state.explainer.close(wait=False)
        worker.close(FIT_SECONDS)
        desk.store.close()
        app.state.exports.cleanup()

    worker.start()
    run_until_stopped(server, bound, log, finish)
