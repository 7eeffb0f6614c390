"""`strays score` on 100,000 to 10 million rows of parquet: peak memory, and whether the rate stays the same.

    python -m benchmarks.big_file [--encoder fast] [--rows 100000 1000000 10000000]

The titles are put together from word lists, about seven words each and hardly any of them twice. Writes
results/big_file.json. Rates at the start and at the end come from the times at which the parts appeared.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common import machine, write_json
from benchmarks.titles import titles

CHUNK = 100_000


def write_titles(path: Path, n: int) -> None:
    """A parquet file of n rows, a piece at a time."""
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, CHUNK):
            texts = titles(min(CHUNK, n - start), rng)
            ids = np.arange(start, start + len(texts))
            writer.write_table(pa.table({"id": ids, "text": texts}, schema=schema))


def strays(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "strays", *map(str, arguments)]


def peak_memory(process: subprocess.Popen[str]) -> int:
    """The most memory that a process has held when it ends, in bytes, as Linux counts it."""
    peak = 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except FileNotFoundError:
            break
        peak = max([peak, *(1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))])
        time.sleep(0.2)
    return peak


def rates(out: Path) -> tuple[float, float]:
    """Rows per second in the first and in the last tenth of the parts (at least two), by when these appeared."""
    lines = [json.loads(line) for line in (out / "_manifest.jsonl").read_text().splitlines()[1:]]
    at = np.array([(out / line["out"]).stat().st_mtime for line in lines])
    rows = np.array([line["rows"] for line in lines])
    if len(rows) < 3:
        raise SystemExit("too few parts to tell a rate at the start from one at the end; lower --part-rows")
    tenth = max(2, len(rows) // 10)
    first = rows[1 : tenth + 1].sum() / (at[tenth] - at[0])  # the first part also waits for the encoder to load
    last = rows[-tenth:].sum() / (at[-1] - at[-tenth - 1]) if len(rows) > tenth else first
    return float(first), float(last)


def measure(place: Path, n: int, model: Path, part_rows: int) -> dict[str, Any]:
    source, out = place / f"{n}.parquet", place / f"scored-{n}"
    write_titles(source, n)
    options = ["--model", model, "--out", f"{out}/", "--part-rows", part_rows, "--json"]
    process = subprocess.Popen(strays("score", source, *options), stdout=subprocess.PIPE, text=True)
    start = time.perf_counter()
    peak = peak_memory(process)
    wall = time.perf_counter() - start
    told = json.loads(process.communicate()[0])
    if process.returncode or told["n_rows"] != n:
        raise SystemExit(f"strays score went wrong on {n:,} rows: {told}")
    first, last = rates(out)
    return {
        "rows": n,
        "seconds": round(wall, 1),
        "rows_per_second": told["rows_per_second"],
        "first_tenth_rows_per_second": round(first, 1),
        "last_tenth_rows_per_second": round(last, 1),
        "last_over_first": round(last / first, 3),
        "microseconds_per_row": round(1e6 / told["rows_per_second"], 2),
        "peak_memory_mb": round(peak / 1e6),
        "bytes_in": source.stat().st_size,
        "parts": told["n_parts"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="fast")
    parser.add_argument("--detector", default="auto")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--fit-rows", type=int, default=2000, help="how many further titles the model is fitted on")
    parser.add_argument("--part-rows", type=int, default=10_000)
    parser.add_argument("--place", help="folder for the files; a temporary one where not given")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(dir=options.place) as folder:
        place = Path(folder)
        corpus, model = place / "corpus.txt", place / "model"
        corpus.write_text("\n".join(titles(options.fit_rows, np.random.default_rng(1))) + "\n")
        fitting = ["--model", model, "--encoder", options.encoder, "--detector", options.detector]
        subprocess.run(strays("fit", corpus, *fitting), check=True, stdout=subprocess.DEVNULL)
        for n in options.rows:
            results.append(measure(place, n, model, options.part_rows))
            print(results[-1], flush=True)
    what = {"encoder": options.encoder, "detector": options.detector, "fitted_on": options.fit_rows}
    result = {
        "what": "strays score: one parquet file of short titles to a folder of parts",
        **what,
        "part_rows": options.part_rows,
        "machine": machine("pyarrow", "torch"),
        "results": results,
    }
    write_json("big_file.json", result)


if __name__ == "__main__":
    main()
