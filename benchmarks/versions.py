"""Is this version as fast as another? Both do the same work in turn, on one machine, in processes of their own.

    git worktree add ../before v0.1
    python -m benchmarks.versions ../before/src src [--rounds 5]

Encoding (titles scored with the default encoder, nothing kept), a big file (titles scored with `fast` to a folder of
parts), the server (clients that call at once), the desk (verdicts over HTTP while the model learns) and the start (a
scan of the bundled example from a warm cache). Models are fitted by the first version and loaded by both. Writes
results/versions.json: for each task the values of both, and the median over rounds of the second's ratio to the first.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.common import machine, write_json
from benchmarks.titles import titles

EXAMPLE = Path(__file__).parents[1] / "examples" / "workshop.csv"
ENCODED, SCORED, JUDGED = 6_000, 300_000, 10_000
CLIENTS, CALLS, TEXTS = 16, 12, 8
VERDICTS = 40


class Version:
    """strays of one source tree."""

    def __init__(self, source: str, place: Path) -> None:
        self.place = place
        self.env = {**os.environ, "PYTHONPATH": str(Path(source).resolve()), "STRAYS_CACHE": str(place / "cache")}

    def run(self, *args: object, cache: bool = True) -> float:
        """Seconds that a command takes."""
        env = self.env if cache else {**self.env, "STRAYS_CACHE_SIZE": "0"}
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "strays", *map(str, args)], env=env, check=True, capture_output=True)
        return time.perf_counter() - began

    @contextmanager
    def serving(self, *args: object) -> Iterator[str]:
        """The first line that a command prints, while it runs."""
        command = [sys.executable, "-m", "strays", *map(str, args)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, env=self.env, text=True, **pipes) as process:  # type: ignore[call-overload]
            try:
                yield process.stdout.readline().strip()
            finally:
                process.terminate()


def encoding(version: Version) -> float:
    """Seconds to score titles with the default encoder, less those for a few: what loading takes."""
    to = ("--model", version.place / "default", "--out", version.place / "out.parquet")
    few, many = (version.run("score", version.place / f"{n}.parquet", *to, cache=False) for n in (60, ENCODED))
    return many - few


def big_file(version: Version) -> float:
    """Seconds to score a file of many rows with `fast` to a folder of parts."""
    out = tempfile.mkdtemp(dir=version.place)
    return version.run(
        "score", version.place / f"{SCORED}.parquet", "--model", version.place / "fast", "--out", f"{out}/parts/"
    )


def serve(version: Version) -> float:
    """Seconds for the calls of several clients at once."""
    texts = [titles(TEXTS, np.random.default_rng(i)) for i in range(CLIENTS * CALLS)]
    with (
        version.serving("serve", "--model", version.place / "default", "--port", 0) as base,
        httpx.Client(base_url=base, timeout=120) as http,
        ThreadPoolExecutor(CLIENTS) as clients,
    ):
        http.post("/v1/score", json={"texts": texts[0]}).raise_for_status()
        began = time.perf_counter()
        for answer in clients.map(lambda some: http.post("/v1/score", json={"texts": some}), texts):
            answer.raise_for_status()
        return time.perf_counter() - began


def desk(version: Version) -> float:
    """Median seconds until a verdict is acknowledged, while every fifth has the model fitted again."""
    project = Path(tempfile.mkdtemp(dir=version.place)) / "project.strays"
    options = ("--project", project, "--no-browser", "--port", 0)
    took = []
    with version.serving("review", version.place / f"{JUDGED}.parquet", *options) as link:
        base, token = re.split("/[?#]token=", link)  # a query in 0.1
        with httpx.Client(base_url=base, headers={"authorization": f"Bearer {token}"}, timeout=120) as http:
            said = {"who": "bench", "client": "bench"}
            queue = http.get("/api/queue", params={"client": "bench"}).json()
            for i in range(VERDICTS):
                verdict = {"ids": [queue["items"][0]["id"]], "verdict": ("normal", "anomaly")[i % 4 == 0], **said}
                began = time.perf_counter()
                queue = http.post("/api/verdicts", json=verdict).raise_for_status().json()["queue"]
                took.append(time.perf_counter() - began)
                time.sleep(0.1)
    return statistics.median(took)


def start(version: Version) -> float:
    """Seconds for a scan of the bundled example, whose embeddings are kept."""
    return version.run("scan", EXAMPLE)


TASKS: tuple[Callable[[Version], float], ...] = (start, encoding, big_file, serve, desk)


def prepare(version: Version) -> None:
    """The files of titles, and the models, which other versions load."""
    for n in (60, ENCODED, SCORED, JUDGED):
        table = pa.table({"title": titles(n, np.random.default_rng(n))})
        pyarrow.parquet.write_table(table, version.place / f"{n}.parquet")
    for encoder in ("default", "fast"):
        fitted_on = version.place / f"{JUDGED}.parquet"
        version.run("fit", fitted_on, "--encoder", encoder, "--model", version.place / encoder)
    start(version)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("before", help="source folder of the first version")
    parser.add_argument("after", help="source folder of the second")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", nargs="*", default=[task.__name__ for task in TASKS])
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    with tempfile.TemporaryDirectory() as folder:
        before, after = (Version(source, Path(folder)) for source in (options.before, options.after))
        prepare(before)
        start(after)
        results = {}
        for task in TASKS:
            if task.__name__ not in options.tasks:
                continue
            pairs = []
            for i in range(options.rounds):
                first, second = (before, after) if i % 2 == 0 else (after, before)
                took = {first: task(first), second: task(second)}
                pairs.append((took[before], took[after]))
            ratios = [b / a for a, b in pairs]
            results[task.__name__] = {
                "what": (task.__doc__ or "").split("\n")[0],
                "seconds_before": [round(a, 4) for a, _ in pairs],
                "seconds_after": [round(b, 4) for _, b in pairs],
                "ratio": round(statistics.median(ratios), 3),
                "ratios": [round(min(ratios), 3), round(max(ratios), 3)],
            }
            print(task.__name__, results[task.__name__]["ratio"], results[task.__name__]["ratios"])
    write_json("versions.json", {"load_before": load, "machine": machine("torch", "onnxruntime"), "tasks": results})


if __name__ == "__main__":
    main()
