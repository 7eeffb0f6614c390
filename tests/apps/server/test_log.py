"""The log: what it tells of requests, and that no text gets into it."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from strays.apps.server.log import Log
from strays.apps.server.metrics import Metrics
from strays.apps.server.request_log import RequestLog
from tests.apps.asgi import exchange
from tests.apps.server.conftest import Service


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
    exchange(RequestLog(silent, paths=["/"], metrics=metrics, log=Log(stream)), path="/")
    assert json.loads(stream.getvalue())["status"] == 499
    assert 'strays_requests_total{path="/",status="499"} 1.0' in metrics.page().decode()


def test_warnings_are_lines_of_the_log_once_for_each_place() -> None:
    stream = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = Log(stream).warning
        for _ in range(3):
            warnings.warn("one", stacklevel=1)
        warnings.warn("two", stacklevel=1)
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
    Log(stream).request(status)
    Log(quiet, requests=False).request(status)
    assert json.loads(stream.getvalue())["level"] == level
    assert bool(quiet.getvalue()) is (level != "info")


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    Log(Closed()).write("ready")
