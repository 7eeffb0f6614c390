"""Paths: what is not served exactly is not found (404)."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from strays.apps.web.answers import refuse


class KnownPaths:
    """Refuse paths the app does not serve. The app's own router also takes paths that are merely like one of them."""

    def __init__(self, app: ASGIApp, paths: Iterable[str]) -> None:
        self._app, self._paths = app, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["path"] in self._paths:
            await self._app(scope, receive, send)
        else:
            await refuse(404, "not_found", "no such path; see /openapi.json")(scope, receive, send)
