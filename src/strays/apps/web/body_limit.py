"""Body limit: how large the body of a request may be (413)."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strays.apps.web.answers import refuse
from strays.apps.web.asgi import header


class BodyTooLargeError(Exception):
    """More of a body arrived than is allowed."""


class BodyLimit:
    """Refuse a body whose Content-Length is too large; stop reading one that turns out to be.

    Whoever reads a body past the limit gets a BodyTooLargeError. If it comes back here, the answer is 413 as well.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app, self._max_bytes = app, max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        n_read = 0

        async def receive_counted() -> Message:
            nonlocal n_read
            message = await receive()
            n_read += len(message.get("body", b""))
            if n_read > self._max_bytes:
                raise BodyTooLargeError
            return message

        try:
            if self._is_too_large(header(scope, b"content-length", "0")):
                raise BodyTooLargeError
            await self._app(scope, receive_counted, send)
        except BodyTooLargeError:
            message = f"expected a body of at most {self._max_bytes:,} bytes"
            await refuse(413, "too_large", message)(scope, receive, send)

    def _is_too_large(self, length: str) -> bool:
        return not (length.isdecimal() and len(length) < 20 and int(length) <= self._max_bytes)
