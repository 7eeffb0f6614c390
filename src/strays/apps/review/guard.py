"""What stands between the network and the desk: whoever has not got the link gets nothing, and no web page either.

The server listens on this machine only, but any page that a browser shows can send requests there. So every request
must carry the token, name us as its host (a name that was rebound to 127.0.0.1 is refused), and, where it changes
something, come from our own page. What we send may be used by our own page only, and loads nothing from elsewhere.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strays.apps.web.asgi import Answer, Headers, has_bearer, is_token

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
        headers = Headers(scope)
        answer = self._refusal(scope, headers) or self._entry(scope, headers)
        if answer is None:
            await self._app(scope, _limited(receive), _with_headers(send))
            return
        await answer.send(_with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> Answer | None:
        host = headers.only("host")
        if host not in self._hosts:
            return Answer.error(421, "wrong_host", "this is not the host you asked for; use the link as it was printed")
        ours = headers.only("sec-fetch-site", "same-origin") in ("same-origin", "none")
        if not ours and scope["path"] != "/":  # where the link may be clicked on any page
            return Answer.error(403, "wrong_origin", "only the desk's own page may do this")
        if scope["method"] in ("GET", "HEAD"):
            return None
        if headers.only("origin", f"http://{host}") != f"http://{host}":
            return Answer.error(403, "wrong_origin", "only the desk's own page may do this")
        if headers.only("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return Answer.error(415, "not_json", "expected Content-Type: application/json")
        length = headers.only("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            return Answer.error(413, "too_large", f"expected a body of at most {MOST_BYTES:,} bytes")
        return None

    def _entry(self, scope: Scope, headers: Headers) -> Answer | None:
        """Nothing where the token is there; else the way in, where the link has it, or a refusal."""
        if scope["path"] == "/" and scope["method"] == "GET":
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
            if given:
                return self._way_in(headers) if len(given) == 1 and is_token(given[0], self._token) else _page(403)
        if has_bearer(headers, self._token):
            return None
        # Other servers of this machine share our cookies, so that any may be beside ours.
        cookies = dict(part.strip().partition("=")[::2] for part in headers.only("cookie", "").split(";"))
        if is_token(cookies.get(self._cookie, ""), self._token):
            return None
        if scope["path"] == "/":
            return _page(403)
        return Answer.error(403, "no_token", USE_THE_LINK)

    def _way_in(self, headers: Headers) -> Answer:
        cookie = f"{self._cookie}={self._token.decode()}; Path=/; HttpOnly; SameSite=Strict"
        if headers.only("sec-fetch-site", "none") in ("none", "same-origin"):
            return Answer(303, {"location": "/", "set-cookie": cookie}, b"")
        # A strict cookie is not sent on a redirect that began on another site; from a page of ours it is.
        return Answer(200, {"refresh": "0; url=/", "set-cookie": cookie, "content-type": "text/plain"}, b"one moment")


def _page(status: int) -> Answer:
    body = f"<!doctype html><meta charset=utf-8><title>strays review</title><p>{USE_THE_LINK}</p>"
    return Answer(status, {"content-type": "text/html; charset=utf-8"}, body.encode())


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
