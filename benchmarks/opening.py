"""What it takes to open the default encoder's graph in a fresh process, by this version and an earlier one.

    git worktree add ../before 1c56e99
    python -m benchmarks.opening ../before/src src

Every version opens the same weights in processes of its own, in turn: seconds of processor time, and the memory that
the process has at its peak and afterwards beyond what it had before, with ONNX Runtime imported. Opening includes
reading the graph and taking its digest. Also the bytes that a version keeps under the cache folder. Lowest of some
rounds; Linux only. Writes results/opening.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import machine, write_json

ROUNDS = 5
PRECISIONS = ("int8", "full")
SCRIPT = """
import json, sys, time
import numpy as np, onnxruntime
from strays.encoders import load_encoder

def memory():
    lines = open("/proc/self/status").read().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) / 1000 for line in lines if line.startswith(("VmHWM", "VmRSS"))}

precision = sys.argv[1]
model = load_encoder("default", precision=precision, cache=False)._choice.onnx_model
model.digest(precision)  # makes the graph the first time
open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
before, start = memory(), time.process_time()
session = model.session(precision)
seconds, after = time.process_time() - start, memory()
found = {"seconds": seconds, "peak_mb": after["VmHWM"] - before["VmRSS"], "after_mb": after["VmRSS"] - before["VmRSS"]}
print(json.dumps(found))
"""


def opened(source: str, precision: str, cache: Path) -> dict[str, float]:
    """What one process took."""
    env = os.environ | {"PYTHONPATH": str(Path(source).resolve()), "STRAYS_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", SCRIPT, precision], env=env, check=True, capture_output=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="source folder of the first version")
    parser.add_argument("after", help="source folder of the second")
    options = parser.parse_args()
    versions = {"before": options.before, "after": options.after}
    result: dict[str, Any] = {"machine": machine("onnxruntime", "numpy"), "rounds": ROUNDS}
    with tempfile.TemporaryDirectory() as folder:
        caches = {name: Path(folder) / name for name in versions}
        for precision in PRECISIONS:
            rounds: dict[str, list[dict[str, float]]] = {name: [] for name in versions}
            for _ in range(ROUNDS + 1):
                for name, source in versions.items():
                    rounds[name].append(opened(source, precision, caches[name]))
            result[precision] = {
                name: {what: round(min(each[what] for each in found[1:]), 3) for what in found[0]}  # the first makes it
                for name, found in rounds.items()
            }
        for name, cache in caches.items():
            result.setdefault("kept_bytes", {})[name] = sum(p.stat().st_size for p in cache.rglob("*") if p.is_file())
    print(json.dumps(result, indent=2))
    write_json("opening.json", result)


if __name__ == "__main__":
    main()
