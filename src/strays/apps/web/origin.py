"""Origin: requests that pages of other sites send are refused (403).

Any page that a browser shows can send requests here. The browser then says so: by Sec-Fetch-Site, and by Origin if the
request can change something. Other programs send neither header.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.responses import Response
from starlette.types import Scope

from strays.apps.web.answers import refuse
from strays.apps.web.asgi import Check, header

SAFE_METHODS = frozenset(("GET", "HEAD"))


def same_origin(
    *, linkable: Collection[str] = (), schemes: Collection[str] = ("http", "https"), safe_origins: bool = False
) -> Check:
    """Refuse requests from pages of other sites. It goes after `trusted_host`, as it trusts the Host header.

    linkable      paths that a page of another site may link to
    schemes       what our own origin can start with
    safe_origins  whether GET and HEAD may come with any Origin, because they change nothing
    """

    def check(scope: Scope) -> Response | None:
        same_site = header(scope, b"sec-fetch-site", "none") in ("none", "same-origin") or scope["path"] in linkable
        ours = [f"{scheme}://{header(scope, b'host').lower()}" for scheme in schemes]
        any_origin = safe_origins and scope["method"] in SAFE_METHODS
        if same_site and (any_origin or header(scope, b"origin", ours[0]).lower() in ours):
            return None
        return refuse(403, "wrong_origin", "requests from pages of other sites are refused")

    return check
