"""The server's middleware, outermost first, with the status of what each refuses.

http_only > SecurityHeaders > RequestLog > AnswerCancelled (503 if the server stops first) > DrainRefused
> one_length (400) > trusted_host (421) > same_origin (403) > bearer_token (401; GET /health needs none)
> known_path (404) > RequestLimit (429)
and for calls, which have a body:
> json_only (415) > few_waiting (429) > length_limit (413) > BufferedBody (413, 408, 400; 429 if too much is held)
"""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import FastAPI
from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from strays.apps.server.registry import ModelRegistry
from strays.apps.server.request_log import RequestLog
from strays.apps.web.answers import refuse
from strays.apps.web.asgi import checked, http_only, split
from strays.apps.web.body import BufferedBody, json_only, length_limit
from strays.apps.web.busy import RequestLimit, busy
from strays.apps.web.drain import DrainRefused
from strays.apps.web.framing import one_length
from strays.apps.web.headers import SecurityHeaders
from strays.apps.web.host import names_and_addresses, trusted_host
from strays.apps.web.origin import same_origin
from strays.apps.web.stopping import AnswerCancelled
from strays.apps.web.token import bearer_token

HEALTH, CALL = "/health", ("POST", "/v1/score")
HEADERS = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
}


def with_middleware(app: FastAPI, registry: ModelRegistry, *, token: str | None, hosts: Iterable[str]) -> ASGIApp:
    """Wrap the server's app, whose models and limits are those of a registry."""
    limits, metrics = registry.limits, registry.metrics
    paths = frozenset(route.path for route in app.routes if hasattr(route, "path"))

    def known_path(scope: Scope) -> Response | None:
        # The app's own router also takes paths that are merely like one of these.
        return None if scope["path"] in paths else refuse(404, "not_found", "no such path; see /openapi.json")

    def few_waiting(scope: Scope) -> Response | None:
        return busy(f"more than {limits.waiting:,} texts are waiting") if registry.waiting > limits.waiting else None

    body = BufferedBody(app, limits.body_bytes, max_seconds=limits.body_seconds, max_held_bytes=limits.bodies_bytes)
    call = checked(body, json_only, few_waiting, length_limit(limits.body_bytes))
    by_kind = split(lambda scope: (scope["method"], scope["path"]) == CALL, call, app)
    limited = RequestLimit(by_kind, limits.requests, exempt=[HEALTH])
    metrics.under_way.set_function(lambda: limited.under_way)

    remedy = "the server's operator can add it with --allow-host"
    checks = [one_length, trusted_host(names_and_addresses(hosts), remedy=remedy), same_origin()]
    if token is not None:
        checks.append(bearer_token(token, open_to_all=[("GET", HEALTH)]))
    shell = DrainRefused(checked(limited, *checks, known_path))
    logged = RequestLog(AnswerCancelled(shell), paths=paths, metrics=metrics, log=registry.log)
    return http_only(SecurityHeaders(logged, HEADERS), lifespan=app)
