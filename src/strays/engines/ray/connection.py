"""Being connected to a Ray cluster: one that is there, or one of this machine's own, which nobody else can reach."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from strays.encoders.runtimes.base import usable_cores
from strays.errors import ClusterError, UsageError, first_line

SECONDS_TO_ANSWER = 10.0
# How long the threads of a job that was broken off may take to end.
SECONDS_TO_END = 60.0
# A thread of Ray Data that sleeps, and is never woken, once its job was broken off.
ASLEEP = "Prefetcher"
# What a client of gRPC says first, with an empty frame of settings, and the kind of frame that a server answers with.
HTTP2_SETTINGS = b"\x04"
HTTP2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0" + HTTP2_SETTINGS + b"\0" * 5
# Unless this is 0, Ray takes 127.0.0.1 for a name of the network's address.
NETWORKED = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# What stops a job.
STOPS = (signal.SIGINT, signal.SIGTERM)


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of an address, which must have both."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise UsageError(
            f"{{address}} is {address!r}; expected HOST:PORT, as `ray start --head` prints it", param="address"
        )
    return host.strip("[]"), int(port)


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected and quiet; where this process was connected already, it stays so."""
    if "ray" not in sys.modules:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read at the import; nothing is sent anywhere
    import ray

    with ExitStack() as stack:
        if address is not None and ray.is_initialized() and ray.get_runtime_context().gcs_address != address:
            raise UsageError(
                f"{{address}} is {address}, but this process is connected to Ray at "
                f"{ray.get_runtime_context().gcs_address}; omit {{address}}, or disconnect first",
                param="address",
            )
        if not ray.is_initialized():
            if address is None or host_and_port(address)[0] in LOOPBACK:
                stack.enter_context(on_loopback())
            if address is not None:
                _require_answer(address)
            try:
                stack.callback(ray.shutdown)
                quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
                own = {} if address else {"num_cpus": usable_cores(), "include_dashboard": False}
                with stops_held():
                    ray.init(address or "local", **own, **quiet)
                stack.enter_context(_threads_ended())
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                token = "; if the cluster asks for a token, set RAY_AUTH_MODE=token here too" if address else ""
                raise ClusterError(f"{address or 'Ray on this machine'}: {first_line(error)}{token}") from error
            reached = [node["NodeManagerAddress"] for node in ray.nodes()]
            if address is None and not set(reached) <= set(LOOPBACK):
                raise ClusterError(
                    f"Ray listens on {', '.join(reached)}, expected on 127.0.0.1 only; start a "
                    "cluster yourself and give its {address}",
                    param="address",
                )
        import ray.data

        stack.enter_context(_quiet(ray))
        yield ray


@contextmanager
def on_loopback() -> Iterator[None]:
    """Have Ray use 127.0.0.1 and no other address: its ports run code for whoever reaches them."""
    from ray._private import ray_constants

    before, was = os.environ.get(NETWORKED), ray_constants.ENABLE_RAY_CLUSTER
    os.environ[NETWORKED] = "0"  # for the processes that it starts
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = was
        os.environ.pop(NETWORKED, None)
        if before is not None:
            os.environ[NETWORKED] = before


@contextmanager
def stops_held() -> Iterator[None]:
    """Have SIGTERM and Ctrl-C wait until Ray has started, and then do what they did before; the second does not wait.

    Of a start that is broken off processes would be left. Ray would also take SIGTERM for itself, and end the process
    with a traceback and a code of its own.
    """
    from ray._private import utils

    if threading.current_thread() is not threading.main_thread():  # the only one that may say what signals do
        yield
        return
    before, setter = {number: signal.getsignal(number) for number in STOPS}, utils.set_sigterm_handler
    held: list[int] = []

    def hold(number: int, _: object) -> None:
        held.append(number)
        if len(held) > 1:
            release()

    def release() -> None:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if held:
            last = held[-1]
            held.clear()
            signal.raise_signal(last)

    for number in STOPS:
        signal.signal(number, hold)
    utils.set_sigterm_handler = lambda handler: None
    try:
        yield
    finally:
        utils.set_sigterm_handler = setter
        release()


@contextmanager
def _threads_ended() -> Iterator[None]:
    """Where a job is broken off, wait for Ray Data's threads: one that asks Ray for anything later ends the process."""
    before = threading.enumerate()
    try:
        yield
    except BaseException:
        deadline = time.monotonic() + SECONDS_TO_END
        for thread in threading.enumerate():
            if thread not in before and thread.name != ASLEEP:
                thread.join(max(deadline - time.monotonic(), 0))
        raise


@contextmanager
def _quiet(ray: Any) -> Iterator[None]:
    """Keep what Ray says of itself off the terminal, and off stdout, where results are; its log files have it all."""
    worker, log = ray._private.worker, logging.getLogger("ray.data")
    was, level = worker.print_to_stdstream, log.level
    worker.print_to_stdstream = lambda *_, **__: None
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)
        worker.print_to_stdstream = was


def _require_answer(address: str) -> None:
    """Raise if nothing like a cluster answers; Ray itself would go on asking for minutes."""
    try:
        with socket.create_connection(host_and_port(address), SECONDS_TO_ANSWER) as line:
            line.settimeout(SECONDS_TO_ANSWER)
            line.sendall(HTTP2_HELLO)
            if line.recv(9)[3:4] != HTTP2_SETTINGS:
                raise ConnectionError("what answers is no cluster")
    except OSError as error:
        raise ClusterError(
            f"{address}: no Ray cluster answers there ({first_line(error)}); start one with `ray start --head`, or "
            "omit {address} for one on this machine",
            param="address",
        ) from error
