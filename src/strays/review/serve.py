"""The desk's server: on this machine only, on a free port unless one is asked for, until it is stopped."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from typing import Any

from strays.errors import StraysError, UsageError
from strays.review.backroom import Backroom
from strays.review.desk import Desk

ADDRESS = "127.0.0.1"


def require_extra() -> None:
    """Raise where the packages that serve pages are not installed."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise StraysError(
            "the desk is served with fastapi and uvicorn, which are not installed; get them with: "
            "pip install 'strays[review]'"
        ) from error


def bind(port: int, before: int | None = None) -> socket.socket:
    """A socket of this machine; on the port used before, or any free one, where none (0) is asked for."""
    if not port and before:
        try:
            return bind(before)
        except UsageError:
            pass  # another program has it now
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":  # elsewhere it would let another program take the port as well
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((ADDRESS, port))
        bound.listen()  # now nobody else gets it, however long encoding takes
    except OSError as error:
        bound.close()
        raise UsageError(
            f"port {port} cannot be used ({error.strerror}); choose another with --port, or leave it away"
        ) from error
    return bound


def serve(desk: Desk, bound: socket.socket, *, who: str, model_folder: str, announce: Callable[[str], None]) -> None:
    """Serve a desk until stopped; `announce` is called with the link once the server answers."""
    import uvicorn

    from strays.review.app import make_app
    from strays.review.guard import Guard

    port = bound.getsockname()[1]
    desk.store.set(port=port)
    token = secrets.token_urlsafe(32)
    app = make_app(desk, who=who, model_folder=model_folder)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                announce(f"http://{ADDRESS}:{port}/?token={token}")

    options: dict[str, Any] = {
        "lifespan": "off",
        "access_log": False,  # it would write tokens and searches down
        "log_config": None,
        "log_level": "critical",  # tracebacks may hold texts
        "server_header": False,
        "timeout_graceful_shutdown": 3,
        "ws": "none",
    }
    backroom = Backroom(desk)
    try:
        Server(uvicorn.Config(Guard(app, port=port, token=token), **options)).run([bound])
    finally:
        app.state.explainer.close()
        backroom.close()
        desk.store.close()
