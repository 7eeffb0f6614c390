"""Connections: how many there may be, and how long one may neither ask nor read."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from strays.apps.server.limits import Limits


class Connection(H11Protocol):
    """uvicorn's side of a connection (by h11, which has a limit for headers). A new one too many ends the idlest."""

    def __init__(self, *args: Any, limits: Limits, **more: Any) -> None:
        super().__init__(*args, **more)
        self._limits = limits
        self._idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room, where there is none."""
        super().connection_made(transport)
        self._idle_since = time.monotonic()
        if len(self.connections) > self._limits.connections:
            there = [one for one in self.connections if isinstance(one, Connection) and not one.transport.is_closing()]
            if len(there) > self._limits.connections:
                idle = [one for one in there if one.is_idle]  # this one, if no other
                min(idle, key=lambda one: one._idle_since).transport.abort()

    def on_response_complete(self) -> None:
        """From now on it is idle, until it asks again."""
        self._idle_since = time.monotonic()
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way on it, and no answer either."""
        return (self.cycle is None or self.cycle.response_complete) and not self.transport.get_write_buffer_size()


class Server(uvicorn.Server):
    """uvicorn, which also lets go of clients that neither ask nor read."""

    def __init__(self, config: uvicorn.Config, limits: Limits) -> None:
        super().__init__(config)
        self.failed: Exception | None = None
        self._limits = limits
        self._stuck: dict[Any, tuple[Any, float]] = {}

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second."""
        if counter % 10 == 0:
            self._let_go(time.monotonic())
        return await super().on_tick(counter)

    def _let_go(self, now: float) -> None:
        """Close connections where for too long no request was whole, or no byte of an answer was taken."""
        stuck: dict[Any, tuple[Any, float]] = {}
        for connection in list(self.server_state.connections):
            transport, cycle = connection.transport, getattr(connection, "cycle", None)
            unread = transport.get_write_buffer_size()
            if not unread and cycle is not None and not cycle.response_complete:
                continue  # it waits for us
            state = (unread, cycle)
            was, since = self._stuck.get(connection, (None, now))
            stuck[connection] = (state, since if was == state else now)
            if now - stuck[connection][1] > self._limits.idle_seconds:
                transport.abort()
        self._stuck = stuck
