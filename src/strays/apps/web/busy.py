"""Busy: every 429. What is more than the server can take at the moment is refused, and told when to try again."""

from __future__ import annotations

from collections.abc import Collection

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from strays.apps.web.answers import refuse


class BusyError(Exception):
    """There is too much to do at the moment; the message says of what. Answer it with `busy`."""


def busy(reason: str) -> Response:
    """The 429 answer."""
    return refuse(429, "busy", f"{reason}; try again in a moment", {"retry-after": "1"})


class RequestLimit:
    """Refuse requests while `most` are under way; those for `exempt` paths are counted, but never refused."""

    def __init__(self, app: ASGIApp, most: int, *, exempt: Collection[str] = ()) -> None:
        self._app, self._most, self._exempt = app, most, exempt
        self.under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        self.under_way += 1
        try:
            is_refused = self.under_way > self._most and scope["path"] not in self._exempt
            app = busy(f"more than {self._most:,} requests are under way") if is_refused else self._app
            await app(scope, receive, send)
        finally:
            self.under_way -= 1
