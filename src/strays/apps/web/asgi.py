"""Small helpers for ASGI middleware."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

# Where a request's scope keeps its parsed headers.
_PARSED = "strays.headers"


def header(scope: Scope, name: bytes, default: str = "") -> str:
    """The value of a request header, or `default` if it is absent.

    A header that comes twice gives a NUL, which no check accepts: two programs on the way may each read another one.

    >>> header({"headers": [(b"host", b"localhost"), (b"a", b"1"), (b"a", b"2")]}, b"host")
    'localhost'
    """
    values = scope.get(_PARSED)
    if values is None:  # once for all middleware
        values = scope[_PARSED] = {}
        for key, value in scope["headers"]:
            values[key] = "\x00" if key in values else value.decode("latin-1")
    return str(values.get(name, default))


def split(test: Callable[[Scope], bool], chosen: ASGIApp, others: ASGIApp) -> ASGIApp:
    """Send the requests that pass a test to one app, and all others to another."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (chosen if test(scope) else others)(scope, receive, send)

    return app


class HttpOnly:
    """Close web sockets, so that middleware sees HTTP requests only; startup and shutdown go to `lifespan`."""

    def __init__(self, app: ASGIApp, lifespan: ASGIApp) -> None:
        self._app, self._lifespan = app, lifespan

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] == "http":
            await self._app(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})
