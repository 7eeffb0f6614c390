"""The desk's link: whoever has it gets in, nobody else does (403).

`strays review` prints a link with a token. Opening it sets a cookie, which the page's requests carry from then on.
Programs can send the token as `Authorization: Bearer TOKEN` instead.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.types import Scope

from strays.apps.web.answers import refuse
from strays.apps.web.asgi import header
from strays.apps.web.token import has_bearer, is_token

USE_THE_LINK = "Please open the link that strays review printed: it carries a token that lets you in."


class LinkToken:
    """Let requests in that carry the token, and turn the link's token into a cookie of this name."""

    def __init__(self, token: str, *, cookie: str) -> None:
        self._token, self._cookie = token.encode(), cookie

    def __call__(self, scope: Scope) -> Response | None:
        """Check one request."""
        is_page = scope["path"] == "/"
        if is_page and scope["method"] == "GET":
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
            if given:
                return self._enter(scope) if len(given) == 1 and is_token(given[0], self._token) else _refusal_page()
        if has_bearer(scope, self._token) or self._has_cookie(scope):
            return None
        return _refusal_page() if is_page else refuse(403, "no_token", USE_THE_LINK)

    def _has_cookie(self, scope: Scope) -> bool:
        # Browsers send the cookies of all servers on this machine: ours may be among others.
        cookies = dict(part.strip().partition("=")[::2] for part in header(scope, b"cookie").split(";"))
        return is_token(cookies.get(self._cookie, ""), self._token)

    def _enter(self, scope: Scope) -> Response:
        cookie = f"{self._cookie}={self._token.decode()}; Path=/; HttpOnly; SameSite=Strict"
        if header(scope, b"sec-fetch-site", "none") in ("none", "same-origin"):
            return Response(status_code=303, headers={"location": "/", "set-cookie": cookie})
        # A strict cookie is not sent on a redirect that began on another site, but it is from a page of ours.
        headers = {"refresh": "0; url=/", "set-cookie": cookie, "content-type": "text/plain"}
        return Response(b"one moment", headers=headers)


def _refusal_page() -> Response:
    body = f"<!doctype html><meta charset=utf-8><title>strays review</title><p>{USE_THE_LINK}</p>"
    return Response(body, 403, {"content-type": "text/html; charset=utf-8"})
