"""The request log: every request gets an id and an answer, is timed and counted, and leaves a line in the log."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strays.apps.server.metrics import Metrics
from strays.apps.web.answers import error_code
from strays.apps.web.asgi import header
from strays.apps.web.log import Log

# The status of a request whose client left before there was an answer.
UNANSWERED = 499
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestLog:
    """Log and count requests. Methods and paths we do not know are `other`, so that no caller's words get in.

    The answer carries the id as X-Request-ID. The request's state gets `facts`, a dict: what the app puts there is
    logged too.
    """

    def __init__(self, app: ASGIApp, *, paths: Iterable[str], metrics: Metrics, log: Log) -> None:
        self._app, self._paths = app, frozenset(paths)
        self._metrics, self._log = metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        began = time.perf_counter()
        path = scope["path"] if scope["path"] in self._paths else "other"
        method = scope["method"] if scope["method"] in METHODS else "other"
        given, status, code = header(scope, b"x-request-id"), 0, None
        id_ = given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        state = scope.setdefault("state", {})
        facts: dict[str, Any] = state.setdefault("facts", {})

        async def send_noted(message: Message) -> None:
            nonlocal status, code
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), (b"x-request-id", id_.encode())]}
            elif status >= 400:
                code = error_code(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except Exception as error:  # the app answers its own errors; this one comes from around it
            self._log.error("broken", error, id=id_)
            raise
        finally:
            seconds, status = time.perf_counter() - began, status or UNANSWERED
            self._metrics.requests.labels(path, status).inc()
            self._metrics.seconds.labels(path).observe(seconds)
            client, n_bytes = scope["client"][0] if scope["client"] else None, state.get("body_bytes", 0)
            known = {"id": id_, "method": method, "path": path, "client": client, "bytes": n_bytes, "code": code}
            self._log.request(status, **known, seconds=round(seconds, 4), **facts)


def log_refused(metrics: Metrics, log: Log, client: str | None, status: int, code: str) -> None:
    """Count and log what a connection sent that is no request, and so never got here."""
    metrics.requests.labels("other", status).inc()
    log.request(status, id=secrets.token_hex(8), method="other", path="other", client=client, code=code)
