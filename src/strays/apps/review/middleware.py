"""The desk's middleware, outermost first, with the status of what each refuses.

http_only > SecurityHeaders > AnswerCancelled (503 if the desk stops first) > DrainRefused > one_length (400)
> trusted_host (421) > same_origin (403)
and then, but for the page and its files:
> json_only (415) > length_limit (413) if it can change something > link_token (403) > RequestLimit (429)
> BufferedBody (413, 408, 400; 429 if too much is held) if it can change something

The desk listens on this machine only, but any page that a browser shows can send requests there, and so can any
program.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Scope

from strays.apps.review.link import is_page_file, link_token
from strays.apps.web.asgi import checked, http_only, split
from strays.apps.web.body import BufferedBody, json_only, length_limit
from strays.apps.web.busy import RequestLimit
from strays.apps.web.drain import DrainRefused
from strays.apps.web.framing import one_length
from strays.apps.web.headers import SecurityHeaders
from strays.apps.web.host import loopback, trusted_host
from strays.apps.web.origin import SAFE_METHODS, same_origin
from strays.apps.web.stopping import AnswerCancelled

MAX_BODY_BYTES, MAX_HELD_BYTES = 1_000_000, 32_000_000
MAX_REQUESTS = 100  # under way at once, of those who have the token
BODY_SECONDS = 30.0
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
    body = BufferedBody(app, MAX_BODY_BYTES, max_seconds=BODY_SECONDS, max_held_bytes=MAX_HELD_BYTES)
    let_in = RequestLimit(split(_is_safe, app, body), MAX_REQUESTS)
    look = checked(let_in, link_token(token))
    change = checked(let_in, json_only, length_limit(MAX_BODY_BYTES), link_token(token))
    shell = checked(
        split(is_page_file, app, split(_is_safe, look, change)),
        one_length,
        trusted_host(loopback(port), remedy="use the link as it was printed"),
        same_origin(linkable=["/"], schemes=["http"], safe_origins=True),
    )
    shell = AnswerCancelled(DrainRefused(shell))
    return http_only(SecurityHeaders(shell, HEADERS), lifespan=app)


def _is_safe(scope: Scope) -> bool:
    return scope["method"] in SAFE_METHODS
