"""Content type: bodies must be JSON, and say so (415). A form of another site's page cannot send that type."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from strays.apps.web.answers import refuse
from strays.apps.web.asgi import header


class JsonOnly:
    """Refuse requests whose Content-Type is not application/json."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if header(scope, b"content-type").partition(";")[0].strip().lower() == "application/json":
            await self._app(scope, receive, send)
        else:
            await refuse(415, "not_json", "expected Content-Type: application/json")(scope, receive, send)
