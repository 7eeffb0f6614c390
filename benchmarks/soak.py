"""`strays serve` and `strays review` for a long time under mixed load, at once, on the machine that makes the load.

    python -m benchmarks.soak [--minutes 30]

The server gets calls of one to many texts, with and without explanations, while its model is replaced every 20 seconds
by one of two; clients that leave, read slowly, stay silent or send no HTTP at all; and a log that is read slowly, then
not at all, then again. The desk gets verdicts, undos, searches, exports, and the same bad clients without a token.

Every score is compared with the offline score of its text by the model that the answer names, and the verdicts that
the desk acknowledged with its last export. Memory is that of the last third of the time against the middle third. In
the end both are stopped while explanations wait. Writes results/soak.json.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.bad_clients import BadClients, Seen
from benchmarks.common import machine, write_json
from benchmarks.titles import titles
from strays import TextOutlierDetector

N_TEXTS, N_FITTED, N_DESK = 2000, 600, 5000
RELOAD_SECONDS, SAMPLE_SECONDS = 20.0, 5.0
SCORERS, TEXTS_PER_CALL = 6, (1, 1, 3, 10, 40, 200)
LONG = " and ".join(["the old bakers sell clocks in the harbour after the flood"] * 40)
Step = Callable[[], Awaitable[None]]


class Process:
    """A strays command, its first line, and its log, which is read by turns: slowly, not at all, and at full speed."""

    def __init__(self, *args: object) -> None:
        command = [sys.executable, "-m", "strays", *map(str, args)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout
        self.first_line = self._process.stdout.readline().strip()
        self.base, _, self.token = self.first_line.partition("/#token=")
        self.log: Counter[str] = Counter()
        self._ends = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr
        began = time.monotonic()
        for line in self._process.stderr:
            with suppress(ValueError):
                found = json.loads(line)
                self.log[found["event"]] += 1
                self.log["dropped_as_told"] += found.get("lines", 0)
            phase = (time.monotonic() - began) % 180
            if phase < 60:
                self._ends.wait(0.05)
            elif phase < 120:
                self._ends.wait(120 - phase)

    def memory_mb(self) -> float:
        """What it holds now."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def end(self) -> tuple[float, int]:
        """Seconds from SIGTERM to its end, and its exit code."""
        began = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(120)
        took = time.monotonic() - began
        self._ends.set()
        self._reader.join(30)
        return round(took, 2), code


async def again(step: Step, until: float, pause: float, seen: Seen, kind: str) -> None:
    """Repeat a step until the time is over; what a client cannot explain is counted."""
    while time.monotonic() < until:
        try:
            await step()
        except (OSError, httpx.TransportError, asyncio.IncompleteReadError) as error:
            seen.note(kind, type(error).__name__)
        await asyncio.sleep(pause * (0.5 + random.random()))


class ServerLoad:
    """Clients of `strays serve`."""

    def __init__(self, served: Process, models: list[TextOutlierDetector], folder: Path, texts: list[str]) -> None:
        self.served, self.seen, self._texts, self._folder, self._models = served, Seen(), texts, folder, models
        self._offline = {model.info()["version"]: model.score(texts) for model in models}
        self._versions: set[str] = set()
        self._largest, self._n_saved = 0.0, 0
        self.http = httpx.AsyncClient(base_url=served.base, timeout=120)
        body = json.dumps({"texts": texts[:1000]}).encode()
        head = "POST /v1/score HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
        self.bad = BadClients(served.base, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body, self.seen)

    async def score(self) -> None:
        """One call, whose every score is compared."""
        n = random.choice(TEXTS_PER_CALL)
        places = random.sample(range(len(self._texts)), n)
        answer = await self.http.post("/v1/score", json={"texts": [self._texts[i] for i in places]})
        self.seen.note("score", answer.status_code)
        if answer.status_code != 200:
            return
        found = answer.json()
        self._versions.add(found["version"])
        offline = self._offline[found["version"]]
        scores = np.array([result["anomaly_score"] for result in found["results"]])
        difference = np.abs(scores - offline.anomaly_score[places])
        flags = np.array([result["flagged"] for result in found["results"]])
        self._largest = max(self._largest, float(difference.max()))
        self.seen.facts["answers_compared"] += n
        self.seen.facts["answers_swapped"] += int((difference > 1e-4).sum())
        self.seen.facts["flags_that_differ"] += int((flags != offline.flagged[places]).sum())

    async def explain(self) -> None:
        """One call with explanations."""
        texts = random.sample(self._texts, 2)
        answer = await self.http.post("/v1/score", json={"texts": texts, "explain": True})
        self.seen.note("explain", answer.status_code)

    async def probe(self) -> None:
        """What a load balancer asks."""
        began = time.monotonic()
        answer = await self.http.get("/health")
        self.seen.slowest = max(self.seen.slowest, time.monotonic() - began)
        self.seen.note("health", answer.status_code)

    async def reload(self) -> None:
        """Replace the model by the other one."""
        self._n_saved += 1
        await asyncio.to_thread(self._models[self._n_saved % 2].save, self._folder)

    async def sample(self) -> None:
        """Note the memory."""
        self.seen.memory_mb.append(self.served.memory_mb())

    def steps(self) -> list[tuple[str, Step, float]]:
        """What is repeated, and how long the pauses are."""
        return [
            *[("score", self.score, 0.2)] * SCORERS,
            ("explain", self.explain, 2.0),
            ("health", self.probe, 0.5),
            ("reload", self.reload, RELOAD_SECONDS),
            ("sample", self.sample, SAMPLE_SECONDS),
            ("client_left", self.bad.leave, 0.5),
            ("silent", self.bad.be_silent, 1.0),
            ("rubbish", self.bad.rubbish, 2.0),
            ("slow_reader", self.bad.trickle, 5.0),
        ]

    async def stop(self) -> dict[str, Any]:
        """Stop it while eight calls for explanations of long texts wait."""
        page = (await self.http.get("/metrics")).text.splitlines()
        dropped = next(float(line.split()[-1]) for line in page if line.startswith("strays_log_lines_dropped_total"))
        calls = [
            asyncio.create_task(self.http.post("/v1/score", json={"texts": [f"{LONG} {i}"] * 16, "explain": True}))
            for i in range(8)
        ]
        await asyncio.sleep(1)
        took, code = await asyncio.to_thread(self.served.end)
        answers = await asyncio.gather(*calls, return_exceptions=True)
        told = Counter(str(getattr(answer, "status_code", type(answer).__name__)) for answer in answers)
        return {
            "models_saved": self._n_saved,
            "versions_seen": len(self._versions),
            "largest_difference": self._largest,
            "log": dict(sorted(self.served.log.items())) | {"dropped_as_counted": int(dropped)},
            "stop_seconds": took,
            "exit_code": code,
            "waiting_calls_at_stop": dict(told),
        }


class DeskLoad:
    """Clients of `strays review`."""

    def __init__(self, served: Process) -> None:
        self.served, self.seen = served, Seen()
        headers = {"authorization": f"Bearer {served.token}"}
        self.http = httpx.AsyncClient(base_url=served.base, headers=headers, timeout=120)
        self._labels: dict[int, str] = {}
        host = served.base.removeprefix("http://")
        export = f"GET /api/export?what=all&format=jsonl HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
        self.bad = BadClients(served.base, f"{export}Authorization: Bearer {served.token}\r\n\r\n".encode(), self.seen)

    async def _get(self, kind: str, path: str, **params: Any) -> Any:
        began = time.monotonic()
        answer = await self.http.get(f"/api/{path}", params=params)
        self.seen.slowest = max(self.seen.slowest, time.monotonic() - began) if kind == "state" else self.seen.slowest
        self.seen.note(kind, answer.status_code)
        return answer

    def judge(self, client: str) -> Step:
        """A person who judges what is asked, and now and then takes it back."""

        async def step() -> None:
            queue = (await self._get("queue", "queue", client=client)).json()
            if not queue["items"]:
                return
            item = queue["items"][0]
            await self._get("why", f"texts/{item['id']}/why")
            verdict = "anomaly" if item["id"] % 4 == 0 else "normal"
            body = {"ids": [item["id"]], "verdict": verdict, "who": client, "client": client}
            answer = await self.http.post("/api/verdicts", json=body)
            self.seen.note("verdict", answer.status_code)
            if answer.status_code == 200:
                self._labels[item["id"]] = verdict
            if random.random() < 0.1:
                answer = await self.http.post("/api/undo", json={"who": client, "client": client})
                self.seen.note("undo", answer.status_code)
                for id_ in (answer.json().get("undone") or {}).get("ids", []):
                    self._labels.pop(id_, None)

        return step

    async def browse(self) -> None:
        """Search, look at the map and at what was judged, ask how it is."""
        await self._get("texts", "texts", search=random.choice(["clock", "boat", "xyzzy"]), limit=100)
        await self._get("map", "map")
        await self._get("history", "history")
        await self._get("state", "state")

    async def export(self) -> None:
        """Take all labels."""
        answer = await self._get("export", "export", what=random.choice(["judged", "all"]), format="csv")
        self.seen.facts["exported_megabytes"] += len(answer.content) // 10**6

    async def stranger(self) -> None:
        """Ask without the token."""
        async with httpx.AsyncClient(base_url=self.served.base, timeout=120) as http:
            self.seen.note("stranger", (await http.get("/api/state")).status_code)

    async def sample(self) -> None:
        """Note the memory."""
        self.seen.memory_mb.append(self.served.memory_mb())

    def steps(self) -> list[tuple[str, Step, float]]:
        """What is repeated, and how long the pauses are."""
        return [
            ("verdict", self.judge("ada"), 1.0),
            ("verdict", self.judge("bob"), 1.0),
            ("browse", self.browse, 3.0),
            ("export", self.export, 10.0),
            ("stranger", self.stranger, 2.0),
            ("sample", self.sample, SAMPLE_SECONDS),
            ("client_left", self.bad.leave, 0.5),
            ("silent", self.bad.be_silent, 1.0),
            ("rubbish", self.bad.rubbish, 2.0),
            ("slow_reader", self.bad.trickle, 10.0),
        ]

    async def stop(self) -> dict[str, Any]:
        """Compare the last export with what was acknowledged; then stop it while explanations wait."""
        exported = (await self.http.get("/api/export", params={"what": "judged", "format": "jsonl"})).text
        found = Counter(json.loads(line)["label"] for line in exported.splitlines())
        state = (await self.http.get("/api/state")).json()
        whys = [asyncio.create_task(self.http.get(f"/api/texts/{4000 + i}/why")) for i in range(40)]
        await asyncio.sleep(0.5)
        took, code = await asyncio.to_thread(self.served.end)
        answers = await asyncio.gather(*whys, return_exceptions=True)
        told = Counter(str(getattr(answer, "status_code", type(answer).__name__)) for answer in answers)
        return {
            "fits": state["generation"],
            "verdicts_acknowledged": dict(sorted(Counter(self._labels.values()).items())),
            "verdicts_exported": dict(sorted(found.items())),
            "stop_seconds": took,
            "exit_code": code,
            "waiting_calls_at_stop": dict(told),
        }


async def soak(loads: list[ServerLoad | DeskLoad], seconds: float) -> list[dict[str, Any]]:
    """All clients at once for so long, and what came of it."""
    until = time.monotonic() + seconds
    tasks = [
        asyncio.create_task(again(step, until, pause, load.seen, kind))
        for load in loads
        for kind, step, pause in load.steps()
    ]
    await asyncio.gather(*tasks)
    return [load.seen.summary() | await load.stop() for load in loads]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    minutes = parser.parse_args().minutes
    rng = np.random.default_rng(0)
    texts = list(dict.fromkeys(titles(N_TEXTS, rng)))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        models = [TextOutlierDetector().fit(titles(N_FITTED, rng)) for _ in range(2)]
        models[0].save(folder / "model")
        with (folder / "desk.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["text"], *([text] for text in titles(N_DESK, rng))])
        served = Process("serve", "--model", folder / "model", "--port", 0)
        desk = Process("review", folder / "desk.csv", "--port", 0, "--no-browser", "--every", 25)
        found = asyncio.run(soak([ServerLoad(served, models, folder / "model", texts), DeskLoad(desk)], 60 * minutes))
    result = {"minutes": minutes, "server": found[0], "desk": found[1]}
    print(json.dumps(result, indent=2))
    write_json("soak.json", result | {"machine": machine("fastapi", "uvicorn", "onnxruntime")})


if __name__ == "__main__":
    main()
