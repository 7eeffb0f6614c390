"""Origin: requests that pages of other sites send are refused (403).

Any page that a browser shows can send requests here. The browser then says so: by Sec-Fetch-Site, and by Origin if the
request can change something. Other programs send neither header.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.types import ASGIApp, Receive, Scope, Send

from strays.apps.web.answers import refuse
from strays.apps.web.asgi import header

SAFE_METHODS = frozenset(("GET", "HEAD"))


class SameOrigin:
    """Refuse requests from pages of other sites. It goes inside TrustedHost, as it trusts the Host header.

    linkable      paths that a page of another site may link to
    schemes       what our own origin can start with
    safe_origins  whether GET and HEAD may come with any Origin, because they change nothing
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        linkable: Collection[str] = (),
        schemes: Collection[str] = ("http", "https"),
        safe_origins: bool = False,
    ) -> None:
        self._app = app
        self._linkable, self._schemes, self._safe_origins = linkable, tuple(schemes), safe_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if self._is_ours(scope):
            await self._app(scope, receive, send)
        else:
            await refuse(403, "wrong_origin", "requests from pages of other sites are refused")(scope, receive, send)

    def _is_ours(self, scope: Scope) -> bool:
        same_site = header(scope, b"sec-fetch-site", "none") in ("none", "same-origin")
        if not same_site and scope["path"] not in self._linkable:
            return False
        if self._safe_origins and scope["method"] in SAFE_METHODS:
            return True
        host = header(scope, b"host").lower()
        ours = [f"{scheme}://{host}" for scheme in self._schemes]
        return header(scope, b"origin", ours[0]).lower() in ours
