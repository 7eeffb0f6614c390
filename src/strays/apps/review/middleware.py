"""The desk's middleware, outermost first, with the status of what each refuses.

http_only > SecurityHeaders > trusted_host (421) > same_origin (403) > LinkToken (403)
and for requests that can change something, around LinkToken:
json_only (415) > length_limit (413) > LinkToken (403) > BufferedBody (413 and 400)

The desk listens on this machine only, but any page that a browser shows can send requests there.
"""

from __future__ import annotations

from starlette.types import ASGIApp

from strays.apps.review.link import LinkToken
from strays.apps.web.asgi import checked, http_only, split
from strays.apps.web.body import BufferedBody, json_only, length_limit
from strays.apps.web.headers import SecurityHeaders
from strays.apps.web.host import loopback, trusted_host
from strays.apps.web.origin import SAFE_METHODS, same_origin

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
    link = LinkToken(token, cookie=f"strays_{port}")
    changes = checked(BufferedBody(app, MAX_BODY_BYTES), json_only, length_limit(MAX_BODY_BYTES), link)
    shell = checked(
        split(lambda scope: scope["method"] in SAFE_METHODS, checked(app, link), changes),
        trusted_host(loopback(port), remedy="use the link as it was printed"),
        same_origin(linkable=["/"], schemes=["http"], safe_origins=True),
    )
    return http_only(SecurityHeaders(shell, HEADERS), lifespan=app)
