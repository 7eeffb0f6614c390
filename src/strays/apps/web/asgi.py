"""Requests and answers below any framework: for refusals that come before the app."""

from __future__ import annotations

import hmac
import json
from typing import Any

from starlette.types import Scope, Send


class Headers:
    """The headers of a request."""

    def __init__(self, scope: Scope) -> None:
        self._values: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            self._values.setdefault(name, []).append(value)

    def only(self, name: str, default: str | None = None) -> str:
        """The value of a header that comes once; what cannot be right where it comes more often."""
        found = self._values.get(name.encode())
        if not found:
            return default or ""
        return found[0].decode("latin-1") if len(found) == 1 else "\x00"


class Answer:
    """A whole answer, made without the app."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @classmethod
    def error(cls, status: int, code: str, message: str, **headers: str) -> Answer:
        """An error in the shape that all of ours have."""
        body = json.dumps(error_body(code, message)).encode()
        return cls(status, {"content-type": "application/json", **headers}, body)

    async def send(self, send: Send) -> None:
        """Send it."""
        headers = {"content-length": str(len(self.body)), **self.headers}
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": pairs})
        await send({"type": "http.response.body", "body": self.body})


def error_body(code: str, message: str) -> dict[str, Any]:
    """What every error looks like."""
    return {"error": {"code": code, "message": message}}


def error_code(body: bytes) -> str | None:
    """The code of an error in our shape; None where it is none."""
    try:
        return str(json.loads(body)["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return None


def is_token(given: str, token: bytes) -> bool:
    """Whether this is the token, found out in a time that does not tell how much of it is right."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token)


def has_bearer(headers: Headers, token: bytes) -> bool:
    """Whether the request carries the token as `Authorization: Bearer TOKEN`."""
    given = headers.only("authorization", "")
    return given[:7].lower() == "bearer " and is_token(given[7:].strip(), token)
