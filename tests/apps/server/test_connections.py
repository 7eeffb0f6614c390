"""Connections: real ones, to a server in this process."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import httpx
import pytest

from strays.apps.web.connections import usable_connections
from tests.apps.server.conftest import ODD, Service, error, held_until, wait_for
from tests.conftest import farm_texts

Start = Callable[..., Service]
# Of a call whose body is long in coming.
HEAD = b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_calls_over_a_connection(start: Start) -> None:
    service = start(listens=True)
    assert service.scores([ODD, None])[1] is None
    answer = service.http.get("/health")
    assert "server" not in answer.headers
    with service.connect() as bare:
        bare.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert bare.recv(1000).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 421 "))
    # A large body that is refused is read to its end, so that the client gets to read the answer.
    large = {"content-type": "application/json"}
    assert error(service.http.post("/v1/score", content=b" " * 9_000_000, headers=large)) == (413, "too_large")
    # Clients that leave in the midst of a body are noticed.
    for i in range(20):
        with service.connect() as gone:
            gone.sendall(HEAD[: 10 + i] if i % 2 else HEAD + b'{"texts": ["a')
    wait_for(lambda: sum(line["status"] == 400 for line in service.requests()) >= 10)
    assert service.scores([ODD])


def test_silent_connections_make_room_for_others(start: Start) -> None:
    service = start(listens=True, connections=10)
    with ExitStack() as open_ones:

        def connect() -> socket.socket:
            return open_ones.enter_context(service.connect())

        asking = connect()
        asking.sendall(HEAD.replace(b" 99", b" 20") + b'{"texts"')
        wait_for(lambda: service.metric("strays_requests_under_way") == 2)
        silent = [connect() for _ in range(60)]
        assert httpx.get(f"{service.base}/health").status_code == 200
        for one in silent[:50]:
            with suppress(ConnectionResetError):
                assert one.recv(1) == b""
        asking.sendall(b': ["a cow"]}')
        assert asking.recv(1000).startswith(b"HTTP/1.1 200 ")
        silent[-1].sendall(HEALTH)
        assert silent[-1].recv(1000).startswith(b"HTTP/1.1 200 ")


def test_an_answer_that_is_being_read_is_not_cut_off_to_make_room(start: Start) -> None:
    service = start(listens=True, connections=10, send_buffer=4096)  # so that the answer waits in the server
    with ExitStack() as open_ones:
        reader = open_ones.enter_context(service.connect(receive_buffer=4096))
        body = json.dumps({"texts": farm_texts(300) * 3}).encode()
        reader.sendall(HEAD.replace(b" 99", f" {len(body)}".encode()) + body)
        answer = reader.recv(1000)
        for _ in range(30):
            open_ones.enter_context(service.connect())
        assert httpx.get(f"{service.base}/health").status_code == 200
        head, _, answer = answer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split()[0])
        assert length > 50_000
        while len(answer) < length and (more := reader.recv(65_536)):
            answer += more
        assert len(json.loads(answer)["results"]) == 900


def test_clients_that_are_too_slow_are_let_go(start: Start) -> None:
    service = start(listens=True, body_seconds=0.5, idle_seconds=0.5)
    with ExitStack() as open_ones:
        silent, half_head, half_body = (open_ones.enter_context(service.connect()) for _ in range(3))
        # Asks and never reads: its answers fill the buffers, and it is cut off.
        deaf = open_ones.enter_context(service.connect(receive_buffer=4096))
        half_head.sendall(b"GET /health HT")
        half_body.sendall(HEAD + b"{")
        ask = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50
        with pytest.raises(OSError, match=r"reset|[Bb]roken"):
            while True:
                deaf.sendall(ask)
        assert half_body.recv(1000).startswith(b"HTTP/1.1 408 ")
        for one in (silent, half_head):
            with suppress(ConnectionResetError):
                assert one.recv(1000) == b""
    assert httpx.get(f"{service.base}/health").status_code == 200


def test_a_stop_finishes_what_was_taken(start: Start) -> None:
    go_on = threading.Event()
    service = start(listens=True, load=held_until(go_on).load)
    with ThreadPoolExecutor(7) as pool:
        calls = [pool.submit(service.score, [f"{text} {i}"] * 100) for i, text in enumerate(farm_texts(6))]
        wait_for(lambda: service.metric("strays_requests_under_way") == 7)
        stopping = pool.submit(service.stop)
        wait_for(lambda: service.server.should_exit)
        go_on.set()
        assert [call.result().status_code for call in calls] == [200] * 6
        stopping.result()
    assert service.log()[-1]["event"] == "stopped"


def test_a_call_that_takes_too_long_for_a_stop_is_told_so(start: Start) -> None:
    go_on = threading.Event()
    service = start(listens=True, load=held_until(go_on).load, shutdown_seconds=0.5)
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(service.score, [ODD])
        wait_for(lambda: service.metric("strays_requests_under_way") == 2)
        stopping = pool.submit(service.stop)
        assert error(call.result()) == (503, "stopping")
        go_on.set()
        stopping.result()
    assert [line["status"] for line in service.requests() if line["path"] == "/v1/score"] == [503]


CHUNKED = HEAD.replace(b"Content-Length: 99", b"Transfer-Encoding: chunked")


def everything(connection: socket.socket) -> bytes:
    """All that comes, until the connection is closed."""
    found = b""
    with suppress(ConnectionResetError):
        while more := connection.recv(65_536):
            found += more
    return found


def test_a_body_with_two_lengths_is_refused_and_its_connection_closed(start: Start) -> None:
    service = start(listens=True)
    # The rest would be another request for whoever goes by the other length.
    both = HEAD[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HEALTH
    old = CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n"
    for request in (both, old):
        with service.connect() as bare:
            bare.sendall(request)
            answer = everything(bare)
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert answer.lower().count(b"content-length: ") == 1
            assert b"connection: close" in answer.lower()
    assert [(line["status"], line["code"]) for line in service.requests()] == [(400, "two_lengths")] * 2
    with service.connect() as bare:
        bare.sendall(CHUNKED + b'14\r\n{"texts": ["a cow"]}\r\n0\r\n\r\n')
        assert bare.recv(1000).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"rubbish xyzzy\r\n\r\n", 400, "not_http"),
        (b"GET /health HTTP/1.1\r\nHost: a\r\nxyzzy\r\n\r\n", 400, "not_http"),
        (b"POST /v1/score HTTP/1.1\r\nHost: a\r\nContent-Length: xyzzy\r\n\r\n", 400, "not_http"),
        (b"GET /health HTTP/1.1\r\nHost: a\r\nx: " + b"xyzzy" * 20_000, 431, "too_large"),
    ],
    ids=["no request", "no header", "no length", "long headers"],
)
def test_what_is_no_request_is_answered_logged_and_counted(start: Start, sent: bytes, status: int, code: str) -> None:
    service = start(listens=True)
    with service.connect() as bare:
        bare.sendall(sent)
        head, _, body = everything(bare).partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert json.loads(body)["error"]["code"] == code
    (line,) = service.requests()
    assert (line["status"], line["code"], line["path"], line["client"]) == (status, code, "other", "127.0.0.1")
    assert line["id"]
    assert service.metric(f'strays_requests_total{{path="other",status="{status}"}}') == 1
    assert "xyzzy" not in "".join(service.lines)


def test_a_bad_chunk_is_a_body_that_broke_off(start: Start) -> None:
    service = start(listens=True)
    with service.connect() as bare:
        bare.sendall(CHUNKED + b'5\r\n{"tex\r\nxyzzy\r\n')
        assert bare.recv(1000).startswith(b"HTTP/1.1 400 ")
    wait_for(service.requests)
    assert [(line["status"], line["path"]) for line in service.requests()] == [(400, "/v1/score")]
    assert all(line["event"] != "broken" for line in service.log())


def test_a_bad_chunk_after_the_answer_ends_the_connection_and_breaks_nothing(start: Start) -> None:
    service = start(listens=True, token="a-token-that-is-long-enough")
    with service.connect() as bare:
        bare.sendall(CHUNKED)
        answer = bare.recv(1000)
        assert answer.startswith(b"HTTP/1.1 401 ")
        bare.sendall(b"xyzzy\r\n")
        assert (answer + everything(bare)).count(b"HTTP/1.1 ") == 1
    assert httpx.get(f"{service.base}/health").status_code == 200
    wait_for(lambda: len(service.requests()) > 1)
    assert [line["status"] for line in service.requests()] == [401, 200]
    assert all(line["event"] != "broken" for line in service.log())


def test_clients_that_do_not_read_make_room_too(start: Start) -> None:
    service = start(listens=True, connections=5, send_buffer=4096)
    with ExitStack() as open_ones:
        deaf = [open_ones.enter_context(service.connect(receive_buffer=4096)) for _ in range(5)]
        for one in deaf:
            one.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
        connections = service.server.server_state.connections
        wait_for(lambda: sum(one._unread_since is not None for one in list(connections)) == 5)
        assert httpx.get(f"{service.base}/health").status_code == 200


def test_connections_leave_room_for_files(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for files, usable in ((256, 132), (1024, 900), (32, 16)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, 4096))
        assert usable_connections() == usable
