"""`strays serve`, a real process, over real connections."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import numpy as np
import pytest

from strays.model import TextOutlierDetector
from tests.apps.server.conftest import ODD, TOKEN, Server, save_model
from tests.conftest import farm_texts

Serve = Callable[..., Server]
# A server with limits that the command line does not have, of a model and, where there is one, a token.
SERVING = """
import sys
from strays.model import TextOutlierDetector
from strays.apps.server.limits import Limits
from strays.apps.server.log import Log
from strays.apps.server.serve import serve
from strays.apps.web.sockets import bind
with bind(0) as bound:
    serve({{"farm": sys.argv[1]}}, TextOutlierDetector.load, bound, token=(sys.argv[2:] or [None])[0], hosts=[],
          limits=Limits({limits}), explanations=True, log=Log(),
          announce=lambda: print(bound.getsockname()[1], flush=True))
"""
# Of a call whose body is long in coming.
HEAD = b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"


def wait_for(check: Callable[[], object], seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.05)


# ---- scores ----------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_model(server: Server, model_folder: Path) -> None:
    texts = [*farm_texts(70)[55:], ODD]
    answer = server.score(texts).json()
    offline = TextOutlierDetector.load(model_folder).score(texts)
    assert answer["model"] == "farm"
    assert len(answer["version"]) == 16
    results = answer["results"]
    np.testing.assert_allclose([r["anomaly_score"] for r in results], offline.anomaly_score, rtol=1e-5)
    np.testing.assert_allclose([r["p_value"] for r in results], offline.p_value)
    assert [r["flagged"] for r in results] == offline.flagged.tolist()
    assert results[-1] == max(results, key=lambda r: r["anomaly_score"])


def test_nothing_to_score(server: Server) -> None:
    nothing = {"anomaly_score": None, "p_value": None, "flagged": None}
    results = server.score(["", ODD, None, " \n"]).json()["results"]
    assert [results[0], results[2], results[3]] == [nothing] * 3
    assert results[1]["anomaly_score"] is not None
    assert server.score([]).json()["results"] == []


def test_explanations(server: Server, model_folder: Path) -> None:
    first, blank, last = server.score([ODD, "", farm_texts(1)[0]], explain=True).json()["results"]
    offline = TextOutlierDetector.load(model_folder).explain(ODD).to_dict()
    assert first["explanation"]["segments"][0]["text"] == offline["segments"][0]["text"]
    assert last["explanation"]["text"] == farm_texts(1)[0]
    assert "explanation" not in blank


def test_model_health_ready_and_schema(server: Server) -> None:
    assert server.http.get("/health").json() == {"status": "ok"}
    assert server.http.get("/ready").json() == {"status": "ready"}
    facts = server.http.get("/v1/model").json()
    assert (facts["model"], facts["models"], facts["fitted_on"]["n_texts"]) == ("farm", ["farm"], 60)
    limits = {"body_bytes": 8_000_000, "texts": 1000, "characters": 100_000}
    assert facts["limits"] == limits | {"explained_texts": 16, "explained_characters": 4000}
    schema = server.http.get("/openapi.json").json()
    assert schema["components"]["schemas"]["ScoreCall"]["properties"]["texts"]["maxItems"] == 1000
    assert "example" in schema["components"]["schemas"]["ScoreCall"]
    assert set(schema["components"]["schemas"]["ModelFacts"]["required"]) == set(facts)


def test_metrics_count(server: Server) -> None:
    def value(line: str) -> float:
        page = server.http.get("/metrics").text
        return sum(float(row.split()[-1]) for row in page.splitlines() if row.startswith(line))

    names = ["strays_texts_total{", 'strays_requests_total{path="/v1/score",status="200"}', "strays_blank_texts_total{"]
    before = [value(name) for name in names]
    server.score([ODD, "", "the cat"])
    assert [value(name) - was for name, was in zip(names, before, strict=True)] == [2, 1, 1]
    assert value('strays_p_value_bucket{le="1.0"') == value("strays_texts_total{")
    assert value("process_resident_memory_bytes") > 0


def test_many_at_once_get_their_own(server: Server, model_folder: Path) -> None:
    texts = farm_texts(300)
    expected = dict(zip(texts, TextOutlierDetector.load(model_folder).anomaly_score(texts), strict=True))

    def ask(seed: int) -> int:
        rng = np.random.default_rng(seed)
        for _ in range(12):
            mine = [texts[i] for i in rng.integers(0, 300, rng.integers(1, 30))]
            np.testing.assert_allclose(server.scores(mine), [expected[text] for text in mine], rtol=1e-5)
        return 12

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(ask, range(16))) == 192


# ---- refusals --------------------------------------------------------------------------------------------------------


def error(answer: httpx.Response) -> tuple[int, str]:
    assert set(answer.json()) == {"error"}
    assert set(answer.json()["error"]) == {"code", "message"}
    return answer.status_code, answer.json()["error"]["code"]


def test_bad_calls(server: Server) -> None:
    post = server.http.post
    assert error(post("/v1/score", json={"texts": [1]})) == (422, "invalid")
    assert error(post("/v1/score", json={"text": "a"})) == (422, "invalid")
    assert error(post("/v1/score", json={"texts": ["a"], "explian": True})) == (422, "invalid")
    assert error(post("/v1/score", json={"texts": ["a"], "explain": "yes"})) == (422, "invalid")
    assert error(post("/v1/score", json=["a"])) == (422, "invalid")
    json_type = {"content-type": "application/json"}
    for body in (b"{a}", b"{", b"[1,]"):
        assert error(post("/v1/score", content=body, headers=json_type)) == (400, "not_json")
    for body in (b"", b"\xff", b'{"texts": ["\\ud800"]', b"[" * 100_000, b'{"texts": [' + b"9" * 6000 + b"]}"):
        status, _ = error(post("/v1/score", content=body, headers=json_type))
        assert status in (400, 422), body[:20]
    assert error(post("/v1/score", content=b"texts=a")) == (415, "not_json")
    assert error(server.score(["a"], model="cats")) == (404, "no_such_model")
    assert error(server.http.get("/v1/model", params={"model": "cats"})) == (404, "no_such_model")
    assert error(server.http.get("/v2/score")) == (404, "not_found")
    for like in ("/v1/score%0A", "/v1/score/", "//v1/score", "/v1//score", "/V1/score"):
        assert error(post(like, content=b" " * 9_000_000, headers=json_type)) == (404, "not_found"), like
    assert error(server.http.get("/v1/score")) == (405, "method_not_allowed")
    assert error(server.http.put("/v1/score", json={})) == (405, "method_not_allowed")
    assert error(server.score(["a"] * 1001)) == (422, "too_many_texts")
    assert error(server.score(["a"] * 17, explain=True)) == (422, "too_many_texts")
    assert error(server.score(["a", "b" * 100_001])) == (422, "text_too_long")
    assert error(server.score(["a", "b" * 4_001], explain=True)) == (422, "text_too_long")
    assert error(post("/v1/score", json={"texts": ["a" * 8_000_001]})) == (413, "too_large")
    assert server.scores([ODD])[0] is not None


def test_what_is_wrong_with_a_call_is_said(server: Server) -> None:
    post, json_type = server.http.post, {"content-type": "application/json"}
    for answer, words in (
        (post("/v1/score", json={"text": ["a"]}), "there is no field 'text'; expected texts"),
        (post("/v1/score", json=["a"]), "expected a JSON object"),
        (post("/v1/score", content=b"", headers=json_type), "expected a JSON object"),
        (server.http.get("/v1/score"), "this path takes POST"),
        (server.score(["a"] * 17, explain=True), "17 texts; with explain, expected at most 16"),
    ):
        assert words in answer.json()["error"]["message"]


def test_half_characters_are_scored_as_in_files(server: Server, model_folder: Path) -> None:
    answer = server.http.post(
        "/v1/score", content=b'{"texts": ["a \\ud800 cat"]}', headers={"content-type": "application/json"}
    )
    expected = TextOutlierDetector.load(model_folder).anomaly_score(["a ? cat"])
    assert answer.json()["results"][0]["anomaly_score"] == pytest.approx(expected[0], rel=1e-5)


def test_a_body_of_unknown_length_ends_where_it_grows_too_large(server: Server) -> None:
    def parts() -> object:
        yield b'{"texts": ["'
        for _ in range(12):
            yield b"a" * 1_000_000

    answer = server.http.post("/v1/score", content=parts(), headers={"content-type": "application/json"})
    assert error(answer) == (413, "too_large")


def test_foreign_hosts_and_origins(server: Server) -> None:
    get = server.http.get
    for path in ("/health", "/ready", "/v1/model", "/metrics", "/openapi.json"):
        assert error(get(path, headers={"host": "evil.example"})) == (421, "wrong_host")
        assert error(get(path, headers={"host": f"127.0.0.1.evil.example:{server.port}"})) == (421, "wrong_host")
        assert error(get(path, headers={"origin": "https://evil.example"})) == (403, "wrong_origin")
        assert error(get(path, headers={"origin": "null"})) == (403, "wrong_origin")
        assert error(get(path, headers={"sec-fetch-site": "cross-site"})) == (403, "wrong_origin")
        assert get(path, headers={"origin": server.base}).status_code == 200
        assert get(path, headers={"host": f"localhost:{server.port}"}).status_code == 200
    call = {"texts": [ODD]}
    assert error(server.http.post("/v1/score", json=call, headers={"host": "evil.example"})) == (421, "wrong_host")
    with server.connect() as twice:
        twice.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert twice.recv(1000).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 421 "))


def test_without_the_token_only_health_answers(serve: Serve, model_folder: Path) -> None:
    served = serve("--model", model_folder, token=TOKEN)
    ways = [("GET", path) for path in ("/ready", "/v1/model", "/metrics", "/openapi.json", "/", "/nothing", "/health/")]
    wrong = [
        {},
        {"authorization": "Bearer"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Basic {TOKEN}"},
    ]
    with httpx.Client(base_url=served.base, timeout=30) as stranger:
        for headers in wrong:
            for method, path in [*ways, ("POST", "/v1/score"), ("POST", "/health"), ("DELETE", "/v1/model")]:
                answer = stranger.request(method, path, headers=headers)
                assert error(answer) == (401, "wrong_token" if headers else "no_token"), (method, path)
                assert answer.headers["www-authenticate"] == "Bearer"
            assert stranger.get("/health", headers=headers).json() == {"status": "ok"}
    assert served.scores([ODD])
    assert served.http.get("/openapi.json").json()["components"]["securitySchemes"]
    served.end()
    assert TOKEN not in "".join(served.lines)


def test_what_may_listen_where(model_folder: Path, tmp_path: Path) -> None:
    def run(*args: object, token: str | None = None) -> tuple[int, str]:
        env = {**os.environ, **({"STRAYS_TOKEN": token} if token is not None else {})}
        command = [sys.executable, "-m", "strays", "serve", "--port", "0", *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
        return done.returncode, done.stderr

    code, words = run("--model", model_folder, "--host", "0.0.0.0")
    assert code == 2
    assert "token" in words
    code, words = run("--model", model_folder, token="short")
    assert code == 2
    assert "the token in STRAYS_TOKEN has 5 characters" in words
    code, words = run("--model", model_folder, "--token-file", tmp_path / "none")
    assert code == 2
    code, words = run("--model", tmp_path)
    assert code == 1
    assert "config.json is missing" in words
    code, words = run("--model", f"a={model_folder}", "--model", f"a={model_folder}")
    assert code == 2
    assert "two models" in words
    code, words = run("--model", model_folder, "--host", "no.such.host.example")
    assert code == 2
    code, words = run("--model", model_folder, "--allow-host", "https://odd.example.org")
    assert code == 2
    assert "a name alone" in words


# ---- many, slow and gone clients -------------------------------------------------------------------------------------


def test_a_full_server_refuses_and_recovers(serve: Serve, model_folder: Path) -> None:
    served = serve("--model", model_folder, "--max-waiting", 50)

    def ask(_: int) -> tuple[int, str | None]:
        answer = httpx.post(f"{served.base}/v1/score", json={"texts": farm_texts(200)}, timeout=60)
        return answer.status_code, answer.headers.get("retry-after")

    with ThreadPoolExecutor(40) as pool:
        found = set(pool.map(ask, range(160)))
    assert found == {(200, None), (429, "1")}
    assert served.scores([ODD])
    assert "strays_waiting_texts" in served.http.get("/metrics").text


def test_slow_and_half_sent_bodies_hold_nobody_up(server: Server) -> None:
    slow = [server.connect() for _ in range(50)]
    for i, one in enumerate(slow):
        one.sendall(HEAD[: 10 + i] if i % 2 else HEAD + b'{"texts": ["a')
    assert server.scores([ODD])
    for one in slow:
        one.close()
    wait_for(lambda: sum(line.get("status") == 400 for line in server.log()) >= 25)  # cut off, and noticed
    assert server.scores([ODD])


def test_silent_connections_make_room_for_others(model_folder: Path) -> None:
    script = SERVING.format(limits="connections=10")
    with ExitStack() as open_ones:
        process = open_ones.enter_context(
            subprocess.Popen([sys.executable, "-c", script, str(model_folder)], stdout=subprocess.PIPE, text=True)
        )
        open_ones.callback(process.terminate)
        port = int(process.stdout.readline())

        def connect() -> socket.socket:
            return open_ones.enter_context(socket.create_connection(("127.0.0.1", port), 30))

        asking = connect()
        asking.sendall(HEAD.replace(b" 99", b" 20") + b'{"texts"')
        metrics = f"http://127.0.0.1:{port}/metrics"
        wait_for(lambda: "strays_requests_under_way 2" in httpx.get(metrics, timeout=60).text)
        silent = [connect() for _ in range(60)]
        assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
        for one in silent[:50]:
            with suppress(ConnectionResetError):
                assert one.recv(1) == b""
        asking.sendall(b': ["a cow"]}')
        assert asking.recv(1000).startswith(b"HTTP/1.1 200 ")
        silent[-1].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert silent[-1].recv(1000).startswith(b"HTTP/1.1 200 ")


def test_an_answer_that_is_being_read_is_not_cut_off_to_make_room(model_folder: Path) -> None:
    small = "bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)"  # so that the answer waits in the server
    script = "import socket" + SERVING.format(limits="connections=10").replace("bound:\n", f"bound:\n    {small}\n")
    with ExitStack() as open_ones:
        process = open_ones.enter_context(
            subprocess.Popen([sys.executable, "-c", script, str(model_folder)], stdout=subprocess.PIPE, text=True)
        )
        open_ones.callback(process.terminate)
        port = int(process.stdout.readline())
        reader = open_ones.enter_context(socket.socket())
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.settimeout(60)
        reader.connect(("127.0.0.1", port))
        body = json.dumps({"texts": farm_texts(300) * 3}).encode()
        reader.sendall(HEAD.replace(b" 99", f" {len(body)}".encode()) + body)
        answer = reader.recv(1000)
        for _ in range(30):
            open_ones.enter_context(socket.create_connection(("127.0.0.1", port), 30))
        assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
        head, _, answer = answer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split()[0])
        assert length > 50_000
        while len(answer) < length and (more := reader.recv(65_536)):
            answer += more
        assert len(json.loads(answer)["results"]) == 900


def test_clients_that_are_too_slow_are_let_go(model_folder: Path) -> None:
    script = SERVING.format(limits="body_seconds=1, idle_seconds=1")
    process = subprocess.Popen([sys.executable, "-c", script, str(model_folder)], stdout=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline())
        with ExitStack() as open_ones:
            silent, half_head, half_body, deaf = (
                open_ones.enter_context(socket.create_connection(("127.0.0.1", port), 15)) for _ in range(4)
            )
            half_head.sendall(b"GET /health HT")
            half_body.sendall(HEAD + b"{")
            assert half_body.recv(1000).startswith(b"HTTP/1.1 408 ")
            assert silent.recv(1000) == b""
            assert half_head.recv(1000) == b""
            # Asks and asks, and never reads: its answers fill the buffers, and it is cut off.
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.settimeout(20)
            ask = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50
            with pytest.raises(OSError, match=r"reset|[Bb]roken"):
                for _ in range(4000):
                    deaf.sendall(ask)
                    time.sleep(0.005)
        assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stdout.close()


def test_what_was_taken_is_finished(serve: Serve, model_folder: Path) -> None:
    served = serve("--model", model_folder, "--max-waiting", 10**6)
    codes: list[int] = []

    def ask(texts: list[str]) -> None:
        codes.append(httpx.post(f"{served.base}/v1/score", json={"texts": texts}, timeout=60).status_code)

    calls = [[f"{' '.join(farm_texts(6))} {number} {i}" for i in range(1000)] for number in range(6)]
    threads = [threading.Thread(target=ask, args=[texts]) for texts in calls]
    for thread in threads:
        thread.start()
    wait_for(lambda: "strays_requests_under_way 7" in served.http.get("/metrics").text)
    assert served.end() == 0
    for thread in threads:
        thread.join()
    assert codes == [200] * 6
    assert served.log()[-1]["event"] == "stopped"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells by /proc which signals are handled")
def test_stopped_while_it_loads(model_folder: Path) -> None:
    # As process 1 of a container, it would not be ended by a signal that it does not handle.
    command = [sys.executable, "-m", "strays", "serve", "--port", "0", "--model", str(model_folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:

        def handles() -> bool:
            status = Path(f"/proc/{process.pid}/status").read_text()
            caught = int(status.partition("SigCgt:")[2].split()[0], 16)
            return bool(caught >> (signal.SIGTERM - 1) & 1)

        wait_for(handles)
        process.terminate()
        assert process.communicate(timeout=30) == ("", "")
        assert process.returncode == 0


def test_a_call_that_takes_too_long_for_a_stop_is_told_so(model_folder: Path) -> None:
    script = SERVING.format(limits="shutdown_seconds=1, texts=10**6, body_bytes=10**8, waiting=10**6")
    with subprocess.Popen(
        [sys.executable, "-c", script, str(model_folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        base = f"http://127.0.0.1:{int(process.stdout.readline())}"
        texts = [f"{' '.join(farm_texts(12))} {i}" for i in range(60_000)]
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(httpx.post, f"{base}/v1/score", json={"texts": texts}, timeout=120)
            wait_for(lambda: re.search(r"strays_waiting_texts\S* [1-9]", httpx.get(f"{base}/metrics", timeout=60).text))
            process.terminate()
            assert error(call.result()) == (503, "stopping")
        assert process.wait(60) == 0
        lines = [json.loads(line) for line in process.stderr]
    assert [line["status"] for line in lines if line.get("path") == "/v1/score"] == [503]


def test_ctrl_c(serve: Serve, model_folder: Path) -> None:
    served = serve("--model", model_folder)
    assert served.end(signal.SIGINT) == 130


# ---- models ----------------------------------------------------------------------------------------------------------


def test_several_models(serve: Serve, model_folder: Path, tiny_bert: Path, tmp_path: Path) -> None:
    other = save_model(tmp_path / "other", tiny_bert, n=30, detector="nearest")
    served = serve("--model", f"first={model_folder}", "--model", other)
    texts = [ODD, *farm_texts(3)]
    for name, folder in (("first", model_folder), ("other", other)):
        expected = TextOutlierDetector.load(folder).anomaly_score(texts)
        np.testing.assert_allclose(served.scores(texts, model=name), expected, rtol=1e-5)
        assert served.http.get("/v1/model", params={"model": name}).json()["model"] == name
    assert served.scores(texts) == served.scores(texts, model="first")
    assert served.http.get("/v1/model").json()["models"] == ["first", "other"]


def test_a_changed_model_is_loaded_without_a_lost_call(serve: Serve, tiny_bert: Path, tmp_path: Path) -> None:
    folder = save_model(tmp_path / "farm", tiny_bert)
    served = serve("--model", folder)
    expected = {
        served.http.get("/v1/model").json()["version"]: TextOutlierDetector.load(folder).anomaly_score([ODD])[0]
    }
    stop, wrong = threading.Event(), []
    scores: dict[str, set[float]] = {}

    def ask() -> None:
        with httpx.Client(base_url=served.base, timeout=60) as client:
            while not stop.is_set():
                answer = client.post("/v1/score", json={"texts": [ODD]})
                if answer.status_code != 200:
                    wrong.append(answer.text)
                    continue
                scores.setdefault(answer.json()["version"], set()).add(answer.json()["results"][0]["anomaly_score"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: scores)
        for n in (40, 80):
            save_model(folder, tiny_bert, n=n)
            offline = TextOutlierDetector.load(folder)
            expected[offline.fingerprint[:16]] = offline.anomaly_score([ODD])[0]
            served.process.send_signal(signal.SIGHUP)
            wait_for(lambda: offline.fingerprint[:16] in scores)  # noqa: B023
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert set(scores) == set(expected)
    for version, seen in scores.items():
        assert list(seen) == pytest.approx([expected[version]] * len(seen), rel=1e-5)


def test_a_model_that_cannot_be_loaded_changes_nothing(serve: Serve, tiny_bert: Path, tmp_path: Path) -> None:
    folder = save_model(tmp_path / "farm", tiny_bert)
    served = serve("--model", folder)
    before = served.scores([ODD])
    config = (folder / "config.json").read_bytes()
    times = (folder / "config.json").stat()
    (folder / "config.json").write_text("{")
    wait_for(lambda: served.http.get("/v1/model").json()["reload_failed"] is not None)
    assert served.scores([ODD]) == before
    assert 'strays_model_loads_total{model="farm",outcome="failed"} 1.0' in served.http.get("/metrics").text
    # As it was before: there is nothing that failed.
    (folder / "config.json").write_bytes(config)
    os.utime(folder / "config.json", ns=(times.st_atime_ns, times.st_mtime_ns))
    wait_for(lambda: served.http.get("/v1/model").json()["reload_failed"] is None)
    shutil.rmtree(folder)  # not there at all: nothing to load
    served.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "no model" in (served.http.get("/v1/model").json()["reload_failed"] or ""))
    assert served.scores([ODD]) == before
    save_model(folder, tiny_bert, n=40)
    wait_for(lambda: served.http.get("/v1/model").json()["fitted_on"]["n_texts"] == 40)
    facts = served.http.get("/v1/model").json()
    assert facts["reload_failed"] is None
    assert served.scores([ODD]) != before


# ---- the log ---------------------------------------------------------------------------------------------------------


def test_the_log_tells_of_requests_and_never_of_texts(serve: Serve, model_folder: Path) -> None:
    served = serve("--model", model_folder)
    secret = "xyzzy-plugh"
    served.score([f"{secret} one", secret], explain=True)
    served.http.post("/v1/score", json={"texts": [{secret: secret}], secret: secret})
    served.http.post("/v1/score", content=secret, headers={"content-type": "application/json", "x-secret": secret})
    served.http.get(f"/{secret}", params={secret: secret}, headers={"x-request-id": f"{secret} {secret}"})
    served.http.get("/health", headers={"x-request-id": "id-of-the-caller"})
    served.score([secret], model=secret)
    with served.connect() as bare:
        bare.sendall(f"{secret.upper()} / HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert bare.recv(100).startswith(b"HTTP/1.1 404 ")
    served.end()
    assert secret.upper() not in "".join(served.lines)
    assert secret not in "".join(served.lines)
    requests = [line for line in served.log() if line["event"] == "request"]
    assert len(requests) == 7
    assert requests[6]["method"] == "other"
    assert requests[0]["texts"] == 2
    assert requests[0]["status"] == 200
    assert requests[0]["model"] == "farm"
    assert requests[3]["path"] == "other"
    assert [line.get("code") for line in requests[:4]] == [None, "invalid", "not_json", "not_found"]
    assert requests[4]["id"] == "id-of-the-caller"
    assert all({"time", "level", "id", "seconds", "bytes", "client"} <= set(line) for line in requests)


def test_only_failures_are_logged_where_asked(serve: Serve, model_folder: Path) -> None:
    served = serve("--model", model_folder, "--no-access-log", "--no-explanations")
    served.score([ODD])
    assert error(served.score([ODD], explain=True)) == (422, "no_explanations")
    served.end()
    assert [line["status"] for line in served.log() if line["event"] == "request"] == [422]


def test_bodies_made_to_cost_more_than_they_weigh(serve: Serve, model_folder: Path) -> None:
    served = serve("--model", model_folder, "--no-access-log")
    served.score([ODD])

    def memory() -> float:
        page = served.http.get("/metrics").text
        return next(float(line.split()[1]) for line in page.splitlines() if line.startswith("process_resident_memory"))

    before = memory()
    for body in (
        b'{"texts": [' + b"1," * 3_900_000 + b"1]}",
        b'{"texts": [' + b"null," * 1_500_000 + b"null]}",
        b'{"texts": [' + b'"",' * 2_600_000 + b'""]}',
        b"{" + b",".join(b'"%d":1' % i for i in range(700_000)) + b"}",
        b'{"texts": [' + b"[" * 3_900_000 + b"]" * 3_900_000 + b"]}",
        b'{"texts": ["' + b"\\u0000" * 1_300_000 + b'"]}',
    ):
        answer = served.http.post("/v1/score", content=body, headers={"content-type": "application/json"})
        assert error(answer)[0] in (400, 422), body[:20]
        assert len(answer.content) < 2000
    assert memory() - before < 500e6


def test_strangers_take_no_places(model_folder: Path) -> None:
    script = SERVING.format(limits="requests=3, explaining=2")
    command = [sys.executable, "-c", script, str(model_folder), TOKEN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        port = int(process.stdout.readline())
        ours = {"authorization": f"Bearer {TOKEN}"}
        with ExitStack() as open_ones:
            for _ in range(20):
                stranger = open_ones.enter_context(socket.create_connection(("127.0.0.1", port), 15))
                stranger.sendall(HEAD + b"{")
            url = f"http://127.0.0.1:{port}/v1/score"
            assert httpx.post(url, json={"texts": [ODD]}, headers=ours, timeout=30).status_code == 200
            known = HEAD.replace(b"\r\nHost", f"\r\nAuthorization: Bearer {TOKEN}\r\nHost".encode())
            for _ in range(3):
                slow = open_ones.enter_context(socket.create_connection(("127.0.0.1", port), 15))
                slow.sendall(known + b"{")
            wait_for(lambda: httpx.post(url, json={"texts": [ODD]}, headers=ours).status_code == 429)
            assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
        # Clients that ask for an explanation and do not wait for it leave no places taken.
        body = json.dumps({"texts": [f"the cat {i} sleeps" for i in range(16)], "explain": True}).encode()
        head = known.replace(b"Content-Length: 99", b"Content-Length: %d" % len(body))
        for _ in range(8):
            with socket.create_connection(("127.0.0.1", port), 15) as hasty:
                hasty.sendall(head + body)
        explain = {"texts": [ODD], "explain": True}
        wait_for(lambda: httpx.post(url, json=explain, headers=ours, timeout=60).status_code == 200)
        process.terminate()
        assert process.wait(60) == 0
        for line in process.stderr:
            json.loads(line)


def test_what_breaks_in_the_loop_is_a_line_of_the_log(model_folder: Path) -> None:
    broken = "__import__('asyncio').get_running_loop().call_exception_handler({'exception': KeyError('a text')})"
    script = SERVING.format(limits="").replace("announce=lambda: print(", f"announce=lambda: {broken} or print(")
    with subprocess.Popen(
        [sys.executable, "-c", script, str(model_folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline().strip().isdigit()
        process.terminate()
        lines = [json.loads(line) for line in process.stderr]
    assert [line["error"] for line in lines if line["event"] == "broken"] == ["KeyError"]
    assert "a text" not in str(lines)


def test_warnings_are_lines_of_the_log(serve: Serve, model_folder: Path) -> None:
    served = serve("--model", model_folder, "--max-false-share", 0.001)
    for _ in range(3):
        served.scores(farm_texts(5))
    served.end()
    told = [line for line in served.log() if line["event"] == "warning"]
    assert 1 <= len(told) <= 2
    assert all("flagged" in line["message"] for line in told)
