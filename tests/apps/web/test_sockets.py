"""Sockets to listen on."""

from __future__ import annotations

import pytest

from strays.apps.web.sockets import bind, require_extra
from strays.errors import StraysError, UsageError


def test_a_socket_listens_on_this_machine_only_unless_asked_otherwise() -> None:
    with bind(0) as one, bind(0, "0.0.0.0") as other:
        assert one.getsockname()[0] == "127.0.0.1"
        assert other.getsockname()[0] == "0.0.0.0"
        assert one.getsockname()[1] != other.getsockname()[1] != 0


def test_the_port_used_before_is_used_again_if_it_is_free() -> None:
    with bind(0) as one:
        port = one.getsockname()[1]
        with bind(0, before=port) as other:
            assert other.getsockname()[1] != port
        with pytest.raises(UsageError, match=f"port {port} cannot be used") as raised:
            bind(port)
        assert raised.value.param == "port"
    with bind(0, before=port) as again:
        assert again.getsockname()[1] == port


def test_a_host_that_is_none() -> None:
    with pytest.raises(UsageError, match="not an address of this machine") as raised:
        bind(0, "no.such.host.example")
    assert raised.value.param == "host"


def test_packages_that_are_not_installed() -> None:
    require_extra("a model", "serve", "json", "socket")
    with pytest.raises(StraysError, match=r"needs no_such_package; .* pip install 'strays\[serve\]'"):
        require_extra("a model", "serve", "json", "no_such_package")
