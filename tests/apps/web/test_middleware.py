"""Each middleware alone: what it lets through, what it refuses, and that what is refused never reaches the app."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strays.apps.web.answers import refuse
from strays.apps.web.asgi import checked, header, http_only, split
from strays.apps.web.body import BufferedBody, json_only, length_limit
from strays.apps.web.busy import RequestLimit, busy
from strays.apps.web.drain import DrainRefused
from strays.apps.web.headers import SecurityHeaders
from strays.apps.web.host import loopback, names_and_addresses, trusted_host
from strays.apps.web.origin import same_origin
from strays.apps.web.token import bearer_token
from tests.apps.asgi import Exchange, Inner, exchange, run

TOKEN = "a-token-of-the-tests-0123456789"
few = settings(max_examples=60, deadline=None)
# What can stand in a header.
words = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=40)
parts = st.lists(st.binary(max_size=30), max_size=6)


def test_a_header_that_comes_twice_is_not_a_value() -> None:
    scope = {"headers": [(b"host", b"localhost"), (b"host", b"localhost"), (b"a", b"")]}
    assert header(scope, b"host") == "\x00"
    assert header(scope, b"a", "default") == ""
    assert header(scope, b"b", "default") == "default"


def test_only_http_gets_in() -> None:
    seen, sent = [], []

    def app(name: str) -> Any:
        async def noting(scope: Any, receive: Any, send: Any) -> None:
            seen.append((name, scope["type"]))

        return noting

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def work() -> None:
        for kind in ("http", "lifespan", "websocket", "other"):
            await http_only(app("app"), lifespan=app("lifespan"))({"type": kind}, None, send)

    run(work())
    assert seen == [("app", "http"), ("lifespan", "lifespan")]
    assert sent == [{"type": "websocket.close", "code": 1008}] * 2


def test_split_chooses_an_app() -> None:
    one, other = Inner(), Inner()
    app = split(lambda scope: scope["path"] == "/one", one, other)
    for path in ("/one", "/two", "/three"):
        assert exchange(app, path=path).status == 200
    assert (len(one.seen), len(other.seen)) == (1, 2)


def test_the_first_check_that_has_an_answer_gives_it() -> None:
    inner, asked = Inner(), []

    def check(name: str) -> Any:
        def answer(scope: Any) -> Any:
            asked.append(name)
            return refuse(403, name, "no") if name in scope["path"] else None

        return answer

    app = checked(inner, check("a"), check("b"))
    assert exchange(app, path="/b-a").code == (403, "a")
    assert exchange(app, path="/b").code == (403, "b")
    assert asked == ["a", "a", "b"]
    assert inner.seen == []
    assert exchange(app, path="/").status == 200


# ---- who may call ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        ("localhost", True),
        ("LOCALHOST:80", True),
        ("localhost.", True),
        ("odd.example.org:8000", True),
        ("10.1.2.3:8000", True),
        ("[::1]:8000", True),
        ("", False),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost@evil.example", False),
        ("[::1", False),
        ("\x00", False),
    ],
)
def test_names_and_addresses(host: str, is_allowed: bool) -> None:
    assert names_and_addresses(["Odd.Example.Org"])(host) is is_allowed


@few
@given(
    st.from_regex(r"[a-z][a-z0-9-]{0,20}(\.[a-z][a-z0-9-]{0,10}){0,3}(:\d{1,5})?", fullmatch=True), st.ip_addresses()
)
def test_no_other_name_and_every_address(name: str, address: Any) -> None:
    is_allowed = names_and_addresses([])
    assert is_allowed(name) is (name.partition(":")[0] == "localhost")
    assert is_allowed(f"[{address}]:80" if address.version == 6 else f"{address}:80")


def test_loopback_takes_its_own_port_only() -> None:
    assert all(map(loopback(8000), ("127.0.0.1:8000", "localhost:8000", "[::1]:8000")))
    assert not any(map(loopback(8000), ("127.0.0.1", "localhost:80", "10.0.0.1:8000", "a.example:8000", "\x00", "")))
    assert loopback(80)("localhost")


def test_a_host_that_is_not_allowed_is_refused() -> None:
    inner = Inner()
    app = checked(inner, trusted_host(loopback(80), remedy="do this instead"))
    assert exchange(app, headers={"host": "localhost"}).status == 200
    refused = exchange(app, headers={"host": "evil.example"})
    assert refused.code == (421, "wrong_host")
    assert b"do this instead" in refused.body
    assert exchange(app).code == (421, "wrong_host")
    assert len(inner.seen) == 1


@few
@given(words, st.sampled_from(["GET", "POST"]))
def test_no_other_origin_gets_in(origin: str, method: str) -> None:
    inner = Inner()
    answer = exchange(checked(inner, same_origin()), method, headers={"host": "localhost:1", "origin": origin})
    ours = origin.lower() in ("http://localhost:1", "https://localhost:1")
    assert answer.status == (200 if ours else 403)
    assert len(inner.seen) == ours


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense", "", "\x00"])
def test_other_sites_get_in_only_by_links(site: str) -> None:
    app = checked(Inner(), same_origin(linkable=["/"]))
    headers = {"host": "localhost", "sec-fetch-site": site}
    assert exchange(app, path="/api", headers=headers).code == (403, "wrong_origin")
    assert exchange(app, path="/", headers=headers).status == 200
    assert exchange(checked(Inner(), same_origin()), path="/", headers=headers).status == 403


def test_origins_of_requests_that_change_nothing_can_be_let_in() -> None:
    app = checked(Inner(), same_origin(safe_origins=True, schemes=["http"]))
    headers = {"host": "localhost", "origin": "http://evil.example"}
    assert [exchange(app, method, headers=headers).status for method in ("GET", "HEAD", "POST", "DELETE", "ODD")] == [
        200,
        200,
        403,
        403,
        403,
    ]
    assert exchange(app, "POST", headers={"host": "localhost", "origin": "https://localhost"}).status == 403
    assert exchange(app, "POST", headers={"host": "localhost", "origin": "http://localhost"}).status == 200


@few
@given(
    st.sampled_from(["GET", "POST", "HEAD", "DELETE", "ODD"]),
    st.sampled_from(["/health", "/health/", "/", "/v1/score", "//health"]) | words,
    st.none()
    | words
    | st.sampled_from([TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer x{TOKEN}", "Bearer", ""]),
)
def test_without_the_token_only_health_answers(method: str, path: str, given: str | None) -> None:
    inner = Inner()
    app = checked(inner, bearer_token(TOKEN, open_to_all=[("GET", "/health")]))
    headers = {} if given is None else {"authorization": given}
    answer = exchange(app, method, path, headers=headers)
    if (method, path) == ("GET", "/health"):
        assert answer.status == 200
        return
    assert answer.code == (401, "wrong_token" if given else "no_token")
    assert (b"www-authenticate", b"Bearer") in answer.answer_headers
    assert inner.seen == []


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"BEARER  {TOKEN} "])
def test_with_the_token_everything_answers(given: str) -> None:
    app = checked(Inner(), bearer_token(TOKEN))
    assert exchange(app, "POST", "/x", headers={"authorization": given}).status == 200


@few
@given(st.dictionaries(st.from_regex(r"[a-z-]{1,12}", fullmatch=True), words, min_size=1, max_size=4))
def test_security_headers_are_on_every_answer_once(headers: dict[str, str]) -> None:
    for app in (Inner(), refuse(404, "not_found", "no such path")):
        found = exchange(SecurityHeaders(app, headers)).answer_headers
        for name, value in headers.items():
            assert [v for n, v in found if n == name.encode()] == [value.encode("latin-1")]


# ---- how much --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/jsonl", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ],
)
def test_only_json(kind: str, status: int) -> None:
    assert exchange(checked(Inner(), json_only), "POST", headers={"content-type": kind}).status == status
    assert exchange(checked(Inner(), json_only), "POST").code == (415, "not_json")


def limited(inner: Any, max_bytes: int) -> Any:
    return checked(BufferedBody(inner, max_bytes), length_limit(max_bytes))


@few
@given(parts, st.integers(0, 100), st.booleans())
def test_bodies_up_to_the_limit_arrive_unchanged(parts: list[bytes], most: int, says_length: bool) -> None:
    inner = Inner()
    length = sum(map(len, parts))
    headers = {"content-length": str(length)} if says_length else {"transfer-encoding": "chunked"}
    answer = exchange(limited(inner, most), "POST", headers=headers, parts=parts)
    if length <= most:
        assert (answer.status, inner.bodies) == (200, [b"".join(parts)])
    else:
        assert answer.code == (413, "too_large")
        assert inner.bodies == []
        assert answer.n_read <= (0 if says_length else most + 30)


@pytest.mark.parametrize("length", ["-1", "1e3", "\x00", "9" * 30, "9" * 5000, "", "²"])
def test_lengths_that_are_none_are_too_large(length: str) -> None:
    assert exchange(limited(Inner(), 10), "POST", headers={"content-length": length}).code == (413, "too_large")


def buffered(inner: Any, *, max_seconds: float = 30.0, max_held_bytes: int = 100) -> BufferedBody:
    return BufferedBody(inner, 1000, max_seconds=max_seconds, max_held_bytes=max_held_bytes)


@few
@given(parts)
def test_the_app_gets_a_body_whole(parts: list[bytes]) -> None:
    messages = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        messages.append(await receive())
        assert scope["state"]["body_bytes"] == sum(map(len, parts))

    exchange(buffered(app, max_held_bytes=1000), "POST", parts=parts)
    assert messages == [{"type": "http.request", "body": b"".join(parts), "more_body": False}]


def test_a_body_that_is_cut_off_or_slow_is_refused() -> None:
    inner = Inner()
    cut = exchange(buffered(inner), "POST", parts=[b"{"], whole=False, leaves=True)
    assert cut.code == (400, "cut_off")
    slow = exchange(buffered(inner, max_seconds=0.01), "POST", parts=[b"{"], whole=False)
    assert slow.code == (408, "too_slow")
    assert all((b"connection", b"close") in answer.answer_headers for answer in (cut, slow))
    assert inner.seen == []


def test_bodies_under_way_hold_so_much_together() -> None:
    async def work() -> None:
        go_on = asyncio.Event()

        async def waiting(scope: Any, receive: Any, send: Any) -> None:
            await go_on.wait()
            await Inner()(scope, receive, send)

        app = buffered(waiting)
        first = asyncio.create_task(Exchange("POST", parts=[b"x" * 90]).with_app(app))
        await asyncio.sleep(0)
        second = await Exchange("POST", parts=[b"x" * 20]).with_app(app)
        assert second.code == (429, "busy")
        assert (b"retry-after", b"1") in second.answer_headers
        go_on.set()
        assert (await first).status == 200
        # What was refused or cut off, and what is answered, holds nothing.
        await Exchange("POST", parts=[b"x" * 60], whole=False, leaves=True).with_app(app)
        assert (await Exchange("POST", parts=[b"x" * 100]).with_app(app)).status == 200

    run(work())


def test_an_app_can_tell_when_its_client_leaves() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        gone = scope["state"]["gone"]
        assert (await gone)["type"] == "http.disconnect"
        assert (await receive())["type"] == "http.disconnect"

    exchange(buffered(app), "POST", parts=[b"{}"], leaves=True)


def test_nothing_is_left_waiting_for_a_client_that_stays() -> None:
    async def work() -> None:
        inner = Inner()
        assert (await Exchange("POST", parts=[b"{}"]).with_app(buffered(inner))).status == 200
        await asyncio.sleep(0)
        assert inner.seen[0]["state"]["gone"].cancelled()

    run(work())


def refusing(status: int) -> Any:
    """An app that answers without reading the body, and notes how much of it was read by then."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return app


@pytest.mark.parametrize(("status", "n_read"), [(200, 0), (403, 6), (404, 6), (408, 0)])
def test_the_rest_of_a_refused_body_is_read(status: int, n_read: int) -> None:
    app = DrainRefused(refusing(status), 5.0, {408: 0.0})
    for headers in ({"content-length": "6"}, {"transfer-encoding": "chunked"}):
        answer = exchange(app, "POST", headers=headers, parts=[b"abc", b"def"])
        assert (answer.status, answer.n_read) == (status, n_read)
    assert exchange(app, "POST", parts=[b"abc"]).n_read == 0  # there is no body by its headers


def test_draining_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {"content-length": "1000"}
    never_comes = exchange(DrainRefused(refusing(413), 0.01, {}), "POST", headers=headers, parts=[b"a"], whole=False)
    assert (never_comes.status, never_comes.n_read) == (413, 1)
    leaves = exchange(
        DrainRefused(refusing(413), 5, {}), "POST", headers=headers, parts=[b"a"], whole=False, leaves=True
    )
    assert leaves.status == 413
    monkeypatch.setattr("strays.apps.web.drain.MAX_BYTES", 250)
    endless = exchange(DrainRefused(refusing(413), 5, {}), "POST", headers=headers, parts=[b"x" * 100] * 10)
    assert (endless.status, endless.n_read) == (413, 300)


def test_a_body_that_was_read_is_not_waited_for() -> None:
    class Refusing(Inner):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await refusing(422)(scope, receive, send)

    answer = exchange(DrainRefused(Refusing(), 30, {}), "POST", headers={"content-length": "1"}, parts=[b"a"])
    assert answer.status == 422


# ---- busy ------------------------------------------------------------------------------------------------------------


def test_requests_under_way_are_limited() -> None:
    async def work() -> None:
        go_on = asyncio.Event()

        async def waiting(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] == "/slow":
                await go_on.wait()
            await Inner()(scope, receive, send)

        limit = RequestLimit(waiting, 2, exempt=["/health"])
        slow = [asyncio.create_task(Exchange(path="/slow").with_app(limit)) for _ in range(2)]
        await asyncio.sleep(0)
        assert limit.under_way == 2
        refused = await Exchange(path="/x").with_app(limit)
        assert refused.code == (429, "busy")
        assert (b"retry-after", b"1") in refused.answer_headers
        assert (await Exchange(path="/health").with_app(limit)).status == 200
        go_on.set()
        assert [(await one).status for one in slow] == [200, 200]
        assert limit.under_way == 0
        assert (await Exchange(path="/x").with_app(limit)).status == 200

    run(work())


def test_a_request_that_breaks_takes_no_place() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise KeyError

    limit = RequestLimit(broken, 1)
    for _ in range(3):
        with pytest.raises(KeyError):
            exchange(limit)
    assert limit.under_way == 0


def test_a_busy_server_reads_no_bodies() -> None:
    inner, reasons = Inner(), ["the queue is full"]
    app = checked(inner, lambda scope: busy(reasons[0]) if reasons else None)
    refused = exchange(app, "POST", parts=[b"{}"])
    assert (refused.code, refused.n_read) == ((429, "busy"), 0)
    assert b"the queue is full" in refused.body
    reasons.clear()
    assert exchange(app, "POST", parts=[b"{}"]).status == 200
