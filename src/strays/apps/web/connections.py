"""Connections: how many may be open, and how long one may be silent."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

# Options of uvicorn for server and desk: what it logs may hold texts, searches or tokens, and there are no web sockets.
QUIET = {"access_log": False, "log_config": None, "log_level": "critical", "server_header": False, "ws": "none"}


class LimitedConnection(H11Protocol):
    """uvicorn's connection (by h11, which limits the size of headers). One too many ends the one idle for longest."""

    def __init__(self, *args: Any, max_connections: int, **more: Any) -> None:
        super().__init__(*args, **more)
        self._max_connections = max_connections
        self._idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room if there is none."""
        super().connection_made(transport)
        self._idle_since = time.monotonic()
        if len(self.connections) > self._max_connections:
            everyone: set[Any] = self.connections
            open_ones = [one for one in everyone if not one.transport.is_closing()]
            if len(open_ones) > self._max_connections:
                idle = [one for one in open_ones if one.is_idle]  # at least the new one
                min(idle, key=lambda one: one._idle_since).transport.abort()

    def on_response_complete(self) -> None:
        """Be idle from now on, until the next request."""
        self._idle_since = time.monotonic()
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way, and no answer is waiting to be read."""
        return (self.cycle is None or self.cycle.response_complete) and not self.transport.get_write_buffer_size()


class LimitedServer(uvicorn.Server):
    """uvicorn's server, which also closes connections that neither ask nor read for `idle_seconds`."""

    def __init__(self, config: uvicorn.Config, idle_seconds: float) -> None:
        super().__init__(config)
        self.failure: Exception | None = None
        self._idle_seconds = idle_seconds
        self._stuck: dict[Any, float] = {}

    def stop(self, failure: Exception | None = None) -> None:
        """Stop serving, because of a failure or because it is time."""
        self.failure, self.should_exit = failure, True

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
