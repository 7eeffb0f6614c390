"""A socket to listen on, and the packages that serving needs."""

from __future__ import annotations

import os
import socket

from strays.errors import StraysError, UsageError

LOOPBACK = "127.0.0.1"


def require_extra(what: str, extra: str, *packages: str) -> None:
    """Raise if packages needed to serve `what` are not installed."""
    from importlib.util import find_spec

    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise StraysError(
            f"serving {what} needs {', '.join(missing)}; install what is missing with: pip install 'strays[{extra}]'"
        )


def bind(port: int, host: str = LOOPBACK, before: int | None = None) -> socket.socket:
    """A listening socket. Port 0 takes the port used `before` if it is free, else any free one."""
    if not port and before:
        try:
            return bind(before, host)
        except UsageError:
            pass  # another program has it now
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise UsageError(
            f"{{host}} is {host!r:.80}, which is not an address of this machine ({error.strerror})", param="host"
        ) from error
    if os.name == "posix":  # elsewhere it would let another program take the port as well
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(2048)  # now nobody else gets it, however long loading takes
    except OSError as error:
        bound.close()
        raise UsageError(
            f"port {port} cannot be used ({error.strerror}); choose another with {{port}}", param="port"
        ) from error
    return bound
