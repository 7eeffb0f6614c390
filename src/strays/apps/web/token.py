"""Token: who may call (401)."""

from __future__ import annotations

import hmac
from collections.abc import Collection

from starlette.responses import Response
from starlette.types import Scope

from strays.apps.web.answers import refuse
from strays.apps.web.asgi import Check, header


def bearer_token(token: str, *, open_to_all: Collection[tuple[str, str]] = ()) -> Check:
    """Refuse requests without `Authorization: Bearer TOKEN`, except `open_to_all`, pairs of method and path."""
    expected = token.encode()

    def check(scope: Scope) -> Response | None:
        if (scope["method"], scope["path"]) in open_to_all or has_bearer(scope, expected):
            return None
        code, message = "no_token", "expected the header Authorization: Bearer TOKEN"
        if header(scope, b"authorization"):
            code, message = "wrong_token", "the token is wrong"
        return refuse(401, code, message, {"www-authenticate": "Bearer"})

    return check


def has_bearer(scope: Scope, token: bytes) -> bool:
    """Whether a request carries the token as `Authorization: Bearer TOKEN`."""
    given = header(scope, b"authorization")
    return given[:7].lower() == "bearer " and is_token(given[7:].strip(), token)


def is_token(given: str, token: bytes) -> bool:
    """Whether this is the token; the time it takes does not tell how much of it is right."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token)
