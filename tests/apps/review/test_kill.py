"""A desk ended by SIGKILL in the midst of a stream of verdicts: what was acknowledged is in the project."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from strays.apps.review.history import History
from strays.apps.review.store import LabelStore
from tests.apps.review.conftest import Served

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")]
KILLS = 20

# The desk's server with the quick learner, in children of one process that has loaded the library.
FORKING = """
import os, sys
from pathlib import Path
from tests.apps.review.conftest import make_desk
from strays.apps.review.serve import serve
from strays.apps.web.sockets import bind
import uvicorn, strays.apps.review.app, strays.apps.review.middleware

make_desk(Path(sys.argv[1])).store.close()  # all that is slow is done once

def announce(link):
    os.write(1, f"{os.getpid()} {link}\\n".encode())

for _ in sys.stdin:
    pid = os.fork()
    if pid == 0:
        serve(make_desk(Path(sys.argv[1]), every=3), bind(0), who="", model_folder="none", announce=announce)
        os._exit(0)
    os.waitpid(pid, 0)
    os.write(1, b"ended\\n")
"""


def test_no_acknowledged_verdict_is_lost(tmp_path: Path) -> None:
    path, rng = tmp_path / "x.strays", random.Random(0)
    acknowledged: list[tuple[int, list[int], str]] = []
    sent = 0
    with subprocess.Popen(
        [sys.executable, "-c", FORKING, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # threads of a pool would not survive the fork
    ) as desks:
        for _ in range(KILLS):
            desks.stdin.write("go\n")
            pid, link = desks.stdout.readline().split()
            base, token = link.split("/#token=")
            last = rng.randint(0, 8)
            killing = threading.Timer(rng.uniform(0, 0.03), os.kill, (int(pid), signal.SIGKILL))
            with httpx.Client(base_url=base, headers={"authorization": f"Bearer {token}"}) as http:
                try:
                    for i in range(1000):
                        if i == last:  # from here on it may end at any moment
                            killing.start()
                        ids = rng.sample(range(1, 41), rng.choice([1, 1, 5]))
                        verdict = rng.choice(["normal", "anomaly", "skip"])
                        sent += 1
                        body = {"ids": ids, "verdict": verdict, "who": "ada", "client": "a"}
                        answer = http.post("/api/verdicts", json=body)
                        acknowledged.append((answer.json()["event"], ids, verdict))
                except httpx.HTTPError:
                    pass
            assert desks.stdout.readline() == "ended\n"
        desks.stdin.close()
    events = {event.id: event for event in LabelStore(path).events()}
    assert len(acknowledged) > KILLS
    assert len({number for number, *_ in acknowledged}) == len(acknowledged)
    for number, ids, verdict in acknowledged:
        assert (set(events[number].judgements), events[number].verdict) == (set(ids), verdict)
    assert len(acknowledged) <= len(events) <= sent  # what was under way may have been written, whole
    assert all(event.judgements for event in events.values())
    standing = History().add(list(events.values())).standing(range(1, 41))
    last = acknowledged[-1][0]
    newer = {text for number, event in events.items() if number > last for text in event.judgements}
    assert all(standing[text].id == last for text in set(events[last].judgements) - newer)


def test_the_command_itself_loses_nothing(tmp_path: Path, tiny_bert: Path, farm_csv: Path) -> None:
    desk = Served(farm_csv, "--encoder", tiny_bert, "--every", 2)
    for id_ in range(1, 8):
        desk.judge([id_], "anomaly" if id_ % 2 else "normal")
    desk.end(signal.SIGKILL)
    desk = Served(f"{farm_csv}.strays")
    assert desk.get("state")["judged"] == {"normal": 3, "anomaly": 4, "skipped": 0}
    assert desk.get("state")["learnt"]["n_labels"] == 7
    desk.end()
