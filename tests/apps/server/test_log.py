"""The log: what it tells of requests, and that no text gets into it."""

from __future__ import annotations

import io
import json
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from strays.apps.server.metrics import Metrics
from strays.apps.server.request_log import RequestLog
from strays.apps.web.log import Log
from tests.apps.asgi import exchange
from tests.apps.server.conftest import Service, wait_for


def test_the_log_tells_of_requests_and_never_of_texts(start: Callable[..., Service]) -> None:
    service = start()
    secret = "xyzzy-plugh"
    http = service.http
    service.score([f"{secret} one", secret], explain=True)
    http.post("/v1/score", json={"texts": [{secret: secret}], secret: secret})
    http.post("/v1/score", content=secret, headers={"content-type": "application/json", "x-secret": secret})
    http.get(f"/{secret}", params={secret: secret}, headers={"x-request-id": f"{secret} {secret}"})
    named = http.get("/health", headers={"x-request-id": "id-of-the-caller"})
    service.score([secret], model=secret)
    assert http.request(secret.upper(), "/").status_code == 404
    assert secret not in "".join(service.lines).lower()
    requests = service.requests()
    assert len(requests) == 7
    assert requests[6]["method"] == "other"
    assert (requests[0]["texts"], requests[0]["status"], requests[0]["model"]) == (2, 200, "farm")
    assert requests[0]["bytes"] > 2 * len(secret)
    assert requests[3]["path"] == "other"
    assert [line.get("code") for line in requests[:4]] == [None, "invalid", "not_json", "not_found"]
    assert requests[4]["id"] == named.headers["x-request-id"] == "id-of-the-caller"
    assert all({"time", "level", "id", "seconds", "bytes", "client"} <= set(line) for line in requests)


def test_what_breaks_in_the_loop_is_a_line_of_the_log(start: Callable[..., Service]) -> None:
    service = start()

    async def break_it() -> None:
        service.loop.loop.call_exception_handler({"exception": KeyError("a text")})

    service.loop.run(break_it())
    assert [line["error"] for line in service.log() if line["event"] == "broken"] == ["KeyError"]
    assert "a text" not in "".join(service.lines)


def test_what_breaks_in_the_app_is_a_line_of_the_log(start: Callable[..., Service]) -> None:
    from strays.model import TextOutlierDetector

    class Broken(TextOutlierDetector):
        def explain_many(self, texts: object, **more: object) -> object:
            raise KeyError("a text")

    service = start(load=Broken.load)
    answer = service.score(["a text"], explain=True)
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "broken"
    assert [line["error"] for line in service.log() if line["event"] == "broken"] == ["KeyError"]
    assert [line["status"] for line in service.requests()] == [500]
    assert "a text" not in answer.text + "".join(service.lines)


def test_a_request_that_is_not_answered_counts_as_left() -> None:
    async def silent(scope: Any, receive: Any, send: Any) -> None:
        pass

    stream, metrics = io.StringIO(), Metrics()
    log = Log(stream)
    exchange(RequestLog(silent, paths=["/"], metrics=metrics, log=log), path="/")
    log.flush(10)
    assert json.loads(stream.getvalue())["status"] == 499
    assert 'strays_requests_total{path="/",status="499"} 1.0' in metrics.page().decode()


def test_warnings_are_lines_of_the_log_once_for_each_place() -> None:
    stream = io.StringIO()
    log = Log(stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = log.warning
        for _ in range(3):
            warnings.warn("one", stacklevel=1)
        warnings.warn("two", stacklevel=1)
    log.flush(10)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["event"], line["level"], line["message"]) for line in lines] == [
        ("warning", "warning", "one"),
        ("warning", "warning", "two"),
    ]


@pytest.mark.parametrize(
    ("status", "level"), [(200, "info"), (404, "warning"), (429, "warning"), (503, "warning"), (500, "error")]
)
def test_levels(status: int, level: str) -> None:
    stream, quiet = io.StringIO(), io.StringIO()
    for log in (Log(stream), Log(quiet, requests=False)):
        log.request(status)
        log.flush(10)
    assert json.loads(stream.getvalue())["level"] == level
    assert bool(quiet.getvalue()) is (level != "info")


def test_a_log_that_was_closed_stops_nothing() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    log = Log(Closed())
    log.write("ready")
    log.flush(10)
    assert log.dropped == 1


class Stuck(io.StringIO):
    """What nobody reads, until somebody does."""

    def __init__(self) -> None:
        super().__init__()
        self.read_on = threading.Event()

    def write(self, text: str) -> int:
        assert self.read_on.wait(60)
        return super().write(text)


def test_a_log_that_nobody_reads_drops_lines_counts_them_and_says_so() -> None:
    stream = Stuck()
    log = Log(stream, most_waiting=10)
    log.write("event", number=-1)
    wait_for(lambda: not log._waiting)  # the thread has it, and waits for a reader
    for number in range(25):
        log.write("event", number=number)
    assert log.dropped == 15
    log.flush(0.01)  # does not wait for ever either
    stream.read_on.set()
    log.flush(10)
    log.write("event", number=99)
    log.flush(10)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line.get("number") for line in lines] == [-1, *range(10), None, 99]
    assert (lines[11]["event"], lines[11]["lines"]) == ("log_lines_dropped", 15)


def test_lines_that_a_full_disk_took_are_told_when_there_is_room_again() -> None:
    class Full(io.StringIO):
        is_full = True

        def write(self, text: str) -> int:
            if self.is_full:
                raise OSError(28, "No space left on device")
            return super().write(text)

    stream = Full()
    log = Log(stream)
    for _ in range(3):
        log.write("lost")
        log.flush(10)
    stream.is_full = False
    log.write("there")
    log.flush(10)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["event"], line.get("lines")) for line in lines] == [("there", None), ("log_lines_dropped", 3)]
    assert log.dropped == 3


def test_dropped_lines_are_a_metric(start: Callable[..., Service]) -> None:
    service = start()
    service._log._most_waiting = 0
    service.http.get("/health")
    assert service.metric("strays_log_lines_dropped_total") >= 1
