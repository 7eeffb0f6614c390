"""Body: it must be JSON (415), not too large (413), and arrive whole (400) and in time (408)."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strays.apps.web.answers import refuse
from strays.apps.web.asgi import Check, header
from strays.apps.web.busy import busy


def json_only(scope: Scope) -> Response | None:
    """Refuse a body that does not say it is JSON. A form of another site's page cannot send that type."""
    if header(scope, b"content-type").partition(";")[0].strip().lower() == "application/json":
        return None
    return refuse(415, "not_json", "expected Content-Type: application/json")


def length_limit(max_bytes: int) -> Check:
    """Refuse a body whose Content-Length is too large, or none."""

    def check(scope: Scope) -> Response | None:
        length = header(scope, b"content-length", "0")
        fits = length.isdecimal() and len(length) < 20 and int(length) <= max_bytes
        return None if fits else _too_large(max_bytes)

    return check


class BufferedBody:
    """Read the whole body before the app runs, so that it never waits for a client; tell it if the client leaves.

    A body that turns out to be too large is refused (413), and one that takes longer than `max_seconds` (408), breaks
    off (400), or has no room beside those of other requests (429): together they may hold `max_held_bytes`.

    The request's state gets `body_bytes`, how much was read, and `gone`, a future that is done once the client left.
    """

    def __init__(
        self, app: ASGIApp, max_bytes: int, *, max_seconds: float | None = None, max_held_bytes: float = math.inf
    ) -> None:
        self._app, self._max_bytes = app, max_bytes
        self._max_seconds, self._max_held_bytes = max_seconds, max_held_bytes
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        state = scope.setdefault("state", {})
        state["body_bytes"] = 0
        try:
            unread = await self._read(receive, state)
            if isinstance(unread, Response):
                await unread(scope, receive, send)
                return
            gone = state["gone"] = asyncio.ensure_future(receive())

            async def receive_again() -> Message:
                return unread.pop() if unread else await asyncio.shield(gone)

            try:
                await self._app(scope, receive_again, send)
            finally:
                gone.cancel()
        finally:
            self._held_bytes -= state["body_bytes"]

    async def _read(self, receive: Receive, state: dict[str, Any]) -> list[Message] | Response:
        """The body as the only message, to be taken by the app, which decides how long it is needed; or a refusal."""
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
                    if state["body_bytes"] > self._max_bytes:
                        return _too_large(self._max_bytes)
                    if self._held_bytes > self._max_held_bytes:
                        return busy("too many large bodies are under way")
                    if not message.get("more_body", False):
                        return [{**message, "body": b"".join(parts)}]
        except TimeoutError:
            words = f"the body did not arrive within {self._max_seconds:g} seconds"
            return refuse(408, "too_slow", words, {"connection": "close"})


def _too_large(max_bytes: int) -> Response:
    return refuse(413, "too_large", f"expected a body of at most {max_bytes:,} bytes")
