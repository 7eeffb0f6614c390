"""`strays serve`, a process: what only a whole process can show, such as signals, exit codes and memory."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest

from strays.model import TextOutlierDetector
from tests.apps.server.conftest import ODD, TOKEN, Server, error, save_model, wait_for
from tests.conftest import farm_texts

pytestmark = pytest.mark.process
Serve = Callable[..., Server]
# Seconds that a busy machine may add.
SLACK = 5


def test_from_start_to_stop(serve: Serve, tiny_bert: Path, tmp_path: Path) -> None:
    folder = save_model(tmp_path / "farm", tiny_bert)
    served = serve("--model", f"name={folder}", "--max-false-share", 0.001, "--max-waiting", 10**6, token=TOKEN)
    texts = [*farm_texts(5), ODD]
    for _ in range(3):
        np.testing.assert_allclose(
            served.scores(texts), TextOutlierDetector.load(folder).anomaly_score(texts), rtol=1e-5
        )
    assert error(httpx.get(f"{served.base}/ready")) == (401, "no_token")
    # A changed model is loaded when told so.
    save_model(folder, tiny_bert, n=40)
    served.process.send_signal(signal.SIGHUP)
    wait_for(lambda: served.http.get("/v1/model").json()["fitted_on"]["n_texts"] == 40)
    # Calls that were taken are finished.
    codes: list[int] = []

    def ask(texts: list[str]) -> None:
        headers = {"authorization": f"Bearer {TOKEN}"}
        codes.append(
            httpx.post(f"{served.base}/v1/score", json={"texts": texts}, headers=headers, timeout=60).status_code
        )

    calls = [[f"{' '.join(farm_texts(6))} {number} {i}" for i in range(1000)] for number in range(6)]
    threads = [threading.Thread(target=ask, args=[texts]) for texts in calls]
    for thread in threads:
        thread.start()
    wait_for(lambda: served.metric("strays_requests_under_way") == 7)
    assert served.end() == 0
    for thread in threads:
        thread.join()
    assert codes == [200] * 6
    log = served.log()
    assert log[-1]["event"] == "stopped"
    # Warnings are lines of the log, once for each place that they come from.
    warned = [line for line in log if line["event"] == "warning"]
    assert 1 <= len(warned) <= 2
    assert all("flagged" in line["message"] for line in warned)
    assert TOKEN not in "".join(served.lines)


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


def test_ctrl_c(serve: Serve, model_folder: Path) -> None:
    served = serve("--model", model_folder, "--no-access-log")
    assert served.scores([ODD])
    assert served.end(signal.SIGINT) == 130
    assert served.requests() == []


def test_bodies_made_to_cost_more_than_they_weigh(server: Server) -> None:
    server.score([ODD])
    before = server.metric("process_resident_memory_bytes")
    for body in (
        b'{"texts": [' + b"1," * 3_900_000 + b"1]}",
        b'{"texts": [' + b"null," * 1_500_000 + b"null]}",
        b'{"texts": [' + b'"",' * 2_600_000 + b'""]}',
        b"{" + b",".join(b'"%d":1' % i for i in range(700_000)) + b"}",
        b'{"texts": [' + b"[" * 3_900_000 + b"]" * 3_900_000 + b"]}",
        b'{"texts": ["' + b"\\u0000" * 1_300_000 + b'"]}',
    ):
        answer = server.http.post("/v1/score", content=body, headers={"content-type": "application/json"})
        assert error(answer)[0] in (400, 422), body[:20]
        assert len(answer.content) < 2000
    assert server.metric("process_resident_memory_bytes") - before < 500e6


def test_a_log_that_nobody_reads_stops_nothing(model_folder: Path) -> None:
    reads, writes = os.pipe()
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)  # some 20 lines
    command = [sys.executable, "-m", "strays", "serve", "--port", "0", "--model", str(model_folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writes, text=True) as process:
        os.close(writes)
        base = process.stdout.readline().strip()
        try:
            with httpx.Client(base_url=base, timeout=30) as http:
                assert [http.get("/none").status_code for _ in range(400)] == [404] * 400
                assert http.get("/health").status_code == 200
                assert http.post("/v1/score", json={"texts": [ODD]}).status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
    with os.fdopen(reads) as pipe:
        assert sum('"path": "other"' in line for line in pipe) > 5


def test_a_stop_ends_within_seconds_whatever_is_waiting(tmp_path: Path, tiny_bert: Path) -> None:
    """Explanations that never come, and a log that nobody reads."""
    folder = save_model(tmp_path / "farm", tiny_bert)
    code = (
        "import sys, time\n"
        "from strays.model import TextOutlierDetector\n"
        "TextOutlierDetector.explain_many = lambda *_, **__: time.sleep(600)\n"
        "from strays.apps.cli import main\n"
        f"main(['serve', '--port', '0', '--model', {str(folder)!r}])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    base = process.stdout.readline().strip()

    def ask() -> int:
        return httpx.post(f"{base}/v1/score", json={"texts": [ODD], "explain": True}, timeout=60).status_code

    try:
        with ThreadPoolExecutor(8) as pool:
            calls = [pool.submit(ask) for _ in range(8)]
            wait_for(lambda: "strays_requests_under_way 9.0" in httpx.get(f"{base}/metrics").text)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            took = time.monotonic() - began
            assert [call.result() for call in calls] == [503] * 8
    finally:
        process.kill()
        process.communicate()
    assert took < 10 + SLACK  # a promise to whoever stops it, not a timing
