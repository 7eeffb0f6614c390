"""Stopping: a server that is told to stop ends within seconds, whatever is waiting or running in it.

Requests under way get some time, then they are cancelled and told so (503). What still runs after that, such as a
thread that explains a text, is abandoned together with the process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strays.apps.web.answers import refuse
from strays.apps.web.connections import LimitedServer
from strays.apps.web.log import Log

# From the signal to the end of the process: who tells it to stop usually waits ten seconds, and then kills it.
END_SECONDS, FLUSH_SECONDS = 9.0, 0.3


class AnswerCancelled:
    """Answer requests that are cancelled because the server stops: 503."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        is_answered = False

        async def send_noted(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except asyncio.CancelledError:
            if is_answered:  # at least in part
                raise
            words = "the server is stopping; try again, here or elsewhere, in a moment"
            await refuse(503, "stopping", words, {"connection": "close"})(scope, receive, send)


def run_until_stopped(server: LimitedServer, bound: socket.socket, log: Log, finish: Callable[[], object]) -> None:
    """Serve on a socket until a signal or a failure; then `finish` what is open, and end this process.

    From the signal on it has END_SECONDS, and then is ended whatever it does. Being told to stop is not a failure: the
    exit code is 0, and 130 for Ctrl-C. It does not return, unless by raising what the server failed with.
    """

    def end() -> None:
        log.flush(FLUSH_SECONDS)
        # Not by returning: the interpreter would wait for every thread, and then take long to tidy up.
        os._exit(130 if server.interrupted else 1 if server.failure else 0)

    has_stopped = threading.Event()

    def end_in_time() -> None:
        server.stopping.wait()
        if not has_stopped.wait(END_SECONDS):
            log.write("abandoned", "warning", after_seconds=END_SECONDS)
            end()

    threading.Thread(target=end_in_time, name="strays-deadline", daemon=True).start()
    # When it is done, uvicorn raises the signal again; and one that comes before uvicorn handles it is not lost.
    before = signal.signal(signal.SIGTERM, lambda *_: server.stop())
    try:
        with suppress(KeyboardInterrupt):
            server.run([bound])
    finally:
        signal.signal(signal.SIGTERM, before)
        finish()
    if server.failure:
        has_stopped.set()
        raise server.failure
    end()
