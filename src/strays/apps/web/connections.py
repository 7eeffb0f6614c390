"""Connections: how many may be open, how long one may be silent, and what becomes of bytes that are no HTTP."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

# Of uvicorn: what it logs may hold texts, searches or tokens, a caller could claim any address, and there are no web
# sockets.
OPTIONS: dict[str, Any] = {
    "access_log": False,
    "log_config": None,
    "log_level": "critical",
    "server_header": False,
    "ws": "none",
    "proxy_headers": False,
}
# All connections that wait are accepted at once: with more of them, too many files could be open.
BACKLOG = 100
# Files that a process may have open, less these, is how many connections it may have: for the backlog and for itself.
OTHER_FILES = BACKLOG + 24
FEWEST = 16
CLOSE = ("connection", "close")
NOT_HTTP = {400: ("not_http", "the request is not valid HTTP"), 431: ("too_large", "the headers are too large")}

# Called with the client's address, the status and the code of a refusal that no app has seen.
OnRefused = Callable[[str | None, int, str], None]


def make_server(
    app: Any,
    *,
    connections: int,
    idle_seconds: float,
    shutdown_seconds: float,
    on_refused: OnRefused = lambda *_: None,
    on_started: Callable[[], None] = lambda: None,
) -> LimitedServer:
    """uvicorn, set up for an app with its middleware.

    connections       open at once, or fewer where the system allows fewer files; see LimitedConnection
    idle_seconds      how long a connection may be silent, or an answer unread, before it is closed
    shutdown_seconds  how long a stop waits for the requests under way; then they are cancelled
    """
    most = min(connections, usable_connections())
    config = uvicorn.Config(
        app,
        **OPTIONS,
        http=partial(LimitedConnection, max_connections=most, on_refused=on_refused),  # type: ignore[arg-type]
        backlog=BACKLOG,
        timeout_keep_alive=int(idle_seconds),
        timeout_graceful_shutdown=int(shutdown_seconds),
    )
    return LimitedServer(config, idle_seconds, on_started)


def usable_connections() -> int:
    """How many connections this process can have open beside its files."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ImportError:  # a system without such limits
        return sys.maxsize
    most, _ = getrlimit(RLIMIT_NOFILE)
    return sys.maxsize if most == RLIM_INFINITY else max(FEWEST, most - OTHER_FILES)


class LimitedConnection(H11Protocol):
    """uvicorn's connection (by h11, which limits the size of headers). One too many ends the one idle for longest.

    If none is idle, it ends the one that has not read its answer for longest.
    """

    def __init__(self, *args: Any, max_connections: int, on_refused: OnRefused, **more: Any) -> None:
        super().__init__(*args, **more)
        self._max_connections, self._on_refused = max_connections, on_refused
        self._idle_since = 0.0
        self._unread_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room if there is none."""
        super().connection_made(transport)
        self._idle_since = time.monotonic()
        if len(self.connections) > self._max_connections:
            everyone: set[Any] = self.connections
            open_ones = [one for one in everyone if not one.transport.is_closing()]
            if len(open_ones) > self._max_connections:
                self._to_close(open_ones).transport.abort()

    def _to_close(self, open_ones: list[Any]) -> Any:
        if idle := [one for one in open_ones if one.is_idle and one is not self]:
            return min(idle, key=lambda one: one._idle_since)
        unread = [one for one in open_ones if one._unread_since is not None]
        return min(unread, key=lambda one: one._unread_since, default=self)

    def on_response_complete(self) -> None:
        """Be idle from now on, until the next request."""
        self._idle_since = time.monotonic()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client does not read."""
        self._unread_since = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._unread_since = None
        super().resume_writing()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way, and no answer is waiting to be read."""
        return (self.cycle is None or self.cycle.response_complete) and not self.transport.get_write_buffer_size()

    def send_400_response(self, msg: str) -> None:
        """Close a connection that sends what is no HTTP; uvicorn calls this.

        If nothing has been answered yet, it is told why. Garbage in place of a request goes to `on_refused`; in the
        body of a request the app is told that the body broke off, and logs that as it does for a client that left.
        """
        status = getattr(sys.exc_info()[1], "error_status_hint", 400)
        status = status if status in NOT_HTTP else 400
        code, message = NOT_HTTP[status]
        is_request = self.conn.our_state is h11.IDLE
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps({"error": {"code": code, "message": message}}).encode()
            headers = [("content-type", "application/json"), ("content-length", str(len(body))), CLOSE]
            response = h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status])
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        elif is_request:
            self._on_refused(self.client[0] if self.client else None, status, code)
        self.transport.close()


class LimitedServer(uvicorn.Server):
    """uvicorn's server, which also closes connections that neither ask nor read for `idle_seconds`."""

    def __init__(self, config: uvicorn.Config, idle_seconds: float, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self.failure: Exception | None = None
        self.interrupted = False
        self.stopping = threading.Event()
        self._idle_seconds, self._on_started = idle_seconds, on_started
        self._stuck: dict[Any, float] = {}

    def stop(self, failure: Exception | None = None) -> None:
        """Stop serving, because of a failure or because it is time."""
        self.failure = self.failure or failure
        self.should_exit = True
        self.stopping.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop serving because of a signal; uvicorn calls this."""
        super().handle_exit(sig, frame)
        self.interrupted = self.interrupted or sig == signal.SIGINT
        self.stopping.set()

    async def startup(self, sockets: Any = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self.started:
            self._on_started()

    async def shutdown(self, sockets: Any = None) -> None:
        """Answer what is under way, or say that it will not be; what ignores that is abandoned."""
        await super().shutdown(sockets)
        if self.server_state.tasks:
            await asyncio.wait(list(self.server_state.tasks), timeout=1)

    async def on_tick(self, counter: int) -> bool:
        """Look after connections once a second; uvicorn calls this ten times as often."""
        if counter % 10 == 0:
            self._close_stuck(time.monotonic())
        return await super().on_tick(counter)

    def _close_stuck(self, now: float) -> None:
        """Close connections that for too long sent no whole request, or read no byte of an answer."""
        stuck: dict[Any, float] = {}
        for connection in list(self.server_state.connections):
            transport, cycle = connection.transport, getattr(connection, "cycle", None)
            unread = transport.get_write_buffer_size()
            if not unread and cycle is not None and not cycle.response_complete:
                continue  # it waits for our answer
            state = (connection, cycle, unread)
            stuck[state] = self._stuck.get(state, now)
            if now - stuck[state] > self._idle_seconds:
                transport.abort()
        self._stuck = stuck
