"""Drain: before a refusal goes out, read what the client is still sending, so that it gets to read the answer.

A client that is sending a large body does not look for an answer before it is done; if the connection is closed
meanwhile, it sees a reset instead of the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strays.apps.web.asgi import header

MAX_BYTES = 32_000_000


class DrainRefused:
    """Read and drop the rest of the body before an error answer is sent, for a few seconds at most.

    `seconds` is for any status, `seconds_by_status` for those that differ.
    """

    def __init__(self, app: ASGIApp, seconds: float, seconds_by_status: Mapping[int, float]) -> None:
        self._app = app
        self._seconds, self._seconds_by_status = seconds, seconds_by_status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if header(scope, b"content-length", "0") == "0" and not header(scope, b"transfer-encoding"):
            await self._app(scope, receive, send)
            return
        unread = True

        async def receive_noted() -> Message:
            nonlocal unread
            message = await receive()
            unread = message.get("more_body", False)  # neither the last part nor a disconnect has it
            return message

        async def send_drained(message: Message) -> None:
            if unread and message["type"] == "http.response.start" and message["status"] >= 400:
                await self._drain(receive_noted, message["status"])
            await send(message)

        await self._app(scope, receive_noted, send_drained)

    async def _drain(self, receive: Receive, status: int) -> None:
        seconds = self._seconds_by_status.get(status, self._seconds)
        if not seconds:
            return
        left = MAX_BYTES
        try:
            async with asyncio.timeout(seconds):
                while left > 0:
                    message = await receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return
        except TimeoutError:
            return
