"""The desk's middleware, outermost first: the order in which a request is checked.

- HttpOnly: web sockets are closed
- SecurityHeaders: on every answer
- TrustedHost: 421
- SameOrigin: 403

For requests that can change something:

- JsonOnly: 415
- BodyLimit: 413

Then:

- LinkToken: 403

The desk listens on this machine only, but any page that a browser shows can send requests there.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Scope

from strays.apps.review.link import LinkToken
from strays.apps.web.asgi import HttpOnly, split
from strays.apps.web.body_limit import BodyLimit
from strays.apps.web.content_type import JsonOnly
from strays.apps.web.headers import SecurityHeaders
from strays.apps.web.host import TrustedHost, loopback
from strays.apps.web.origin import SAFE_METHODS, SameOrigin

MAX_BODY_BYTES = 1_000_000
# Our own page may use what we send, nobody else, and it loads nothing from elsewhere.
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


def with_middleware(app: ASGIApp, *, port: int, token: str) -> ASGIApp:
    """Wrap the desk's app, which listens on this port and whose link carries this token."""
    entry = LinkToken(app, token, cookie=f"strays_{port}")
    shell: ASGIApp = split(_is_safe, entry, JsonOnly(BodyLimit(entry, MAX_BODY_BYTES)))
    shell = SameOrigin(shell, linkable=["/"], schemes=["http"], safe_origins=True)
    shell = TrustedHost(shell, loopback(port), remedy="use the link as it was printed")
    shell = SecurityHeaders(shell, HEADERS)
    return HttpOnly(shell, lifespan=app)


def _is_safe(scope: Scope) -> bool:
    return scope["method"] in SAFE_METHODS
