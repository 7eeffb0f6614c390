"""Host header: which names a request may call us by (421).

A page can have its own name resolve to our address (DNS rebinding), and its requests then count as same-origin in the
browser. They still carry that name in the Host header, so any name but ours is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from strays.apps.web.answers import refuse
from strays.apps.web.asgi import header


class TrustedHost:
    """Refuse requests whose Host header `is_allowed` does not accept; `remedy` tells what to do about it."""

    def __init__(self, app: ASGIApp, is_allowed: Callable[[str], bool], *, remedy: str) -> None:
        self._app, self._is_allowed = app, is_allowed
        self._message = f"Host header not allowed; {remedy}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if self._is_allowed(header(scope, b"host")):
            await self._app(scope, receive, send)
        else:
            await refuse(421, "wrong_host", self._message)(scope, receive, send)


def loopback(port: int) -> Callable[[str], bool]:
    """Allow this machine's own names, with this port.

    >>> is_allowed = loopback(8000)
    >>> is_allowed("localhost:8000"), is_allowed("localhost"), is_allowed("evil.example:8000")
    (True, False, False)
    """
    names = ("127.0.0.1", "localhost", "[::1]")
    hosts = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())
    return hosts.__contains__


def names_and_addresses(names: Iterable[str]) -> Callable[[str], bool]:
    """Allow `localhost`, these names and any IP address (only names can be rebound), with any port.

    >>> is_allowed = names_and_addresses(["odd.example.org"])
    >>> is_allowed("odd.example.org"), is_allowed("10.0.0.7:8000"), is_allowed("evil.example")
    (True, True, False)
    """
    allowed = {"localhost", *(name.lower() for name in names)}

    def is_allowed(host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name.rstrip(".") in allowed or _is_address(name)

    return is_allowed


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
