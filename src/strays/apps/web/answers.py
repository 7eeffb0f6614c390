"""JSON answers and errors: {"error": {"code": ..., "message": ...}}, which never quote the text they are about."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from strays.errors import StraysError, UsageError

# What pydantic reports if there is no body, or one that is not an object.
NO_OBJECT = ("missing", "model_attributes_type", "dict_type")
CODES = {404: "not_found", 405: "method_not_allowed"}


class Json(Response):
    r"""A JSON answer in ASCII: lone surrogates, which UTF-8 cannot hold, travel as escapes.

    >>> Json({"text": "caf\u00e9"}).body
    b'{"text":"caf\\u00e9"}'
    """

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Encode the content."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def refuse(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    """An error answer."""
    return Json({"error": {"code": code, "message": message}}, status, headers)


def error_code(body: bytes) -> str | None:
    """The code in the body of an error answer; None if it is something else."""
    try:
        return str(json.loads(body)["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return None


def add_errors(app: FastAPI, *, besides: str = "") -> None:
    """Have an app answer every error in the shape above; `besides` is added to the message of unexpected errors."""

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        # Where and what, never the value itself: it may be anything.
        found = [(".".join(map(str, part["loc"])), part["type"], part["msg"]) for part in error.errors()]
        if any(kind == "json_invalid" for _, kind, _ in found):
            return refuse(400, "not_json", "the body is not valid JSON")
        if any(where == "body" and kind in NO_OBJECT for where, kind, _ in found):
            return refuse(422, "invalid", "body: expected a JSON object")
        words = [f"{where}: {message.removeprefix('Value error, ')}" for where, _, message in found[:5]]
        return refuse(422, "invalid", "; ".join(words))

    @app.exception_handler(StraysError)
    def failed(request: Request, error: StraysError) -> Response:
        return refuse(422 if isinstance(error, UsageError) else 500, "failed", str(error))

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        code, headers = CODES.get(error.status_code, "refused"), dict(error.headers or {})
        allowed = f"; this path takes {headers['Allow']}" if "Allow" in headers else ""
        return refuse(error.status_code, code, f"{error.detail}{allowed}", headers)

    @app.exception_handler(Exception)
    def broken(request: Request, error: Exception) -> Response:
        return refuse(500, "broken", f"internal error ({type(error).__name__}){besides}")
