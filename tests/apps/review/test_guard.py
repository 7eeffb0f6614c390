"""Who gets in: over a real server, in a process of its own."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.apps.review.conftest import Served
from tests.conftest import farm_texts

BODY = {"ids": [1], "verdict": "normal", "who": "eve", "client": "e"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Iterator[Served]:
    file = tmp_path_factory.mktemp("guard") / "farm.txt"
    file.write_text("\n".join(farm_texts(30)))
    served = Served(file, "--encoder", tiny_bert)
    yield served
    served.end()


def test_the_link_sets_a_cookie_and_leads_to_the_page(desk: Served) -> None:
    port = desk.base.rpartition(":")[2]
    answer = httpx.get(desk.link)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie == f"strays_{port}={desk.token}; Path=/; HttpOnly; SameSite=Strict"
    with httpx.Client(base_url=desk.base, headers={"cookie": f"other=1{{; {cookie.partition(';')[0]}; b=c"}) as http:
        assert http.get("/api/state").status_code == 200
    # A strict cookie would not be sent on a redirect that began on another site.
    answer = httpx.get(desk.link, headers={"sec-fetch-site": "cross-site"})
    assert (answer.status_code, answer.headers["refresh"]) == (200, "0; url=/")


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({}, "/api/state", 403),
        ({}, "/static/page.js", 403),
        ({}, "/", 403),
        ({}, "/?token=wrong", 403),
        ({}, "/?token=", 403),
        ({}, "/api/state?token=TOKEN", 403),  # only the way in takes it from the address
        ({}, "/?token=TOKEN&token=TOKEN", 403),
        ({"authorization": "Bearer wrong"}, "/api/state", 403),
        ({"authorization": "Bearer"}, "/api/state", 403),
        ({"authorization": "Basic TOKEN"}, "/api/state", 403),
        ({"cookie": "strays_1=TOKEN"}, "/api/state", 403),
        ({"cookie": "strays_PORT="}, "/api/state", 403),
        ({"authorization": "Bearer TOKEN"}, "/api/state", 200),
        ({"cookie": "strays_PORT=TOKEN"}, "/api/state", 200),
        ({"cookie": "strays_PORT=TOKEN", "host": "evil.example:PORT"}, "/api/state", 421),
        ({"cookie": "strays_PORT=TOKEN", "host": "127.0.0.1"}, "/api/state", 421),
        ({"cookie": "strays_PORT=TOKEN", "host": "127.0.0.1:1"}, "/api/state", 421),
        ({"host": "evil.example:PORT"}, "/?token=TOKEN", 421),
        ({"cookie": "strays_PORT=TOKEN", "host": "localhost:PORT"}, "/api/state", 200),
        ({"cookie": "strays_PORT=TOKEN", "host": "[::1]:PORT"}, "/api/state", 200),
        ({"authorization": "Bearer TOKEN", "sec-fetch-site": "same-site"}, "/api/queue", 403),
        ({"authorization": "Bearer TOKEN"}, "/docs", 404),
        ({"authorization": "Bearer TOKEN"}, "/openapi.json", 404),
        ({"authorization": "Bearer TOKEN"}, "/static/app.py", 404),
        ({"authorization": "Bearer TOKEN"}, "/static/..%2fapp.py", 404),
        ({"authorization": "Bearer TOKEN"}, "/static/../app.py", 404),
    ],
)
def test_what_is_let_in(desk: Served, headers: dict[str, str], path: str, status: int) -> None:
    port = desk.base.rpartition(":")[2]

    def filled(value: str) -> str:
        return value.replace("PORT", port).replace("TOKEN", desk.token)

    answer = httpx.get(desk.base + filled(path), headers={name: filled(value) for name, value in headers.items()})
    assert answer.status_code == status
    if status != 200:
        assert desk.token not in answer.text
    if path.startswith("/?") and status == 403:
        assert "the link that strays review printed" in answer.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),  # another server of this machine
        ({"origin": "https://127.0.0.1:PORT"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"origin": "http://127.0.0.1:PORT", "sec-fetch-site": "same-origin"}, 200),
        ({"content-type": "Application/JSON; charset=utf-8"}, 200),
    ],
)
def test_only_our_own_page_may_change_something(desk: Served, headers: dict[str, str], status: int) -> None:
    headers = {name: value.replace("PORT", desk.base.rpartition(":")[2]) for name, value in headers.items()}
    headers = {"content-type": "application/json", "authorization": f"Bearer {desk.token}"} | headers
    before = desk.get("state")["last_event"]
    assert httpx.post(f"{desk.base}/api/verdicts", headers=headers, json=BODY).status_code == status
    assert desk.get("state")["last_event"] == before + (status == 200)


def test_a_large_body_is_refused(desk: Served) -> None:
    answer = desk.http.post("/api/verdicts", json=BODY | {"who": "x" * 1_000_000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


def test_a_body_of_unknown_length_is_cut_off(desk: Served) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"ids": [1],'
        for _ in range(40):
            yield b" " * 60_000
        yield b'"verdict": "normal"}'

    before = desk.get("state")["last_event"]
    headers = {"authorization": f"Bearer {desk.token}", "content-type": "application/json"}
    with suppress(httpx.WriteError, httpx.RemoteProtocolError, httpx.ReadError):  # it may not even be answered
        assert httpx.post(f"{desk.base}/api/verdicts", headers=headers, content=pieces()).status_code >= 400
    assert desk.get("state")["last_event"] == before


def test_every_answer_carries_the_headers(desk: Served) -> None:
    for answer in (
        httpx.get(desk.link),
        httpx.get(desk.base),
        httpx.get(f"{desk.base}/api/state"),
        desk.http.get("/api/state"),
        desk.http.get("/api/none"),
        desk.http.get("/api/texts/1/full"),
        desk.http.get("/api/export"),
        desk.http.post("/api/verdicts", json={}),
        desk.http.put("/api/state", json={}),
    ):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;")
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers.get_list("cache-control") == ["no-store"]
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


def test_it_listens_on_this_machine_only(desk: Served) -> None:
    port = int(desk.base.rpartition(":")[2])
    own = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in own - {"127.0.0.1"}:
        with socket.socket() as probe:
            probe.settimeout(2)
            assert probe.connect_ex((address, port)) != 0


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", "/api/verdicts", {"ids": [], "verdict": "normal"}, 422, "body.ids"),
        ("POST", "/api/verdicts", {"ids": [1], "verdict": "odd"}, 422, "body.verdict"),
        ("POST", "/api/verdicts", {"ids": ["<script>"], "verdict": "normal"}, 422, "body.ids"),
        ("POST", "/api/verdicts", {"ids": [1] * 20_001, "verdict": "normal"}, 422, "body.ids"),
        ("POST", "/api/verdicts", {"ids": [1, 10**30], "verdict": "normal"}, 404, "no text has the id"),
        ("POST", "/api/verdicts", {"ids": [1], "verdict": "normal", "who": "x" * 101}, 422, "body.who"),
        ("POST", "/api/undo", [], 422, "body"),
        ("GET", "/api/queue?n=0", None, 422, "query.n"),
        ("GET", "/api/texts?sort=odd", None, 422, "query.sort"),
        ("GET", "/api/texts/0", None, 404, "no text has the id 0"),
        ("GET", "/api/texts/x", None, 422, "path.id"),
        ("GET", "/api/texts/99999/why", None, 404, "no text has the id"),
        ("GET", "/api/export?format=exe", None, 422, "query.format"),
        ("DELETE", "/api/verdicts", None, 415, "application/json"),
        ("GET", "/api/none", None, 404, "Not Found"),
    ],
)
def test_errors_are_json_with_a_code_and_words(
    desk: Served, method: str, path: str, body: object, status: int, words: str
) -> None:
    answer = desk.http.request(method, path, json=body) if body is not None else desk.http.request(method, path)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["code"]
    assert words in error["message"]
    assert "<script>" not in answer.text


def test_a_body_that_is_no_json_is_refused(desk: Served) -> None:
    for content in (b"", b"{", b"\xff", b'{"ids": [NaN], "verdict": "normal"}'):
        answer = desk.http.post("/api/verdicts", content=content, headers={"content-type": "application/json"})
        assert answer.status_code in (400, 422)
        assert set(answer.json()["error"]) == {"code", "message"}
