"""Stopping: a request that takes longer than a stop can wait is told so (503)."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strays.apps.web.answers import refuse


class AnswerWhenStopped:
    """Answer requests that are cancelled because the server stops."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        answered = False

        async def send_noted(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except asyncio.CancelledError:
            if answered:
                raise
            message = "the server is stopping; try again, here or elsewhere, in a moment"
            await refuse(503, "stopping", message, {"connection": "close"})(scope, receive, send)
