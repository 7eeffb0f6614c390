"""What stands between the network and the app: who may ask, how much, and how slowly.

Without the token only /health answers. A browser can be made to send requests by any page it shows, so a request must
name us as its host (a name that was rebound to our address is refused) and must not come from another site's page.
Bodies are read here, whole, within their limits, so that the app never waits for a client; of what comes while the
server is full the body is thrown away.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strays.apps.server.limits import Limits
from strays.apps.server.log import Log
from strays.apps.server.metrics import Metrics
from strays.apps.web.asgi import Answer, Headers, error_code, has_bearer

# What needs no token.
OPEN = ("GET", "/health")
# What has a body; of other requests it is not read.
CALL = ("POST", "/v1/score")
HEADERS = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
}
# The client was gone before there was an answer.
UNANSWERED = 499
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# How much of a refused body is read and thrown away, and how long: a client that is still sending would not see why.
# For strangers that is little, and for bodies that do not come nothing.
DRAINED_BYTES, DRAINED_SECONDS = 32_000_000, 2.0
DRAINED_LESS = {400: 0.0, 408: 0.0, 401: 0.2, 403: 0.2, 421: 0.2}


@dataclass
class Seen:
    """What the log tells of a request."""

    id: str
    method: str
    path: str
    client: str | None
    status: int = UNANSWERED
    bytes: int = 0
    code: str | None = None


class Gate:
    """Wraps the app. `paths` are those it knows; `is_full` tells whether it takes more texts now."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str | None,
        hosts: Iterable[str],
        paths: Iterable[str],
        limits: Limits,
        metrics: Metrics,
        log: Log,
        is_full: Callable[[], bool],
    ) -> None:
        self._app = app
        self._token = token.encode() if token else None
        self._hosts = {"localhost", *(host.lower() for host in hosts)}
        self._paths = frozenset(paths)
        self._limits, self._metrics, self._log = limits, metrics, log
        self._is_full = is_full
        self._held = 0
        self._under_way = 0  # of those that may ask

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with the reason why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        headers, began = Headers(scope), time.perf_counter()
        path, method = (scope["path"] if scope["path"] in self._paths else "other"), scope["method"]
        client = (scope["client"] or [None])[0]
        seen = Seen(_request_id(headers), method if method in METHODS else "other", path, client)
        sending = _noting(send, seen)
        facts: dict[str, Any] = {}
        stranger = self._stranger(scope, headers)
        self._under_way += stranger is None
        self._metrics.under_way.set(self._under_way)
        try:
            answer = stranger or self._too_much(path)
            is_call = (method, path) == CALL
            if answer is None and is_call:
                answer, receive = await self._with_body(receive, headers, seen)
            if answer is None:
                facts = await self._pass_on(scope, receive, sending, is_call)
            else:
                await _drain(receive, headers, DRAINED_LESS.get(answer.status, DRAINED_SECONDS))
                await answer.send(sending)
        except asyncio.CancelledError:  # the server stops, and has waited long enough
            if seen.status != UNANSWERED:
                raise
            words = "the server stops; ask again when it, or another one, is there"
            await Answer.error(503, "stopping", words, connection="close").send(sending)
        except Exception as error:  # the app answers its own errors; this one is ours, or comes from below
            self._log.error("broken", error, id=seen.id)
            raise
        finally:
            self._under_way -= stranger is None
            self._held -= seen.bytes
            took = time.perf_counter() - began
            self._metrics.under_way.set(self._under_way)
            self._metrics.requests.labels(seen.path, seen.status).inc()
            self._metrics.seconds.labels(seen.path).observe(took)
            told = {name: value for name, value in vars(seen).items() if value is not None}
            self._log.request(**told, seconds=round(took, 4), **facts)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, is_call: bool) -> dict[str, Any]:
        """Let the app answer; returns what it wants in the log. It can tell when the client of a call is gone."""
        facts: dict[str, Any] = {}
        state = scope.setdefault("state", {})
        state["facts"] = facts
        if not is_call:
            await self._app(scope, receive, send)
            return facts
        body = await receive()
        gone = asyncio.ensure_future(receive())
        state["gone"] = gone
        unread = [body]

        async def replayed() -> Message:
            return unread.pop() if unread else await asyncio.shield(gone)

        try:
            await self._app(scope, replayed, send)
        finally:
            gone.cancel()
        return facts

    # ---- who may ask -------------------------------------------------------------------------------------------------

    def _stranger(self, scope: Scope, headers: Headers) -> Answer | None:
        """Why a request is none of ours, if it is not."""
        host = headers.only("host")
        if not self._is_ours(host):
            return Answer.error(
                421, "wrong_host", "this server does not go by that name; whoever runs it can add it with --allow-host"
            )
        if not _same_site(headers, host):
            return Answer.error(403, "wrong_origin", "requests from pages of other sites are refused")
        if (scope["method"], scope["path"]) != OPEN and self._token and not has_bearer(headers, self._token):
            code, words = "no_token", "expected the header Authorization: Bearer TOKEN"
            if headers.only("authorization"):
                code, words = "wrong_token", "the token is not this server's"
            return Answer.error(401, code, words, **{"www-authenticate": "Bearer"})
        return None

    def _too_much(self, path: str) -> Answer | None:
        """What ends here because there is no such path (the app might find one that is like it), or no room."""
        if path not in self._paths:
            return Answer.error(404, "not_found", "there is no such path; see /openapi.json")
        if self._under_way > self._limits.requests and path != OPEN[1]:
            return _busy(f"more than {self._limits.requests:,} requests are under way")
        return None

    def _is_ours(self, host: str) -> bool:
        """Whether this is our name, or any address: only names can be made to lead here by somebody else."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name.rstrip(".") in self._hosts or _is_address(name)

    # ---- how much ----------------------------------------------------------------------------------------------------

    async def _with_body(self, receive: Receive, headers: Headers, seen: Seen) -> tuple[Answer | None, Receive]:
        """The whole body as one message, and then what comes after it; or why it is not taken."""
        if headers.only("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return Answer.error(415, "not_json", "expected Content-Type: application/json"), receive
        if self._is_full():
            return _busy(f"more than {self._limits.waiting:,} texts are waiting"), receive
        length = headers.only("content-length", "0")
        if length.isdecimal() and len(length) < 20 and int(length) > self._limits.body_bytes:
            return self._too_large(), receive
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                answer = await self._read(receive, parts, seen)
        except TimeoutError:
            words = f"the body did not arrive within {self._limits.body_seconds:g} seconds"
            answer = Answer.error(408, "too_slow", words, connection="close")
        whole: list[Message] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

        async def replayed() -> Message:
            return whole.pop() if whole else await receive()

        return answer, replayed if answer is None else receive

    async def _read(self, receive: Receive, parts: list[bytes], seen: Seen) -> Answer | None:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return Answer.error(400, "cut_off", "the body did not arrive whole", connection="close")
            part = message.get("body", b"")
            parts.append(part)
            seen.bytes += len(part)
            self._held += len(part)
            if seen.bytes > self._limits.body_bytes:
                return self._too_large()
            if self._held > self._limits.bodies_bytes:
                return _busy("too many large bodies are under way")
            if not message.get("more_body", False):
                return None

    def _too_large(self) -> Answer:
        return Answer.error(413, "too_large", f"expected a body of at most {self._limits.body_bytes:,} bytes")


def _busy(why: str) -> Answer:
    return Answer.error(429, "busy", f"{why}; try again in a moment", **{"retry-after": "1"})


def _request_id(headers: Headers) -> str:
    given = headers.only("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _same_site(headers: Headers, host: str) -> bool:
    """Whether no browser sent this, or one that shows a page of ours."""
    if headers.only("sec-fetch-site", "none") not in ("none", "same-origin"):
        return False
    origin = headers.only("origin", "")
    return not origin or origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())


async def _drain(receive: Receive, headers: Headers, seconds: float) -> None:
    """Read what a refused client is still sending, and forget it, so that it gets to read the answer."""
    if not seconds or (headers.only("content-length", "0") == "0" and not headers.only("transfer-encoding")):
        return
    left = DRAINED_BYTES
    try:
        async with asyncio.timeout(seconds):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return


def _noting(send: Send, seen: Seen) -> Send:
    """Note the status, and add our headers to every answer."""
    ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            seen.status = message["status"]
            theirs = list(message.get("headers", []))
            message = {**message, "headers": [*theirs, *ours, (b"x-request-id", seen.id.encode())]}
        elif seen.status >= 400:
            seen.code = error_code(message.get("body", b""))
        await send(message)

    return sending
