"""Host header: which names a request may call us by (421).

A page can have its own name resolve to our address (DNS rebinding), and its requests then count as same-origin in the
browser. They still carry that name in the Host header, so any name but ours is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import Scope

from strays.apps.web.answers import refuse
from strays.apps.web.asgi import Check, header


def trusted_host(is_allowed: Callable[[str], bool], *, remedy: str) -> Check:
    """Refuse requests whose Host header `is_allowed` does not accept; `remedy` tells what to do about it."""

    def check(scope: Scope) -> Response | None:
        if is_allowed(header(scope, b"host")):
            return None
        return refuse(421, "wrong_host", f"Host header not allowed; {remedy}")

    return check


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
            return name.rstrip(".") in allowed or ip_address(name) is not None
        except ValueError:  # no host, or no address
            return False

    return is_allowed
