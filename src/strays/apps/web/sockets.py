"""A socket to listen on, and the packages that serving needs."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from importlib.util import find_spec

from strays.errors import StraysError, UsageError

LOOPBACK = "127.0.0.1"


def require_extra(what: str, extra: str, *packages: str) -> None:
    """Raise if packages needed to serve `what` are not installed."""
    if missing := ", ".join(package for package in packages if find_spec(package) is None):
        words = f"serving {what} needs {missing}; install what is missing with: pip install 'strays[{extra}]'"
        raise StraysError(words)


def bind(port: int, host: str = LOOPBACK, before: int | None = None) -> socket.socket:
    """A listening socket. Port 0 takes the port used `before` if it is free, else any free one."""
    if not port and before:
        with suppress(UsageError):  # another program has it now
            return bind(before, host)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        words = f"{{host}} is {host!r:.80}, which is not an address of this machine ({error.strerror})"
        raise UsageError(words, param="host") from error
    if os.name == "posix":  # elsewhere it would let another program take the port as well
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(2048)  # now nobody else gets it, however long loading takes
    except OSError as error:
        bound.close()
        words = f"port {port} cannot be used ({error.strerror}); choose another with {{port}}"
        raise UsageError(words, param="port") from error
    return bound
