"""The desk's server: on this machine only, on a free port unless one is asked for, until it is stopped."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from typing import Any

from strays.apps.review.desk import Desk
from strays.apps.review.refit import RefitWorker
from strays.apps.web.sockets import LOOPBACK


def serve(desk: Desk, bound: socket.socket, *, who: str, model_folder: str, announce: Callable[[str], None]) -> None:
    """Serve a desk until stopped; `announce` is called with the link once the server answers."""
    import uvicorn

    from strays.apps.review.app import make_app
    from strays.apps.review.middleware import with_middleware
    from strays.apps.web.connections import QUIET

    port = bound.getsockname()[1]
    desk.store.set(port=port)
    token = secrets.token_urlsafe(32)
    app = make_app(desk, who=who, model_folder=model_folder)

    class AnnouncingServer(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                announce(f"http://{LOOPBACK}:{port}/?token={token}")

    options: dict[str, Any] = {**QUIET, "lifespan": "off", "timeout_graceful_shutdown": 3}
    worker = RefitWorker(desk)
    worker.start()
    try:
        shell = with_middleware(app, port=port, token=token)
        AnnouncingServer(uvicorn.Config(shell, **options)).run([bound])
    finally:
        app.state.explainer.close()
        worker.close()
        desk.store.close()
