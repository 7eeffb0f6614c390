"""What stands between the network and the desk: whoever has not got the link gets nothing, and no web page either.

The server listens on this machine only, but any page that a browser shows can send requests there. So every request
must carry the token, name us as its host (a name that was rebound to 127.0.0.1 is refused), and, where it changes
something, come from our own page. What we send may be used by our own page only, and loads nothing from elsewhere.
"""

from __future__ import annotations

import hmac
import json
from typing import Any
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 1_000_000
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
USE_THE_LINK = (
    "Please open the link that strays review printed when it was started: it carries a token that lets you in."
)


class Guard:
    """Wraps the app; `port` is ours, `token` what the link carries."""

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app = app
        self._token = token.encode()
        self._cookie = f"strays_{port}"
        names = ("127.0.0.1", "localhost", "[::1]")
        self._hosts = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with the reason why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _Headers(scope)
        answer = self._refusal(scope, headers) or self._entry(scope, headers)
        if answer is None:
            await self._app(scope, _limited(receive), _with_headers(send))
            return
        await answer.send(_with_headers(send))

    def _refusal(self, scope: Scope, headers: _Headers) -> _Answer | None:
        host = headers.only("host")
        if host not in self._hosts:
            return _Answer.error(
                421, "wrong_host", "this is not the host you asked for; use the link as it was printed"
            )
        ours = headers.only("sec-fetch-site", "same-origin") in ("same-origin", "none")
        if not ours and scope["path"] != "/":  # where the link may be clicked on any page
            return _Answer.error(403, "wrong_origin", "only the desk's own page may do this")
        if scope["method"] in ("GET", "HEAD"):
            return None
        if headers.only("origin", f"http://{host}") != f"http://{host}":
            return _Answer.error(403, "wrong_origin", "only the desk's own page may do this")
        if headers.only("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _Answer.error(415, "not_json", "expected Content-Type: application/json")
        length = headers.only("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            return _Answer.error(413, "too_large", f"expected a body of at most {MOST_BYTES:,} bytes")
        return None

    def _entry(self, scope: Scope, headers: _Headers) -> _Answer | None:
        """Nothing where the token is there; else the way in, where the link has it, or a refusal."""
        if scope["path"] == "/" and scope["method"] == "GET":
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
            if given:
                return self._way_in(headers) if len(given) == 1 and self._is_token(given[0]) else _Answer.page(403)
        bearer = headers.only("authorization", "")
        if bearer[:7].lower() == "bearer " and self._is_token(bearer[7:].strip()):
            return None
        # Other servers of this machine share our cookies, so that any may be beside ours.
        cookies = dict(part.strip().partition("=")[::2] for part in headers.only("cookie", "").split(";"))
        if self._is_token(cookies.get(self._cookie, "")):
            return None
        if scope["path"] == "/":
            return _Answer.page(403)
        return _Answer.error(403, "no_token", USE_THE_LINK)

    def _way_in(self, headers: _Headers) -> _Answer:
        cookie = f"{self._cookie}={self._token.decode()}; Path=/; HttpOnly; SameSite=Strict"
        if headers.only("sec-fetch-site", "none") in ("none", "same-origin"):
            return _Answer(303, {"location": "/", "set-cookie": cookie}, b"")
        # A strict cookie is not sent on a redirect that began on another site; from a page of ours it is.
        return _Answer(200, {"refresh": "0; url=/", "set-cookie": cookie, "content-type": "text/plain"}, b"one moment")

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)


class _Headers:
    def __init__(self, scope: Scope) -> None:
        self._pairs: list[tuple[bytes, bytes]] = scope["headers"]

    def only(self, name: str, default: str | None = None) -> str:
        """The value of a header that comes once; what cannot be right where it comes more often."""
        found = [value.decode("latin-1") for key, value in self._pairs if key == name.encode()]
        if not found:
            return default or ""
        return found[0] if len(found) == 1 else "\x00"


class _Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @classmethod
    def error(cls, status: int, code: str, message: str) -> _Answer:
        body = json.dumps({"error": {"code": code, "message": message}}).encode()
        return cls(status, {"content-type": "application/json"}, body)

    @classmethod
    def page(cls, status: int) -> _Answer:
        body = f"<!doctype html><meta charset=utf-8><title>strays review</title><p>{USE_THE_LINK}</p>"
        return cls(status, {"content-type": "text/html; charset=utf-8"}, body.encode())

    async def send(self, send: Send) -> None:
        headers = {"content-length": str(len(self.body)), **self.headers}
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": pairs})
        await send({"type": "http.response.body", "body": self.body})


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            theirs = [pair for pair in message.get("headers", []) if pair[0].decode("latin-1").lower() not in HEADERS]
            message = {**message, "headers": [*theirs, *ours]}
        await send(message)

    return sending


def _limited(receive: Receive) -> Receive:
    """A body sent in pieces, whose length nobody said before, ends where it grows too large."""
    taken = 0

    async def receiving() -> Message:
        nonlocal taken
        message: Any = await receive()
        taken += len(message.get("body", b""))
        return {"type": "http.disconnect"} if taken > MOST_BYTES else message

    return receiving
