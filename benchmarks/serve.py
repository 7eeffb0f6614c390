"""The server under load, on the machine that also makes the load: 64 clients, then four times as many.

Every answer is compared with the offline score of its text. The throughput is compared with that of `strays score` on
the same texts, measured before and after in the same run. Memory is the server's, from its tenth second on.

    python -m benchmarks.serve [--seconds 60]
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import machine, write_json
from benchmarks.titles import titles
from strays import TextOutlierDetector

CLIENTS, TEXTS_PER_CALL, OVERLOAD = 64, 8, 4
N_TEXTS, N_FITTED, N_OFFLINE = 120_000, 2000, 40_000
# What a client that was refused waits before it asks again; less than it was told to.
REFUSED_PAUSE = 0.2


@dataclass
class Run:
    """What clients saw: how calls ended, how long they took, and the results by text."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    results: dict[str, tuple[float, float, bool]] = field(default_factory=dict)
    swapped: int = 0
    took: float = 0.0
    client_cpu: float = 0.0
    memory_mb: list[float] = field(default_factory=list)

    def summary(self, texts_per_call: int, clients: int) -> dict[str, Any]:
        """As plain data."""
        answered = self.statuses[200]
        p50, p95, p99 = (np.percentile(self.seconds, (50, 95, 99)) * 1e3).round(1).tolist() if answered else (None,) * 3
        return {
            "clients": clients,
            "texts_per_call": texts_per_call,
            "seconds": round(self.took, 1),
            "calls": sum(self.statuses.values()),
            "statuses": {str(status): n for status, n in sorted(self.statuses.items())},
            "texts_per_second": round(answered * texts_per_call / self.took, 1),
            "ms": {"p50": p50, "p95": p95, "p99": p99},
            "client_cpu_seconds": round(self.client_cpu, 1),
        }


class Served:
    """`strays serve` in a process of its own."""

    def __init__(self, model: Path) -> None:
        command = [sys.executable, "-m", "strays", "serve", "--model", str(model), "--port", "0", "--no-access-log"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout
        self.port = int(self.process.stdout.readline().strip().rpartition(":")[2])

    def memory_mb(self) -> float:
        """What it holds now."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def end(self) -> int:
        """Its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


async def client(port: int, mine: list[list[str]], until: float, run: Run) -> None:
    """Calls, one after another, over one connection; refused ones are made again."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    at = 0
    while time.monotonic() < until:
        texts = mine[at % len(mine)]
        body = json.dumps({"texts": texts}).encode()
        lines = ["POST /v1/score HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}"])
        began = time.monotonic()
        writer.write(head.encode() + b"\r\n\r\n" + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        content = await reader.readexactly(length)
        status = int(answer[9:12])
        run.statuses[status] += 1
        if status != 200:
            await asyncio.sleep(REFUSED_PAUSE)
            continue
        run.seconds.append(time.monotonic() - began)
        for text, result in zip(texts, json.loads(content)["results"], strict=True):
            found = result["anomaly_score"], result["p_value"], result["flagged"]
            known = run.results.setdefault(text, found)
            run.swapped += abs(known[0] - found[0]) > 1e-4
        at += 1
    writer.close()


async def load(served: Served, texts: list[str], *, clients: int, per_call: int, seconds: float) -> Run:
    """So many clients for so long, each with texts of its own."""
    run, began, cpu = Run(), time.monotonic(), time.process_time()
    calls = [texts[i : i + per_call] for i in range(0, len(texts) - per_call + 1, per_call)]
    tasks = [asyncio.create_task(client(served.port, calls[i::clients], began + seconds, run)) for i in range(clients)]
    while not all(task.done() for task in tasks):
        run.memory_mb.append(served.memory_mb())
        await asyncio.wait(tasks, timeout=1)
    for task in tasks:
        task.result()
    run.took, run.client_cpu = time.monotonic() - began, time.process_time() - cpu
    return run


def offline(model: Path, texts: list[str], folder: Path) -> tuple[float, dict[str, tuple[float, float, bool]]]:
    """`strays score` on a file of these texts: rows a second as it says itself, and its results by text."""
    source, out = folder / "texts.csv", folder / "scored.csv"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows([["text"], *([text] for text in texts)])
    command = [sys.executable, "-m", "strays", "score", source, "--model", model, "--out", out, "--restart", "--json"]
    env = {**os.environ, "STRAYS_CACHE_SIZE": "0"}
    done = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True, env=env)
    with out.open(newline="") as file:
        rows = {
            row["text"]: (float(row["anomaly_score"]), float(row["p_value"]), row["flagged"] == "true")
            for row in csv.DictReader(file)
        }
    out.unlink()
    return json.loads(done.stdout)["rows_per_second"], rows


def memory(run: Run) -> dict[str, float]:
    """Whether it grows: the middle of the run's first and last third, past the first ten seconds."""
    later = run.memory_mb[10:] or run.memory_mb
    third = max(1, len(later) // 3)
    first, last = float(np.median(later[:third])), float(np.median(later[-third:]))
    return {"first_third_mb": round(first, 1), "last_third_mb": round(last, 1), "peak_mb": round(max(later), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    seconds = parser.parse_args().seconds
    rng = np.random.default_rng(0)
    texts = list(dict.fromkeys(titles(N_TEXTS, rng)))
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model = folder / "model"
        TextOutlierDetector().fit(titles(N_FITTED, rng)).save(model)
        before, _ = offline(model, texts[:N_OFFLINE], folder)
        served = Served(model)
        asyncio.run(load(served, texts[-2000:], clients=8, per_call=8, seconds=3))  # warm
        run = asyncio.run(load(served, texts, clients=CLIENTS, per_call=TEXTS_PER_CALL, seconds=seconds))
        after, _ = offline(model, texts[:N_OFFLINE], folder)
        shapes = [
            asyncio.run(load(served, texts, clients=CLIENTS, per_call=n, seconds=seconds / 3)).summary(n, CLIENTS)
            for n in (1, 4, 32)
        ]
        many = OVERLOAD * CLIENTS
        flood = asyncio.run(load(served, texts, clients=many, per_call=TEXTS_PER_CALL, seconds=seconds / 3))
        calm = asyncio.run(load(served, texts, clients=CLIENTS, per_call=TEXTS_PER_CALL, seconds=seconds / 6))
        exit_code = served.end()
        sent = [text for text in texts if text in run.results or text in flood.results]
        _, expected = offline(model, sent, folder)
    found = [
        (expected[text], got) for one in (run, flood, calm) for text, got in one.results.items() if text in expected
    ]
    rate = run.summary(TEXTS_PER_CALL, CLIENTS)
    base = max(before, after)  # whichever other work on the machine disturbed less
    write_json(
        "serve.json",
        {
            "load_before": round(load_before, 2),
            "offline_texts_per_second": {"before": round(before, 1), "after": round(after, 1)},
            "served": rate | {"of_offline": round(rate["texts_per_second"] / base, 3), "memory": memory(run)},
            "other_calls": [one | {"of_offline": round(one["texts_per_second"] / base, 3)} for one in shapes],
            "overload": flood.summary(TEXTS_PER_CALL, many) | {"memory": memory(flood)},
            "afterwards": calm.summary(TEXTS_PER_CALL, CLIENTS),
            "answers": {
                "compared": len(found),
                "largest_difference": max(abs(a[0] - b[0]) for a, b in found),
                "p_values_that_differ": sum(abs(a[1] - b[1]) > 1e-9 for a, b in found),
                "flags_that_differ": sum(a[2] != b[2] for a, b in found),
                "swapped": run.swapped + flood.swapped + calm.swapped,
            },
            "exit_code": exit_code,
            "bars": {"of_offline": 0.7, "server_errors": 0},
            "machine": machine("fastapi", "uvicorn", "onnxruntime"),
        },
    )


if __name__ == "__main__":
    main()
