"""How long a verdict at the desk takes while the model learns, on 10,000 texts, over HTTP as the page sends it.

    python -m benchmarks.desk [--rows 10000] [--verdicts 200] [--data titles.csv]

A server in a process of its own, asked by one client; a verdict every half second or so, faster than anyone reads and
judges. Idle: no fit runs (--every is never reached). Busy: every verdict asks for a fit, so that one is always running.
Hasty: the same with ten verdicts a second. Writes results/desk.json; the bars are 100 ms for 95 verdicts of 100 while a
fit runs, and 5 s for a fit, when busy.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.common import machine, write_json
from benchmarks.common import seconds as seconds_of
from benchmarks.titles import titles

PAUSE, HASTY = 0.5, 0.1
BARS = {"p95_busy_ms": 100.0, "refit_seconds_max": 5.0}


class Desk:
    """`strays review` in a process of its own."""

    def __init__(self, file: Path, project: Path, every: int) -> None:
        command = [sys.executable, "-m", "strays", "review", str(file), "--project", str(project), "--no-browser"]
        command += ["--every", str(every)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        base, _, token = self._process.stdout.readline().strip().partition("/#token=")
        self._http = httpx.Client(base_url=base, headers={"authorization": f"Bearer {token}"}, timeout=120)

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        self._process.terminate()
        self._process.wait()

    def get(self, path: str, **params: Any) -> Any:
        """What a route answers."""
        return self._http.get(f"/api/{path}", params=params).raise_for_status().json()

    def judge(self, id_: int, verdict: str) -> tuple[float, Any]:
        """Seconds until a verdict is acknowledged, and the answer."""
        body = {"ids": [id_], "verdict": verdict, "who": "bench", "client": "bench"}
        start = time.perf_counter()
        answer = self._http.post("/api/verdicts", json=body).raise_for_status().json()
        return time.perf_counter() - start, answer

    def settle(self) -> None:
        """Wait until the map is made and nothing is being fitted."""
        while self._http.get("/api/map").status_code == 202 or self.get("state")["refitting"]:
            time.sleep(0.2)


def session(desk: Desk, verdicts: int, pause: float) -> tuple[list[float], list[float], dict[int, float]]:
    """The seconds of each verdict, of each explanation, and of each fit by its number."""
    queue, took, whys, fits = desk.get("queue", client="bench"), [], [], {}
    for i in range(verdicts):
        item = queue["items"][0]
        # The page shows why, and is read.
        whys.append(seconds_of(partial(desk.get, f"texts/{item['id']}/why")))
        time.sleep(pause)
        # One of four is an anomaly, and which depends on the text alone.
        seconds, answer = desk.judge(item["id"], "anomaly" if item["id"] % 4 == 0 else "normal")
        took.append(seconds)
        state, queue = answer["state"], answer["queue"]
        if state["trouble"]:
            raise RuntimeError(state["trouble"])
        fits[state["generation"]] = state["learnt"]["seconds"]
        if (i + 1) % 50 == 0:
            print(i + 1, f"p95 so far {1000 * np.quantile(took, 0.95):.0f} ms, {len(fits)} fits", flush=True)
    fits.pop(0, None)  # the first ranking is made before the server answers
    return took, whys, fits


def summary(took: list[float]) -> dict[str, float]:
    """Latencies in milliseconds."""
    values = 1000 * np.array(took)
    found = {"p50": np.quantile(values, 0.5), "p95": np.quantile(values, 0.95), "max": values.max()}
    return {name: round(float(value), 1) for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--verdicts", type=int, default=200)
    parser.add_argument("--data", help="file of texts to take instead of made-up titles")
    options = parser.parse_args()
    result: dict[str, Any] = {
        "rows": options.rows,
        "verdicts": options.verdicts,
        "pause_seconds": PAUSE,
        "hasty_seconds": HASTY,
    }
    result["load_before"] = round(os.getloadavg()[0], 2)  # what else ran: seconds of a fit mean little beside it
    with tempfile.TemporaryDirectory() as folder:
        for kind, every, pause in (("idle", 10**6, PAUSE), ("busy", 1, PAUSE), ("hasty", 1, HASTY)):
            file = Path(options.data) if options.data else Path(folder) / f"{kind}.csv"
            if not options.data:
                with file.open("w", newline="") as out:
                    texts = titles(options.rows, np.random.default_rng(0))
                    csv.writer(out).writerows([["text"], *([text] for text in texts)])
            with Desk(file, Path(folder) / f"{kind}.strays", every) as desk:
                desk.settle()
                took, whys, fits = session(desk, options.verdicts, pause)
            result[f"{kind}_ms"], result[f"{kind}_why_ms"] = summary(took), summary(whys)
            if fits:
                result[f"{kind}_refit_seconds"] = {"fits": len(fits)} | {
                    name: round(float(value), 2)
                    for name, value in (("median", np.median(list(fits.values()))), ("max", max(fits.values())))
                }
            print(kind, result[f"{kind}_ms"], "why", result[f"{kind}_why_ms"], flush=True)
    result["bars"] = BARS
    result["machine"] = machine("torch", "fastapi", "uvicorn", "scikit-learn")
    print(result)
    write_json("desk.json", result)


if __name__ == "__main__":
    main()
