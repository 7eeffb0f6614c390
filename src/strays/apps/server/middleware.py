"""The server's middleware, outermost first: the order in which a request is checked.

- HttpOnly: web sockets are closed
- RequestLog: id, log line, metrics
- SecurityHeaders: on every answer
- AnswerWhenStopped: 503 if the server stops first
- DrainRefused: reads the rest of a refused body
- TrustedHost: 421
- SameOrigin: 403
- BearerToken: 401, if the server has a token; GET /health needs none
- KnownPaths: 404
- RequestLimit: 429 if too many requests are under way

And for calls, which have a body:

- JsonOnly: 415
- RefuseWhileBusy: 429 if too many texts are waiting
- BodyLimit: 413
- BufferedBody: 408 and 400; 429 if too many bytes are held
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fastapi import FastAPI
from starlette.types import ASGIApp, Scope

from strays.apps.server.limits import Limits
from strays.apps.server.log import Log
from strays.apps.server.metrics import Metrics
from strays.apps.server.requests import RequestLog
from strays.apps.server.stopping import AnswerWhenStopped
from strays.apps.web.asgi import HttpOnly, split
from strays.apps.web.body_limit import BodyLimit
from strays.apps.web.buffered_body import BufferedBody
from strays.apps.web.busy import RefuseWhileBusy, RequestLimit
from strays.apps.web.content_type import JsonOnly
from strays.apps.web.drain import DrainRefused
from strays.apps.web.headers import SecurityHeaders
from strays.apps.web.host import TrustedHost, names_and_addresses
from strays.apps.web.origin import SameOrigin
from strays.apps.web.paths import KnownPaths
from strays.apps.web.token import BearerToken

HEALTH = "/health"
HEADERS = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
}
# How long the rest of a refused body is read: not at all if it does not arrive anyway, briefly for strangers.
DRAIN_SECONDS = 2.0
DRAIN_SECONDS_BY_STATUS = {400: 0.0, 408: 0.0, 401: 0.2, 403: 0.2, 421: 0.2}


def with_middleware(
    app: FastAPI,
    *,
    token: str | None,
    hosts: Iterable[str],
    limits: Limits,
    metrics: Metrics,
    log: Log,
    waiting: Callable[[], int],
) -> ASGIApp:
    """Wrap the server's app; `waiting` tells how many texts wait to be scored."""
    paths = [route.path for route in app.routes if hasattr(route, "path")]

    def why_busy() -> str | None:
        return f"more than {limits.waiting:,} texts are waiting" if waiting() > limits.waiting else None

    call: ASGIApp = BufferedBody(app, max_seconds=limits.body_seconds, max_held_bytes=limits.bodies_bytes)
    call = BodyLimit(call, limits.body_bytes)
    call = RefuseWhileBusy(call, why_busy)
    call = JsonOnly(call)

    request_limit = RequestLimit(split(_is_call, call, app), limits.requests, exempt=[HEALTH])
    metrics.under_way.set_function(lambda: request_limit.under_way)

    shell: ASGIApp = KnownPaths(request_limit, paths)
    if token is not None:
        shell = BearerToken(shell, token, open_to_all=[("GET", HEALTH)])
    shell = SameOrigin(shell)
    shell = TrustedHost(shell, names_and_addresses(hosts), remedy="the server's operator can add it with --allow-host")
    shell = DrainRefused(shell, DRAIN_SECONDS, DRAIN_SECONDS_BY_STATUS)
    shell = AnswerWhenStopped(shell)
    shell = SecurityHeaders(shell, HEADERS)
    shell = RequestLog(shell, paths=paths, metrics=metrics, log=log)
    return HttpOnly(shell, lifespan=app)


def _is_call(scope: Scope) -> bool:
    return bool(scope["method"] == "POST" and scope["path"] == "/v1/score")
