"""Security headers on every answer."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class SecurityHeaders:
    """Add headers to every answer, in place of those of the same name that the app set."""

    def __init__(self, app: ASGIApp, headers: dict[str, str]) -> None:
        self._app = app
        self._headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        self._names = frozenset(name for name, _ in self._headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                others = [pair for pair in message.get("headers", ()) if pair[0].lower() not in self._names]
                message = {**message, "headers": [*others, *self._headers]}
            await send(message)

        await self._app(scope, receive, send_with_headers)
