"""Drain: before a refusal goes out, read what the client is still sending, so that it gets to read the answer.

A client that is sending a large body does not look for an answer before it is done; if the connection is closed
meanwhile, it sees a reset instead of the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strays.apps.web.asgi import header

MAX_BYTES = 32_000_000
# How long the rest of a refused body is read: not at all if it does not arrive anyway, briefly for strangers.
SECONDS = 2.0
SECONDS_BY_STATUS = {400: 0.0, 408: 0.0, 401: 0.2, 403: 0.2, 421: 0.2}


class DrainRefused:
    """Read and drop the rest of the body before an error answer, for `seconds` at most, or those of its status."""

    def __init__(
        self, app: ASGIApp, seconds: float = SECONDS, seconds_by_status: Mapping[int, float] = SECONDS_BY_STATUS
    ) -> None:
        self._app, self._seconds, self._seconds_by_status = app, seconds, seconds_by_status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        unread = header(scope, b"content-length", "0") != "0" or bool(header(scope, b"transfer-encoding"))

        async def receive_noted() -> Message:
            nonlocal unread
            message = await receive()
            unread = message.get("more_body", False)  # neither the last part nor a disconnect has it
            return message

        async def send_drained(message: Message) -> None:
            if unread and message["type"] == "http.response.start" and message["status"] >= 400:
                seconds, left = self._seconds_by_status.get(message["status"], self._seconds), MAX_BYTES
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        while seconds and unread and left > 0:
                            left -= len((await receive_noted()).get("body", b""))
            await send(message)

        await self._app(scope, receive_noted, send_drained)
