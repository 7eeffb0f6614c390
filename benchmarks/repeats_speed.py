"""What repeated texts cost: fitting on a million titles, half of them repeats, and ranking them all.

    python -m benchmarks.repeats_speed [--before SRC] [--rows 1000000]

In processes of their own and in turn: this version and, with --before, another one's folder `src`. Writes
results/repeats_speed.json: CPU and wall seconds for a million rows, the faster of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.common import machine, write_json

KINDS = ("repeated", "distinct")
TASK = """
import sys, time, warnings
import numpy as np
from benchmarks.titles import titles
from strays import TextOutlierDetector, load_encoder
warnings.simplefilter("ignore")
n, repeated = int(sys.argv[1]), sys.argv[2] == "repeated"
rng = np.random.default_rng(0)
texts = titles(n // 2 if repeated else n, rng)
texts = rng.permutation(texts + texts).tolist() if repeated else texts
encoder = load_encoder("fast", cache=False)
encoder.encode(texts[:1000])
wall, cpu = time.perf_counter(), time.process_time()
TextOutlierDetector(encoder, keep_examples=0).fit(texts)
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="the folder src of an earlier version")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    root = Path(__file__).parent.parent
    versions = {"now": root / "src"} | ({"before": options.before} if options.before else {})
    found: dict[str, dict[str, dict[str, float]]] = {}
    for _ in range(options.rounds):
        for kind in options.kinds:
            for name, src in versions.items():
                environment = os.environ | {"PYTHONPATH": f"{src}:{root}"}
                command = [sys.executable, "-c", TASK, str(options.rows), kind]
                out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
                seconds = dict(zip(("wall", "cpu"), map(float, out.split()), strict=True))
                best = found.setdefault(kind, {}).setdefault(name, seconds)
                found[kind][name] = {key: round(min(best[key], value), 1) for key, value in seconds.items()}
    result = {"rows": options.rows, "seconds": found, "machine": machine("numpy", "torch")}
    write_json("repeats_speed.json", result)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
