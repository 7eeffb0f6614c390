"""Token: who may call (401)."""

from __future__ import annotations

import hmac
from collections.abc import Collection

from starlette.types import ASGIApp, Receive, Scope, Send

from strays.apps.web.answers import refuse
from strays.apps.web.asgi import header


class BearerToken:
    """Refuse requests without `Authorization: Bearer TOKEN`, except `open_to_all`, pairs of method and path."""

    def __init__(self, app: ASGIApp, token: str, *, open_to_all: Collection[tuple[str, str]] = ()) -> None:
        self._app, self._token, self._open_to_all = app, token.encode(), open_to_all

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if (scope["method"], scope["path"]) in self._open_to_all or has_bearer(scope, self._token):
            await self._app(scope, receive, send)
            return
        code, message = "no_token", "expected the header Authorization: Bearer TOKEN"
        if header(scope, b"authorization"):
            code, message = "wrong_token", "the token is wrong"
        await refuse(401, code, message, {"www-authenticate": "Bearer"})(scope, receive, send)


def has_bearer(scope: Scope, token: bytes) -> bool:
    """Whether a request carries the token as `Authorization: Bearer TOKEN`."""
    given = header(scope, b"authorization")
    return given[:7].lower() == "bearer " and is_token(given[7:].strip(), token)


def is_token(given: str, token: bytes) -> bool:
    """Whether this is the token; the time it takes does not tell how much of it is right.

    >>> is_token("secret", b"secret"), is_token("secret!", b"secret")
    (True, False)
    """
    return hmac.compare_digest(given.encode("utf-8", "replace"), token)
