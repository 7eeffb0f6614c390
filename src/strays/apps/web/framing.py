"""Framing: a request whose length can be read in two ways is refused (400), and its connection closed.

With Content-Length and Transfer-Encoding, or with Transfer-Encoding in HTTP/1.0, two programs on the way may each see
the body end elsewhere, and one of them may take what is left for another request (RFC 9112, section 6.1).
"""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import Scope

from strays.apps.web.answers import refuse
from strays.apps.web.asgi import header


def one_length(scope: Scope) -> Response | None:
    """Refuse a request whose body may have two lengths."""
    if not header(scope, b"transfer-encoding"):
        return None
    if not header(scope, b"content-length") and scope.get("http_version") != "1.0":
        return None
    words = "expected Content-Length or, in HTTP/1.1, Transfer-Encoding, not both"
    return refuse(400, "two_lengths", words, {"connection": "close"})
