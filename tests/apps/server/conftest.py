"""What the server's tests share: small saved models, and `strays serve` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from strays.model import TextOutlierDetector
from tests.conftest import farm_texts

ODD = "win big cash now click here"
TOKEN = "a-token-of-the-tests-0123456789"


def save_model(folder: Path, encoder: Path, *, n: int = 60, detector: str = "centroid", seed: int = 0) -> Path:
    """A model of farm texts on the tiny encoder."""
    model = TextOutlierDetector(str(encoder), detector, random_state=seed)
    model.fit(farm_texts(n), [None] * (n - 1) + ["normal"]).save(folder)
    return folder


class Server:
    """`strays serve` on a free port, a client for it, and what it logs."""

    def __init__(self, *args: object, token: str | None = None, client_token: bool = True) -> None:
        command = [sys.executable, "-m", "strays", "serve", "--port", "0", *map(str, args)]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        env.pop("STRAYS_TOKEN", None)
        if token is not None:
            env["STRAYS_TOKEN"] = token
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.base = self.process.stdout.readline().strip()
        if not self.base:
            self.process.wait(60)
            self._reader.join(5)
            raise RuntimeError("".join(self.lines))
        self.port = int(self.base.rpartition(":")[2])
        headers = {"authorization": f"Bearer {token}"} if token and client_token else {}
        self.http = httpx.Client(base_url=self.base, headers=headers, timeout=60)

    def _read(self) -> None:
        for line in self.process.stderr:
            self.lines.append(line)

    def log(self) -> list[dict[str, Any]]:
        """The lines of the log so far."""
        return [json.loads(line) for line in list(self.lines)]

    def score(self, texts: list[str | None], **more: Any) -> httpx.Response:
        return self.http.post("/v1/score", json={"texts": texts, **more})

    def scores(self, texts: list[str | None], **more: Any) -> list[float]:
        answer = self.score(texts, **more)
        assert answer.status_code == 200, answer.text
        return [result["anomaly_score"] for result in answer.json()["results"]]

    def connect(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

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
def server(model_folder: Path) -> Iterator[Server]:
    """A server that the tests share, which none may stop or fill."""
    served = Server("--model", model_folder)
    yield served
    assert served.end() == 0


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Starts servers; those still there in the end are ended."""
    started: list[Server] = []

    def start(*args: object, **more: Any) -> Server:
        started.append(Server(*args, **more))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.end()
