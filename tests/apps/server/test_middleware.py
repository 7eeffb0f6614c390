"""The server's middleware as a whole: in which order a request is checked, and who takes places."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from strays.apps.server.metrics import Metrics
from strays.apps.server.middleware import HEADERS
from strays.apps.server.request_log import RequestLog
from strays.apps.web.log import Log
from strays.apps.web.stopping import AnswerCancelled
from tests.apps.asgi import Exchange, Inner, run
from tests.apps.server.conftest import ODD, TOKEN, Service, error, held_until, wait_for
from tests.conftest import farm_texts

Start = Callable[..., Service]
PATHS = ["/health", "/ready", "/v1/model", "/metrics", "/openapi.json"]
# More than two rounds take, so that some of them wait.
LONG = [f"{' '.join(farm_texts(60))} {i}" for i in range(100)]
CALL = {"host": "localhost", "content-type": "application/json", "content-length": "99"}


def test_foreign_hosts_and_origins(service: Service) -> None:
    get = service.http.get
    for path in PATHS:
        assert error(get(path, headers={"host": "evil.example"})) == (421, "wrong_host")
        assert error(get(path, headers={"host": "127.0.0.1.evil.example:8000"})) == (421, "wrong_host")
        assert error(get(path, headers={"origin": "https://evil.example"})) == (403, "wrong_origin")
        assert error(get(path, headers={"origin": "null"})) == (403, "wrong_origin")
        assert error(get(path, headers={"sec-fetch-site": "cross-site"})) == (403, "wrong_origin")
        assert get(path, headers={"origin": service.base}).status_code == 200
        assert get(path, headers={"host": "127.0.0.1:8000"}).status_code == 200
    call = {"texts": [ODD]}
    assert error(service.http.post("/v1/score", json=call, headers={"host": "evil.example"})) == (421, "wrong_host")
    twice = [("host", "localhost"), ("host", "localhost")]
    assert error(service.http.get("/health", headers=twice)) == (421, "wrong_host")


def test_the_order_of_the_checks(start: Start) -> None:
    """A call that is wrong in every way: once one thing is right, the next one is refused."""
    go_on = threading.Event()
    service = start(load=held_until(go_on).load, token=TOKEN, requests=3, waiting=5, body_bytes=500_000)
    wrong = {"host": "evil", "origin": "http://evil", "content-type": "text/plain", "content-length": "500001"}

    def refused(path: str = "/v1/score", **right: str) -> tuple[int | None, str]:
        headers = {name.replace("_", "-"): value for name, value in right.items()}
        asked = Exchange("POST", path, headers=wrong | headers, parts=[b"{}"])
        return service.loop.run(asked.with_app(service.app)).code

    right = {"host": "localhost", "origin": "http://localhost", "authorization": f"Bearer {TOKEN}"}
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(service.score, LONG)
        wait_for(lambda: service.registry.waiting > 5)
        assert refused("/none") == (421, "wrong_host")
        assert refused("/none", host="localhost") == (403, "wrong_origin")
        assert refused("/none", host="localhost", origin="http://localhost") == (401, "no_token")
        assert refused("/none", **right) == (404, "not_found")
        assert refused(**right) == (415, "not_json")
        assert refused(**right, content_type="application/json") == (429, "busy")
        go_on.set()
        assert first.result().status_code == 200
    wait_for(lambda: service.registry.waiting == 0)
    assert refused(**right, content_type="application/json") == (413, "too_large")
    assert refused(**right, content_type="application/json", content_length="2") == (422, "invalid")


def test_without_the_token_only_health_answers(start: Start) -> None:
    service = start(token=TOKEN)
    ways = [("GET", path) for path in (*PATHS[1:], "/", "/nothing", "/health/")]
    ways += [("POST", "/v1/score"), ("POST", "/health"), ("DELETE", "/v1/model")]
    for given in ("", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}"):
        headers = {"authorization": given}
        for method, path in ways:
            answer = service.http.request(method, path, headers=headers)
            assert error(answer) == (401, "wrong_token" if given else "no_token"), (method, path)
            assert answer.headers["www-authenticate"] == "Bearer"
        assert service.http.get("/health", headers=headers).json() == {"status": "ok"}
    assert service.scores([ODD])
    assert service.http.get("/openapi.json").json()["components"]["securitySchemes"]
    assert TOKEN not in "".join(service.lines)


def test_every_answer_carries_the_headers(start: Start) -> None:
    service = start(token=TOKEN)
    stranger = {"authorization": ""}
    answers = [
        service.http.get("/health"),
        service.score([ODD]),
        service.score([1]),
        service.http.get("/none"),
        service.http.get("/ready", headers=stranger),
        service.http.get("/health", headers={"host": "evil.example"}),
        service.http.post("/v1/score", content=b"x"),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 422, 404, 401, 421, 415]
    for answer in answers:
        assert {name: answer.headers.get_list(name) for name in HEADERS} == {n: [v] for n, v in HEADERS.items()}
        assert answer.headers["x-request-id"]
        assert "access-control-allow-origin" not in answer.headers


# ---- a full server ---------------------------------------------------------------------------------------------------


def test_a_full_server_refuses_and_recovers(start: Start) -> None:
    go_on = threading.Event()
    service = start(load=held_until(go_on).load, waiting=50)
    with ThreadPoolExecutor(4) as pool:
        taken = pool.submit(service.score, LONG)
        wait_for(lambda: service.registry.waiting > 50)
        for _ in range(3):
            refused = service.score([ODD])
            assert error(refused) == (429, "busy")
            assert refused.headers["retry-after"] == "1"
        assert service.http.get("/health").status_code == 200
        go_on.set()
        assert taken.result().status_code == 200
    assert service.scores([ODD])
    assert service.metric("strays_waiting_texts") == 0


def test_strangers_take_no_places(start: Start) -> None:
    service = start(token=TOKEN, requests=3)
    known = CALL | {"authorization": f"Bearer {TOKEN}"}

    async def work() -> None:
        def half_sent(headers: dict[str, str]) -> asyncio.Task[Any]:
            asked = Exchange("POST", "/v1/score", headers=headers, parts=[b"{"], whole=False)
            return asyncio.ensure_future(asked.with_app(service.app))

        async def health(**headers: str) -> int | None:
            asked = Exchange(path="/ready", headers={"host": "localhost", **headers})
            return (await asked.with_app(service.app)).status

        strangers = [half_sent(CALL) for _ in range(20)]
        await asyncio.sleep(0)
        assert await health(authorization=f"Bearer {TOKEN}") == 200
        ours = [half_sent(known) for _ in range(3)]
        await asyncio.sleep(0)
        assert await health(authorization=f"Bearer {TOKEN}") == 429
        assert await health() == 401
        assert [(await stranger).status for stranger in strangers] == [401] * 20
        for one in ours:
            one.cancel()
        assert {(await one).code for one in ours} == {(503, "stopping")}
        assert await health(authorization=f"Bearer {TOKEN}") == 200

    service.loop.run(work())


def test_explanations_nobody_waits_for_take_no_places(start: Start) -> None:
    go_on = threading.Event()
    service = start(load=held_until(go_on).load, explaining=2)
    body = b'{"texts": ["the cat sleeps"], "explain": true}'

    async def hasty() -> list[int | None]:
        asked = [Exchange("POST", "/v1/score", headers=CALL, parts=[body], leaves=True) for _ in range(4)]
        return [one.status for one in await asyncio.gather(*(one.with_app(service.app) for one in asked))]

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(service.loop.run, hasty())
        wait_for(lambda: len(service.requests()) == 2)  # those for which there is no place
        assert error(service.score([ODD], explain=True)) == (429, "busy")
        go_on.set()
        assert sorted(waiting.result()) == [429, 429, 499, 499]
    assert service.score([ODD], explain=True).status_code == 200


# ---- slow and gone clients -------------------------------------------------------------------------------------------


def test_slow_and_half_sent_bodies_hold_nobody_up(start: Start) -> None:
    service = start(body_seconds=0.2)

    async def work() -> list[tuple[int | None, str]]:
        bodies = [
            Exchange("POST", "/v1/score", headers=CALL, parts=[b'{"texts": ["a'], whole=False, leaves=bool(i % 2))
            for i in range(50)
        ]
        slow = asyncio.gather(*(one.with_app(service.app) for one in bodies))
        ready = Exchange(path="/ready", headers={"host": "localhost"})
        assert (await ready.with_app(service.app)).status == 200
        return [one.code for one in await slow]

    found = service.loop.run(work())
    assert (found.count((400, "cut_off")), found.count((408, "too_slow"))) == (25, 25)
    assert service.scores([ODD])
    assert service.metric("strays_requests_under_way") == 1


def test_a_client_that_leaves_is_not_scored_for(start: Start) -> None:
    go_on = threading.Event()
    service = start(load=held_until(go_on).load)
    body = b'{"texts": ["a", "b"]}'
    asked = Exchange("POST", "/v1/score", headers=CALL, parts=[body], leaves=True)
    assert service.loop.run(asked.with_app(service.app)).code == (499, "gone")
    go_on.set()
    assert service.requests()[-1]["status"] == 499


def test_a_request_that_the_stop_cuts_short_is_told_so() -> None:
    stream = io.StringIO()
    log = Log(stream)

    def stoppable(app: Any) -> RequestLog:
        return RequestLog(AnswerCancelled(app), paths=["/"], metrics=Metrics(), log=log)

    async def work() -> None:
        async def never(scope: Any, receive: Any, send: Any) -> None:
            await asyncio.Event().wait()

        asked = asyncio.create_task(Exchange().with_app(stoppable(never)))
        await asyncio.sleep(0)
        asked.cancel()
        told = await asked
        assert told.code == (503, "stopping")
        assert (b"connection", b"close") in told.answer_headers
        log.flush(10)
        line = json.loads(stream.getvalue())
        assert (line["status"], line["code"]) == (503, "stopping")

        async def half_answered(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await asyncio.Event().wait()

        asked = asyncio.create_task(Exchange().with_app(stoppable(half_answered)))
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert (await Exchange().with_app(stoppable(Inner()))).status == 200

    run(work())


def test_it_is_not_ready_while_a_model_loads(model_folder: Path) -> None:
    from strays.apps.server.app import make_app
    from strays.apps.server.limits import Limits
    from strays.apps.server.registry import ModelRegistry
    from strays.model import TextOutlierDetector
    from tests.apps.asgi import client_of

    shared = {"limits": Limits(), "metrics": Metrics(), "log": Log()}
    registry = ModelRegistry({"farm": str(model_folder)}, TextOutlierDetector.load, **shared)
    app = make_app(registry, explanations=True, has_token=False, lifespan=None)
    with client_of(app, "http://localhost") as client:
        assert client.get("/health").status_code == 200
        assert [error(client.get(path)) for path in ("/ready", "/v1/model")] == [(503, "loading")] * 2
        assert error(client.post("/v1/score", json={"texts": ["a"]})) == (503, "loading")
