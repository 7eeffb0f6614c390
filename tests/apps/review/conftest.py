"""What the desk's tests share: a desk on a fake encoder, its app in this process, and one served by another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.testclient import TestClient

from strays.apps.review import views
from strays.apps.review.app import make_app
from strays.apps.review.desk import Desk
from strays.apps.review.learner import Learner, Ranking
from strays.apps.review.open_project import open_desk
from strays.apps.review.refit import RefitWorker
from strays.apps.review.store import Entry, LabelStore
from strays.errors import DataError
from strays.model import TextOutlierDetector
from tests.conftest import HashEncoder, farm_texts

SPAM = ["win big cash now click here", "free cash win now", "click here to win free cash", "cash cash cash now"]


class QuickLearner(Learner):
    """Scores texts by their place and labels, at once: each anomaly learnt raises the texts after it."""

    def learn(self, labels: Any, searched: Any = None) -> Ranking:
        self.learnt = [*getattr(self, "learnt", []), list(labels)]
        if labels.count("anomaly") == len(labels):
            raise DataError("all texts are labelled anomaly")
        n = len(labels)
        score = np.linspace(1, 0, n)
        for place, label in enumerate(labels):
            if label == "anomaly":
                score[place + 1 : place + 2] += 2
        p = 1 - score / (1 + score.max())
        return Ranking(self.model, score, p, p < 0.1, None, sum(x is not None for x in labels), 0.0)


@cache
def some_model() -> TextOutlierDetector:
    """A model that was fitted on some texts."""
    return TextOutlierDetector(HashEncoder()).fit(farm_texts(20))


def make_desk(
    path: Path,
    texts: list[str] | None = None,
    *,
    given: dict[str, str] | None = None,
    every: int = 5,
    quick: bool = True,
    clock: Callable[[], float] = time.monotonic,
) -> Desk:
    """A desk on farm texts with a fake encoder; a quick one does not fit at all."""
    texts = texts if texts is not None else farm_texts(40)
    store = LabelStore(path)
    store.put_texts(Entry(text, 1, (row,), (given or {}).get(text)) for row, text in enumerate(texts, 1))
    store.set(encoder={"name": "hash"}, detector="auto", file="farm.csv")
    kept, encoder = store.texts(), HashEncoder()
    all_texts = [entry.text for entry in kept.values()]
    learner = (QuickLearner if quick else Learner)(all_texts, encoder.encode(all_texts), encoder)
    if quick:
        learner.model = some_model()
    return Desk(store, kept, learner, every=every, clock=clock)


def state(desk: Desk) -> dict[str, Any]:
    """What /api/state says of a desk."""
    return views.state(desk.refresh())


def queue(desk: Desk, client: str, n: int) -> dict[str, Any]:
    """What /api/queue gives a client."""
    now = desk.refresh()
    return views.queue(now, desk.queues.next(now, client, n))


def work(desk: Desk) -> None:
    """What the refit worker does in its thread, here and now."""
    RefitWorker(desk).work()


def ids(queue: dict[str, Any]) -> list[int]:
    return [item["id"] for item in queue["items"]]


def wait(what: Callable[[], Any], seconds: float = 120) -> Any:
    """What is true in the end."""
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, "it never came"
        time.sleep(0.01)
    return found


class Client:
    """What the tests ask of a desk over HTTP."""

    http: httpx.Client

    def get(self, path: str, **params: object) -> Any:
        answer = self.http.get(f"/api/{path}", params=params)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def judge(self, ids: list[int], verdict: str, who: str = "ada", client: str = "a") -> Any:
        body = {"ids": ids, "verdict": verdict, "who": who, "client": client}
        answer = self.http.post("/api/verdicts", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def undo(self, who: str = "ada", client: str = "a") -> Any:
        return self.http.post("/api/undo", json={"who": who, "client": client}).json()


class LocalDesk(Client):
    """A desk's app in this process, without a server: all that `strays review` does but for the network."""

    def __init__(self, file: Path | str, encoder: Path | None = None, *, who: str = "", **options: Any) -> None:
        settings = {"name": str(encoder)} if encoder else {}
        self.desk = open_desk(str(file), encoder=settings, progress=no_progress, **options)
        folder = f"{self.desk.project.path.with_suffix('')}.model"
        self._worker = RefitWorker(self.desk)
        self._worker.start()
        self._app = make_app(self.desk, who=who, model_folder=folder)
        self.http = TestClient(self._app)

    def end(self) -> None:
        self._app.state.explainer.close()
        self._worker.close()
        self.desk.store.close()


class Served(Client):
    """`strays review` in a process of its own, and a client that knows its token."""

    def __init__(self, *args: object) -> None:
        command = [sys.executable, "-m", "strays", "review", *map(str, args), "--no-browser"]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.link = self.process.stdout.readline().strip()
        if not self.link:
            raise RuntimeError(self.process.communicate()[1])
        self.base, self.token = self.link.split("/#token=")
        self.http = httpx.Client(base_url=self.base, headers={"authorization": f"Bearer {self.token}"}, timeout=60)

    def end(self, how: int = signal.SIGINT) -> tuple[int, str, str]:
        """Exit code, and what was printed after the link."""
        self.http.close()
        if self.process.poll() is None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@contextmanager
def no_progress(what: str) -> Iterator[None]:
    yield None


@pytest.fixture
def open_local(tiny_bert: Path) -> Iterator[Callable[..., LocalDesk]]:
    """Opens desks on the tiny encoder in this process; all are closed in the end."""
    with ExitStack() as opened:

        def start(file: Path | str, *, encoder: bool = True, **options: Any) -> LocalDesk:
            desk = LocalDesk(file, tiny_bert if encoder else None, **options)
            opened.callback(desk.end)
            return desk

        yield start


@pytest.fixture
def serve(tiny_bert: Path) -> Iterator[Callable[..., Served]]:
    """Starts processes on the tiny encoder; those still there in the end are ended."""
    started: list[Served] = []

    def start(*args: object, encoder: bool = True) -> Served:
        started.append(Served(*args, *(["--encoder", tiny_bert] if encoder else [])))
        return started[-1]

    yield start
    for served in started:
        if served.process.poll() is None:
            served.end(signal.SIGKILL)


@pytest.fixture
def farm_csv(tmp_path: Path) -> Path:
    path = tmp_path / "farm.csv"
    path.write_text("text\n" + "".join(f"{text}\n" for text in [*farm_texts(60), *SPAM, farm_texts(1)[0]]))
    return path
