"""What the server's tests share: small saved models, the server in this process, and one in a process of its own."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from strays.apps.server.app import make_app
from strays.apps.server.limits import Limits
from strays.apps.server.metrics import Metrics
from strays.apps.server.middleware import with_middleware
from strays.apps.server.registry import WARM_UP, ModelRegistry
from strays.apps.server.serve import lifespan, limited_server
from strays.apps.web.log import Log
from strays.apps.web.sockets import bind
from strays.model import TextOutlierDetector
from tests.apps.asgi import InProcess, Loop
from tests.conftest import farm_texts

ODD = "win big cash now click here"
TOKEN = "a-token-of-the-tests-0123456789"


def save_model(folder: Path, encoder: Path, *, n: int = 60, detector: str = "centroid", seed: int = 0) -> Path:
    """A model of farm texts on the tiny encoder."""
    model = TextOutlierDetector(str(encoder), detector, random_state=seed)
    model.fit(farm_texts(n), [None] * (n - 1) + ["normal"]).save(folder)
    return folder


def wait_for(check: Callable[[], object], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.02)


def error(answer: httpx.Response) -> tuple[int, str]:
    """The status and the code of an error."""
    assert set(answer.json()) == {"error"}
    assert set(answer.json()["error"]) == {"code", "message"}
    return answer.status_code, answer.json()["error"]["code"]


def held_until(go_on: threading.Event) -> type[TextOutlierDetector]:
    """Models that score and explain only when told to go on."""

    class Held(TextOutlierDetector):
        def anomaly_score(self, texts: Any, **more: Any) -> Any:
            if list(texts) != [WARM_UP]:
                go_on.wait(60)
            return super().anomaly_score(texts, **more)

        def explain_many(self, texts: Any, **more: Any) -> Any:
            go_on.wait(60)
            return super().explain_many(texts, **more)

    return Held


class Calls:
    """What the tests ask of any server: `http` is a client of it, and its log is `lines`."""

    http: httpx.Client
    lines: list[str]

    def log(self) -> list[dict[str, Any]]:
        """The lines of the log so far."""
        return [json.loads(line) for line in list(self.lines)]

    def requests(self) -> list[dict[str, Any]]:
        """Those of the log that tell of requests."""
        return [line for line in self.log() if line["event"] == "request"]

    def score(self, texts: list[str | None], **more: Any) -> httpx.Response:
        return self.http.post("/v1/score", json={"texts": texts, **more})

    def scores(self, texts: list[str | None], **more: Any) -> list[float]:
        answer = self.score(texts, **more)
        assert answer.status_code == 200, answer.text
        return [result["anomaly_score"] for result in answer.json()["results"]]

    def metric(self, start: str) -> float:
        """The sum of the metrics whose lines start like this."""
        page = self.http.get("/metrics").text
        return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(start))


class Service(Calls):
    """The server without a process of its own, its models and middleware as in one; on a real socket, if asked for."""

    def __init__(
        self,
        *folders: Path,
        load: Callable[[str], TextOutlierDetector] = TextOutlierDetector.load,
        token: str | None = None,
        listens: bool = False,
        send_buffer: int | None = None,
        explanations: bool = True,
        log_requests: bool = True,
        **limits: float,
    ) -> None:
        torch = sys.modules.get("torch")  # only where something runs on it
        self._n_threads = torch and torch.get_num_threads()
        self.limits, self._stream = Limits(**limits), io.StringIO()
        log = self._log = Log(self._stream, requests=log_requests)
        ready, failures = threading.Event(), []
        named = {folder.name: str(folder) for folder in folders}
        self.registry = ModelRegistry(named, load, limits=self.limits, metrics=Metrics(lambda: log.dropped), log=log)
        running = lifespan(self.registry, ready.set, lambda failure: failures.append(failure) or ready.set())
        app = make_app(self.registry, explanations=explanations, has_token=token is not None, lifespan=running)
        self.app = with_middleware(app, self.registry, token=token, hosts=[])
        self.loop = Loop()
        transport: httpx.BaseTransport | None = None
        if listens:
            self._bound = bind(0)
            if send_buffer:
                self._bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
            self.base = f"http://127.0.0.1:{self._bound.getsockname()[1]}"
            self.server = limited_server(self.app, self.registry)
            self._done = asyncio.run_coroutine_threadsafe(self.server.serve([self._bound]), self.loop.loop)
        else:
            self.base = "http://localhost:8000"
            transport = InProcess(self.app, self.loop)
            self._lifespan = app.router.lifespan_context(app)
            self.loop.run(self._lifespan.__aenter__())
            self._done = None
        assert ready.wait(60)
        if failures:
            raise failures[0]
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.Client(transport=transport, base_url=self.base, headers=headers, timeout=60)

    @property
    def lines(self) -> list[str]:  # type: ignore[override]
        self._log.flush(10)
        return self._stream.getvalue().splitlines()

    def connect(self, receive_buffer: int | None = None) -> socket.socket:
        """A bare connection."""
        one = socket.socket()
        one.settimeout(30)
        if receive_buffer:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        one.connect(self._bound.getsockname())
        return one

    def stop(self) -> None:
        """Tell it to stop, as a signal does."""
        self.loop.loop.call_soon_threadsafe(self.server.stop)
        self._done.result(60)

    def close(self) -> None:
        self.http.close()
        if self._done is None:
            self.loop.run(self._lifespan.__aexit__(None, None, None))
        else:
            self.stop()
            self._bound.close()
        self.loop.close()
        if self._n_threads:
            sys.modules["torch"].set_num_threads(self._n_threads)


class Server(Calls):
    """`strays serve` on a free port, in a process of its own."""

    def __init__(self, *args: object, token: str | None = None) -> None:
        command = [sys.executable, "-m", "strays", "serve", "--port", "0", *map(str, args)]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        env.pop("STRAYS_TOKEN", None)
        if token is not None:
            env["STRAYS_TOKEN"] = token
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.base = self.process.stdout.readline().strip()
        if not self.base:
            self.process.wait(60)
            self._reader.join(5)
            raise RuntimeError("".join(self.lines))
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.Client(base_url=self.base, headers=headers, timeout=60)

    def _read(self) -> None:
        for line in self.process.stderr:
            self.lines.append(line)

    def end(self, how: int = signal.SIGTERM) -> int:
        """Stop it; its exit code."""
        self.http.close()
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(60)
        self._reader.join(10)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Path:
    return save_model(tmp_path_factory.mktemp("served") / "farm", tiny_bert)


@pytest.fixture(scope="session")
def model(model_folder: Path) -> TextOutlierDetector:
    """The served model, for comparison."""
    return TextOutlierDetector.load(model_folder)


@pytest.fixture(scope="session")
def service(model_folder: Path) -> Iterator[Service]:
    """A server in this process that the tests share, which none may stop or fill."""
    service = Service(model_folder)
    yield service
    service.close()


@pytest.fixture
def start(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Service]]:
    """Starts servers in this process, of the shared model unless others are given."""
    started: list[Service] = []
    # All of this process's garbage takes longer to look through than the rest of a start; the shared one does it.
    monkeypatch.setattr("strays.apps.server.registry._freeze_garbage", lambda: None)

    def start(*folders: Path, **more: Any) -> Service:
        started.append(Service(*(folders or [model_folder]), **more))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture(scope="session")
def server(model_folder: Path) -> Iterator[Server]:
    """A server in a process of its own that tests share, which none may stop or fill."""
    served = Server("--model", model_folder)
    yield served
    assert served.end() == 0


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Starts servers in processes of their own; those still there in the end are ended."""
    started: list[Server] = []

    def start(*args: object, **more: Any) -> Server:
        started.append(Server(*args, **more))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.end()
