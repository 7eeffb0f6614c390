"""What ASGI middleware is made of: checks, which may answer a request before the app, and the headers they read."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

# Gives the answer to a request that must not reach the app; None for any other.
Check = Callable[[Scope], Response | None]

# Where a request's scope keeps its parsed headers.
_PARSED = "strays.headers"


def header(scope: Scope, name: bytes, default: str = "") -> str:
    """The value of a request header, or `default` if it is absent.

    A header that comes twice gives a NUL, which no check accepts: two programs on the way may each read another one.

    >>> header({"headers": [(b"host", b"localhost"), (b"a", b"1"), (b"a", b"2")]}, b"host")
    'localhost'
    """
    values = scope.get(_PARSED)
    if values is None:  # once for all checks
        values = scope[_PARSED] = {}
        for key, value in scope["headers"]:
            values[key] = "\x00" if key in values else value.decode("latin-1")
    return str(values.get(name, default))


def checked(app: ASGIApp, *checks: Check) -> ASGIApp:
    """Have the first check that has an answer give it, and the app if none has."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        answers = filter(None, (check(scope) for check in checks))
        await next(answers, app)(scope, receive, send)

    return answer


def split(test: Callable[[Scope], bool], chosen: ASGIApp, others: ASGIApp) -> ASGIApp:
    """Send the requests that pass a test to one app, and all others to another."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (chosen if test(scope) else others)(scope, receive, send)

    return app


def http_only(app: ASGIApp, lifespan: ASGIApp) -> ASGIApp:
    """Close web sockets, so that middleware sees HTTP requests only; startup and shutdown go to `lifespan`."""

    async def close(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.close", "code": 1008})

    others = split(lambda scope: scope["type"] == "lifespan", lifespan, close)
    return split(lambda scope: scope["type"] == "http", app, others)
