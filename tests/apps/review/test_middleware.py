"""Who gets in: the desk's app with its middleware, in this process."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from strays.apps.review.app import make_app
from strays.apps.review.middleware import HEADERS, with_middleware
from tests.apps.asgi import Exchange, Inner, InProcess, Loop
from tests.apps.review.conftest import Served, make_desk
from tests.conftest import farm_texts

BODY = {"ids": [1], "verdict": "normal", "who": "eve", "client": "e"}
TOKEN, PORT = "the-token-of-the-tests", 8123
BASE = f"http://127.0.0.1:{PORT}"
BEARER = {"authorization": f"Bearer {TOKEN}"}


class DeskClient:
    """Asks a desk: `http` carries the token, `stranger` carries what it is given, and keeps no cookies."""

    def __init__(self, app: Any) -> None:
        self.app, self.loop = app, Loop()
        self.http = httpx.Client(transport=InProcess(app, self.loop), base_url=BASE, headers=BEARER)

    def stranger(self, method: str, url: str, **more: Any) -> httpx.Response:
        with httpx.Client(transport=InProcess(self.app, self.loop), base_url=BASE) as client:
            return client.request(method, url, **more)

    def last_event(self) -> int:
        return self.http.get("/api/state").json()["last_event"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskClient]:
    desk = make_desk(tmp_path_factory.mktemp("desk") / "farm.strays", farm_texts(30))
    app = make_app(desk, who="", model_folder="none")
    client = DeskClient(with_middleware(app, port=PORT, token=TOKEN))
    yield client
    client.http.close()
    client.loop.close()
    app.state.explainer.close()
    desk.store.close()


def test_the_page_needs_no_token_and_is_given_none(desk: DeskClient) -> None:
    """A cookie would be sent to every server on this machine, whatever its port."""
    for path in ("/", "/static/page.js", "/static/api.js"):
        answer = desk.stranger("GET", path)
        assert answer.status_code == 200
        assert "set-cookie" not in answer.headers
        assert TOKEN not in answer.text
        assert not any(text in answer.text for text in farm_texts(30))


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({}, "/api/state", 403),
        ({}, "/api/export", 403),
        ({}, "/api/texts/1/full", 403),
        ({}, "/api/none", 403),
        ({}, "/static", 403),
        ({}, "//api/state", 403),
        ({}, "/static/../api/state", 403),
        ({}, "/api/state?token=TOKEN", 403),  # addresses are kept and shown
        ({"authorization": "Bearer wrong"}, "/api/state", 403),
        ({"authorization": "Bearer"}, "/api/state", 403),
        ({"authorization": "Basic TOKEN"}, "/api/state", 403),
        ({"cookie": "strays_PORT=TOKEN"}, "/api/state", 403),  # every other server here could have it
        ({"authorization": "Bearer TOKEN"}, "/api/state", 200),
        ({"authorization": "Bearer TOKEN", "host": "evil.example:PORT"}, "/api/state", 421),
        ({"authorization": "Bearer TOKEN", "host": "127.0.0.1"}, "/api/state", 421),
        ({"authorization": "Bearer TOKEN", "host": "127.0.0.1:1"}, "/api/state", 421),
        ({"authorization": "Bearer TOKEN", "host": "localhost:PORT"}, "/api/state", 200),
        ({"authorization": "Bearer TOKEN", "host": "[::1]:PORT"}, "/api/state", 200),
        ({"authorization": "Bearer TOKEN", "sec-fetch-site": "same-site"}, "/api/queue", 403),
        ({"host": "evil.example:PORT"}, "/", 421),
        ({"sec-fetch-site": "cross-site"}, "/", 200),  # a link in a mail
        ({"sec-fetch-site": "cross-site"}, "/static/page.js", 403),
        ({"authorization": "Bearer TOKEN"}, "/docs", 404),
        ({"authorization": "Bearer TOKEN"}, "/openapi.json", 404),
        ({"authorization": "Bearer TOKEN"}, "/static/app.py", 404),
        ({"authorization": "Bearer TOKEN"}, "/static/..%2fapp.py", 404),
        ({"authorization": "Bearer TOKEN"}, "/static/../app.py", 404),
    ],
)
def test_what_is_let_in(desk: DeskClient, headers: dict[str, str], path: str, status: int) -> None:
    def filled(value: str) -> str:
        return value.replace("PORT", str(PORT)).replace("TOKEN", TOKEN)

    headers = {name: filled(value) for name, value in headers.items()}
    answer = desk.stranger("GET", BASE + filled(path), headers=headers)
    assert answer.status_code == status
    if status != 200:
        assert TOKEN not in answer.text


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
def test_only_our_own_page_may_change_something(desk: DeskClient, headers: dict[str, str], status: int) -> None:
    headers = {name: value.replace("PORT", str(PORT)) for name, value in headers.items()}
    headers = {"content-type": "application/json", **BEARER} | headers
    before = desk.last_event()
    assert desk.stranger("POST", "/api/verdicts", headers=headers, json=BODY).status_code == status
    assert desk.last_event() == before + (status == 200)


def test_the_order_of_the_checks(desk: DeskClient) -> None:
    """A request that is wrong in every way: once one thing is right, the next one is refused."""
    wrong = {"host": "evil", "origin": "http://evil", "content-type": "text/plain", "content-length": "1000001"}

    def refused(**right: str) -> tuple[int | None, str]:
        headers = {name.replace("_", "-"): value for name, value in right.items()}
        asked = Exchange("POST", "/api/none", headers=wrong | headers, parts=[b"{}"])
        return desk.loop.run(asked.with_app(desk.app)).code

    right = {"host": f"127.0.0.1:{PORT}", "origin": BASE}
    assert refused(transfer_encoding="chunked") == (400, "two_lengths")
    assert refused() == (421, "wrong_host")
    assert refused(host=right["host"]) == (403, "wrong_origin")
    assert refused(**right) == (415, "not_json")
    assert refused(**right, content_type="application/json") == (413, "too_large")
    assert refused(**right, content_type="application/json", content_length="2") == (403, "no_token")
    right |= BEARER
    assert refused(**right, content_type="application/json", content_length="2") == (404, "not_found")


def test_a_large_body_is_refused(desk: DeskClient) -> None:
    answer = desk.http.post("/api/verdicts", json=BODY | {"who": "x" * 1_000_000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


def test_a_body_of_unknown_length_is_cut_off(desk: DeskClient) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"ids": [1],'
        for _ in range(40):
            yield b" " * 60_000
        yield b'"verdict": "normal"}'

    before = desk.last_event()
    headers = {"content-type": "application/json", "transfer-encoding": "chunked"}
    assert desk.http.post("/api/verdicts", headers=headers, content=pieces()).status_code >= 400
    assert desk.last_event() == before


def test_every_answer_carries_the_headers(desk: DeskClient) -> None:
    for answer in (
        desk.stranger("GET", "/"),
        desk.stranger("GET", "/api/state"),
        desk.stranger("GET", "/", headers={"host": "evil.example"}),
        desk.http.get("/api/state"),
        desk.http.get("/api/none"),
        desk.http.get("/api/texts/1/full"),
        desk.http.get("/api/export"),
        desk.http.post("/api/verdicts", json={}),
        desk.http.put("/api/state", json={}),
    ):
        assert {name: answer.headers.get_list(name) for name in HEADERS} == {n: [v] for n, v in HEADERS.items()}
        assert "access-control-allow-origin" not in answer.headers
    policy = HEADERS["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;")
    assert "frame-ancestors 'none'" in policy
    assert HEADERS["cache-control"] == "no-store"


@pytest.mark.process
def test_it_listens_on_this_machine_only(tmp_path: Path, tiny_bert: Path) -> None:
    file = tmp_path / "farm.txt"
    file.write_text("\n".join(farm_texts(30)))
    served = Served(file, "--encoder", tiny_bert)
    port = int(served.base.rpartition(":")[2])
    own = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in own - {"127.0.0.1"}:
        with socket.socket() as probe:
            probe.settimeout(2)
            assert probe.connect_ex((address, port)) != 0
    answer = served.http.get("/api/state")
    assert answer.status_code == 200
    assert "server" not in answer.headers
    assert httpx.get(f"{served.base}/api/state").status_code == 403
    served.end()


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
    desk: DeskClient, method: str, path: str, body: object, status: int, words: str
) -> None:
    answer = desk.http.request(method, path, json=body) if body is not None else desk.http.request(method, path)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["code"]
    assert words in error["message"]
    assert "<script>" not in answer.text


def test_a_body_that_is_no_json_is_refused(desk: DeskClient) -> None:
    for content in (b"", b"{", b"\xff", b'{"ids": [NaN], "verdict": "normal"}'):
        answer = desk.http.post("/api/verdicts", content=content, headers={"content-type": "application/json"})
        assert answer.status_code in (400, 422)
        assert set(answer.json()["error"]) == {"code", "message"}


def test_a_body_that_never_comes_is_given_up(desk: DeskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strays.apps.review.middleware.BODY_SECONDS", 0.05)
    app = with_middleware(Inner(), port=PORT, token=TOKEN)
    headers = {"host": f"127.0.0.1:{PORT}", "content-type": "application/json", "content-length": "9"}
    asked = Exchange("POST", "/api/verdicts", headers=headers | BEARER, parts=[b"{"], whole=False)
    assert desk.loop.run(asked.with_app(app)).code == (408, "too_slow")


@pytest.mark.process
def test_silent_connections_do_not_lock_the_owner_out(tmp_path: Path, tiny_bert: Path) -> None:
    """Without a token, and more of them than there are files to be had."""
    resource = pytest.importorskip("resource")
    file = tmp_path / "farm.txt"
    file.write_text("\n".join(farm_texts(30)))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        served = Served(file, "--encoder", tiny_bert)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    port = int(served.base.rpartition(":")[2])
    with ExitStack() as open_ones:
        for i in range(300):
            one = open_ones.enter_context(socket.create_connection(("127.0.0.1", port)))
            one.sendall(b"POST /api/verdicts HT" if i % 2 else b"")
        served.http.timeout = 10
        for _ in range(3):
            assert served.http.get("/api/state").status_code == 200
            assert httpx.get(served.base, timeout=10).status_code == 200
    assert served.end(signal.SIGTERM)[0] == 0


@pytest.mark.process
def test_a_stop_ends_within_seconds_whatever_is_waiting(tmp_path: Path, tiny_bert: Path) -> None:
    """An explanation that never comes."""
    file = tmp_path / "farm.txt"
    file.write_text("\n".join(farm_texts(30)))
    code = (
        "import sys, time\n"
        "from strays.model import TextOutlierDetector\n"
        "TextOutlierDetector.explain = lambda *_, **__: time.sleep(600)\n"
        "from strays.apps.cli import main\n"
        f"main(['review', {str(file)!r}, '--no-browser', '--encoder', {str(tiny_bert)!r}])\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        base, _, token = process.stdout.readline().decode().strip().partition("/#token=")
        headers = {"authorization": f"Bearer {token}"}
        with ThreadPoolExecutor(3) as pool:
            calls = [
                pool.submit(httpx.get, f"{base}/api/texts/{id_}/why", headers=headers, timeout=60) for id_ in (1, 2, 3)
            ]
            while not any(call.running() for call in calls):
                time.sleep(0.01)
            time.sleep(1)  # so that they have arrived
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            assert time.monotonic() - began < 15  # 10, and what a busy machine may add
            assert [call.result().status_code for call in calls] == [503] * 3
