"""Buffered body: the app gets a body whole or not at all, so that it never waits for a client that sends slowly."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strays.apps.web.answers import refuse
from strays.apps.web.busy import busy


class BufferedBody:
    """Read the whole body before the app runs, and tell the app if the client leaves meanwhile.

    A body that takes longer than `max_seconds` is refused (408), one that breaks off too (400), and one for which
    there is no room beside those of the other requests under way (429): together they may hold `max_held_bytes`.

    The request's state gets `body_bytes`, how much was read, and `gone`, a future that is done once the client left.
    """

    def __init__(self, app: ASGIApp, *, max_seconds: float, max_held_bytes: int) -> None:
        self._app = app
        self._max_seconds, self._max_held_bytes = max_seconds, max_held_bytes
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        state = scope.setdefault("state", {})
        state["body_bytes"] = 0
        try:
            body = await self._read(receive, state)
            if isinstance(body, Response):
                await body(scope, receive, send)
                return
            unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
            del body  # the app alone decides how long it is needed
            gone = state["gone"] = asyncio.ensure_future(receive())

            async def receive_again() -> Message:
                return unread.pop() if unread else await asyncio.shield(gone)

            try:
                await self._app(scope, receive_again, send)
            finally:
                gone.cancel()
        finally:
            self._held_bytes -= state["body_bytes"]

    async def _read(self, receive: Receive, state: dict[str, Any]) -> bytes | Response:
        """The body, or the answer to one that cannot be had."""
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(self._max_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return refuse(400, "cut_off", "the body did not arrive whole", {"connection": "close"})
                    parts.append(message.get("body", b""))
                    state["body_bytes"] += len(parts[-1])
                    self._held_bytes += len(parts[-1])
                    if self._held_bytes > self._max_held_bytes:
                        return busy("too many large bodies are under way")
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            message_ = f"the body did not arrive within {self._max_seconds:g} seconds"
            return refuse(408, "too_slow", message_, {"connection": "close"})
