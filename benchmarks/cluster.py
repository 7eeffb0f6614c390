"""`strays score --engine ray` on two nodes of one machine, against the local engine: the same rows, whatever is killed.

    python -m benchmarks.cluster [--rows 1000000] [--network-rows 20000]
    python -m benchmarks.cluster --gpu-rows 1000000

Scores a folder of parquet and csv files with `fast`: by the local engine; on the cluster; on the cluster with a worker
node killed midway; on the cluster with the driver killed midway and the command given again. Then fewer rows with the
default encoder. Compares every output with the local engine's, file by file and row by row, and writes
results/cluster.json. Each node has one core.

With --gpu-rows, on a machine with an NVIDIA GPU: an encoder of MiniLM's shape with random weights, by the local engine
and by an actor that holds the GPU, and results/cluster_gpu.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import torch

from benchmarks.common import machine, write_json
from benchmarks.tiny_bert import save_bert_of
from benchmarks.titles import WORDS, titles
from strays.engines.ray.connection import on_loopback
from strays.tables import open_table

FILES = ("a.parquet", "b.csv", "deep/c.parquet", "deep/d.csv")
NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 300 * 2**20}


@contextmanager
def two_nodes() -> Iterator[Any]:
    """A cluster that nobody else can reach."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    with on_loopback():
        cluster = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
        cluster.add_node(**NODE)
        try:
            yield cluster
        finally:
            cluster.shutdown()


def write_titles(folder: Path, n: int) -> None:
    """Files of n rows in all, parquet and csv by turns."""
    rng = np.random.default_rng(0)
    for i, name in enumerate(FILES):
        path, ids = folder / name, np.arange(i, n, len(FILES))
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({"id": ids, "text": titles(len(ids), rng)})
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(table, path)
        else:
            pq.write_table(table, path)


class Jobs:
    """Runs the command on one input with one model; no run finds embeddings that another has kept."""

    def __init__(self, place: Path, encoder: str, rows: int, part_rows: int) -> None:
        self.place, self.part_rows = place, part_rows
        self.environment = os.environ | {"STRAYS_CACHE": str(place / "cache"), "STRAYS_CACHE_SIZE": "0"}
        write_titles(place / "in", rows)
        (place / "corpus.txt").write_text("\n".join(titles(2000, np.random.default_rng(1))) + "\n")
        fit = ["fit", place / "corpus.txt", "--model", place / "model", "--encoder", encoder]
        subprocess.run(self.command(*fit), check=True, stdout=subprocess.DEVNULL, env=self.environment)

    def command(self, *arguments: object) -> list[str]:
        """How strays is called."""
        return [sys.executable, "-m", "strays", *map(str, arguments)]

    def start(self, out: str, *options: str) -> subprocess.Popen[str]:
        """A job that is under way."""
        where = ["--model", self.place / "model", "--out", self.place / out, "--part-rows", self.part_rows, "--json"]
        command = self.command("score", self.place / "in", *where, *options)
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self.environment)

    def run(self, out: str, *options: str, meanwhile: Callable[[subprocess.Popen[str]], None] | None = None) -> Any:
        """What the command says in the end, and how long it took."""
        start = time.perf_counter()
        process = self.start(out, *options)
        if meanwhile:
            meanwhile(process)
        said = process.communicate()[0]
        seconds = round(time.perf_counter() - start, 1)
        told = json.loads(said) if process.returncode == 0 else {}
        keep = ("n_rows", "n_parts", "n_resumed_rows", "rows_per_second")
        return {"seconds": seconds, "exit": process.returncode, **{name: told[name] for name in keep if told}}

    def chunks_done(self, out: str) -> int:
        """How many chunks the manifest has."""
        manifest = self.place / out / "_manifest.jsonl"
        return max(0, manifest.read_bytes().count(b"\n") - 1) if manifest.exists() else 0

    def wait_for(self, out: str, share: float, process: subprocess.Popen[str], chunks: int) -> int:
        """Wait until a share of the chunks is done, and say how many are."""
        while self.chunks_done(out) < share * chunks:
            if process.poll() is not None:
                raise SystemExit(f"{out}: the command ended (exit {process.returncode}) before it could be disturbed")
            time.sleep(0.05)
        return self.chunks_done(out)

    def compare(self, out: str) -> dict[str, Any]:
        """Whether an output is the local engine's: its bytes, its manifest, and every value of every row."""
        names = sorted(p.relative_to(self.place / "local") for p in (self.place / "local").rglob("*") if p.is_file())
        there = sorted(p.relative_to(self.place / out) for p in (self.place / out).rglob("*") if p.is_file())
        rows = different = 0
        for name in names:
            if name.name == "_manifest.jsonl":
                continue
            mine, other = (open_table(str(self.place / where / name)).read() for where in ("local", out))
            rows += len(mine)
            pairs = zip(mine.columns, other.columns, strict=True)
            different += 0 if mine.equals(other) else sum(a != b for x, y in pairs for a, b in zip(x, y, strict=True))
        same = [(self.place / "local" / name).read_bytes() == (self.place / out / name).read_bytes() for name in names]
        return {
            "same_files": names == there,
            "same_bytes": all(same),
            "same_manifest": same[names.index(Path("_manifest.jsonl"))],
            "rows_compared": rows,
            "values_different": different,
        }

    def largest_difference(self, out: str) -> float:
        """Of any score, between an output and the local engine's."""
        found = [0.0]
        for path in (self.place / "local").rglob("*"):
            if path.is_file() and path.name != "_manifest.jsonl":
                both = (path, self.place / out / path.relative_to(self.place / "local"))
                mine, other = (open_table(str(one)).read()["anomaly_score"].to_numpy().astype(float) for one in both)
                found.append(float(np.abs(mine - other).max()))
        return max(found)


def disturbed(jobs: Jobs, cluster: Any, chunks: int) -> Iterator[dict[str, Any]]:
    """Jobs on the cluster of which something is killed, and what came of them."""
    address = ["--engine", "ray", "--address", cluster.address]
    at: list[int] = []

    def kill_a_node(process: subprocess.Popen[str]) -> None:
        at.append(jobs.wait_for("node-killed", 0.4, process, chunks))
        cluster.remove_node(next(n for n in cluster.list_all_nodes() if not n.head), allow_graceful=False)

    told = jobs.run("node-killed", *address, meanwhile=kill_a_node)
    yield {
        "engine": "ray, a worker node killed midway",
        "killed_at_chunk": at[-1],
        **told,
        **jobs.compare("node-killed"),
    }
    cluster.add_node(**NODE)

    def kill_the_driver(process: subprocess.Popen[str]) -> None:
        at.append(jobs.wait_for("driver-killed", 0.5, process, chunks))
        process.kill()

    first = jobs.run("driver-killed", *address, meanwhile=kill_the_driver)
    then = jobs.run("driver-killed", *address)
    yield {
        "engine": "ray, the driver killed midway and the command given again",
        "killed_at_chunk": at[-1],
        "exit_of_the_killed": first["exit"],
        **then,
        "seconds": round(first["seconds"] + then["seconds"], 1),
        **jobs.compare("driver-killed"),
    }


def measure(place: Path, encoder: str, rows: int, part_rows: int, *, disturb: bool) -> dict[str, Any]:
    jobs = Jobs(place, encoder, rows, part_rows)
    results = [{"engine": "local", **jobs.run("local")}]
    print(results[-1], flush=True)
    with two_nodes() as cluster:
        told = jobs.run("ray", "--engine", "ray", "--address", cluster.address)
        results.append({"engine": "ray", **told, **jobs.compare("ray")})
        print(results[-1], flush=True)
        for result in disturbed(jobs, cluster, results[0]["n_parts"]) if disturb else ():
            results.append(result)
            print(results[-1], flush=True)
    return {"encoder": encoder, "rows": rows, "part_rows": part_rows, "results": results}


def measure_gpu(place: Path, rows: int, part_rows: int) -> dict[str, Any]:
    save_bert_of(WORDS, place / "encoder", layers=6, heads=12, width=384, inner_width=1536, longest=512)
    jobs = Jobs(place, str(place / "encoder"), rows, part_rows)
    results = [{"engine": "local", **jobs.run("local", "--device", "cuda")}]
    print(results[-1], flush=True)
    told = jobs.run("ray", "--engine", "ray", "--device", "cuda")
    results.append(
        {"engine": "ray", **told, **jobs.compare("ray"), "largest_difference": jobs.largest_difference("ray")}
    )
    print(results[-1], flush=True)
    return {"encoder": "MiniLM's shape, random weights", "rows": rows, "part_rows": part_rows, "results": results}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--network-rows", type=int, default=20_000)
    parser.add_argument("--gpu-rows", type=int, default=0)
    parser.add_argument("--part-rows", type=int, default=10_000)
    parser.add_argument("--place", help="folder for the files; a temporary one where not given")
    options = parser.parse_args()
    if options.gpu_rows:
        with tempfile.TemporaryDirectory(dir=options.place) as folder:
            job = measure_gpu(Path(folder), options.gpu_rows, max(options.part_rows, 50_000))
        what = "strays score --engine ray with one actor on the machine's GPU, beside the local engine on the same GPU"
        on = machine("pyarrow", "torch", "ray") | {"gpu": torch.cuda.get_device_name()}
        write_json("cluster_gpu.json", {"what": what, "machine": on, "jobs": [job]})
        return
    jobs = []
    for encoder, rows, part_rows in (
        ("fast", options.rows, options.part_rows),
        ("default", options.network_rows, max(1, options.part_rows // 5)),
    ):
        with tempfile.TemporaryDirectory(dir=options.place) as folder:
            jobs.append(measure(Path(folder), encoder, rows, part_rows, disturb=encoder == "fast"))
    result = {
        "what": "strays score --engine ray on two nodes of one core each, on one machine, beside the local engine, "
        "which has the machine's cores; files of parquet and csv to a folder of parts; seconds with all starts",
        "machine": machine("pyarrow", "torch", "ray"),
        "load_at_the_end": round(os.getloadavg()[2], 1),
        "jobs": jobs,
    }
    write_json("cluster.json", result)


if __name__ == "__main__":
    main()
