"""The desk's link: whoever has it gets in, nobody else does (403).

`strays review` prints http://127.0.0.1:PORT/#token=TOKEN. A browser sends to no server what follows the #: the page
takes the token from there and sends it as `Authorization: Bearer TOKEN`, to this desk alone. (A cookie would go to
every server on this machine, whatever its port.) The page and its files hold no texts and need no token.
"""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import Scope

from strays.apps.web.answers import refuse
from strays.apps.web.asgi import Check
from strays.apps.web.origin import SAFE_METHODS
from strays.apps.web.sockets import LOOPBACK
from strays.apps.web.token import has_bearer

STATIC = "/static/"


def desk_link(port: int, token: str) -> str:
    """The link to open.

    >>> desk_link(8123, "s3cret")
    'http://127.0.0.1:8123/#token=s3cret'
    """
    return f"http://{LOOPBACK}:{port}/#token={token}"


def is_page_file(scope: Scope) -> bool:
    """Whether the page or one of its files is asked for."""
    return scope["method"] in SAFE_METHODS and (scope["path"] == "/" or scope["path"].startswith(STATIC))


def link_token(token: str) -> Check:
    """Refuse requests without the link's token."""
    expected = token.encode()

    def check(scope: Scope) -> Response | None:
        if has_bearer(scope, expected):
            return None
        words = "open the link that strays review printed: it carries a token that lets you in"
        return refuse(403, "no_token", words)

    return check
