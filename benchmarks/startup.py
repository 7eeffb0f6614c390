"""How long a command takes on a small file, and how much memory: fresh processes, everything cached.

    python -m benchmarks.startup [--rounds 9] [--before PYTHON SRC] [--fastembed PYTHON FOLDER]

Run it in an environment without torch, as `pip install` makes one. Every command is run once a round, in an order that
changes; figures are medians: seconds on the clock, seconds of the processor (user and system), and the peak of resident
memory. All have the example's 300 texts in the cache (`strays scan` has run before), but for those that encode.
"load" is how many processes wanted a core meanwhile: where these are more than the cores, processor time tells more.

--before adds an earlier version: a Python that has what it needs, and its folder src. --fastembed adds fastembed: a
Python that has it, and a folder with model.onnx and the tokenizer's files of all-MiniLM-L6-v2; "cosine" in the result
says how close its embeddings are to ours of full precision. Writes results/startup.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from benchmarks.common import machine, write_json

EXAMPLE = Path(__file__).parents[1] / "examples" / "workshop.csv"
N_KNOWN = 5
TEXT = "The treaty was signed in the spring, ending eleven years of war between the two kingdoms."

# A small process starts the command: the peak of a process is at least that of the one it was forked from.
LAUNCHER = """
import json, os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
wall = time.perf_counter() - start
peak = used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
print(json.dumps([os.waitstatus_to_exitcode(status), wall, used.ru_utime + used.ru_stime, peak]))
"""

ENCODE = """
import csv, sys
from strays import load_encoder
texts = [row["text"] for row in csv.DictReader(open(sys.argv[1], encoding="utf-8"))]
X = load_encoder("default", precision=sys.argv[2], cache=False).encode(texts)
if sys.argv[3:]:
    import numpy
    print(float((X * numpy.load(sys.argv[3])).sum(axis=1).mean()))
"""

FASTEMBED = """
import csv, sys
import numpy
from fastembed import TextEmbedding
texts = [row["text"] for row in csv.DictReader(open(sys.argv[1], encoding="utf-8"))]
encoder = TextEmbedding("sentence-transformers/all-MiniLM-L6-v2", specific_model_path=sys.argv[2])
X = numpy.array(list(encoder.embed(texts)))
if sys.argv[3:]:
    numpy.save(sys.argv[3], X)
"""


def measured(command: list[str], env: dict[str, str]) -> dict[str, float]:
    """Seconds, seconds of the processor, and peak memory of a command."""
    ran = subprocess.run(
        [sys.executable, "-c", LAUNCHER, *command], env=env, capture_output=True, text=True, check=True
    )
    code, wall, cpu, peak = json.loads(ran.stdout)
    if code:
        raise RuntimeError(f"{' '.join(command)[:200]} ended with {code}")
    return {"seconds": wall, "cpu_seconds": cpu, "peak_mb": peak}


def commands(work: Path) -> dict[str, list[str]]:
    """What is measured, by name; the model that some need is fitted here."""
    strays, model, known = [sys.executable, "-m", "strays"], str(work / "model"), work / "known.txt"
    known.write_text(
        "".join(f"Chapter {i} of the history of the two kingdoms and their wars.\n" for i in range(N_KNOWN))
    )
    subprocess.run([*strays, "fit", str(EXAMPLE), "--model", model], check=True, capture_output=True)
    return {
        'python -c "pass"': [sys.executable, "-c", "pass"],
        'python -c "import numpy"': [sys.executable, "-c", "import numpy"],
        'python -c "import sklearn"': [sys.executable, "-c", "import sklearn"],
        "strays --version": [*strays, "--version"],
        "strays --help": [*strays, "--help"],
        "strays scan": [*strays, "scan", str(EXAMPLE)],
        f"strays scan, {N_KNOWN} known anomalies": [*strays, "scan", str(EXAMPLE), "--known", str(known)],
        "strays score": [*strays, "score", str(EXAMPLE), "--model", model, "--out", str(work / "scored.csv")],
        "strays explain": [*strays, "explain", TEXT, "--model", model],
        "encoding the 300 texts": [sys.executable, "-c", ENCODE, str(EXAMPLE), "int8"],
        "encoding the 300 texts, full precision": [sys.executable, "-c", ENCODE, str(EXAMPLE), "full"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--before", nargs=2, metavar=("PYTHON", "SRC"))
    parser.add_argument("--fastembed", nargs=2, metavar=("PYTHON", "FOLDER"))
    options = parser.parse_args()
    if find_spec("torch"):
        print("torch is installed here; what is measured is not what pip installs", file=sys.stderr)
    result: dict[str, object] = {"machine": machine("numpy", "scikit-learn", "onnxruntime"), "rounds": options.rounds}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        os.environ["STRAYS_CACHE"] = str(work / "cache")
        env, all_env = dict(os.environ), {}
        todo = commands(work)
        if options.before:
            python, source = options.before
            todo["strays scan, before"] = [python, "-m", "strays", "scan", str(EXAMPLE)]
            all_env["strays scan, before"] = {**env, "PYTHONPATH": source, "STRAYS_CACHE": str(work / "before")}
        if options.fastembed:
            python, model = options.fastembed
            todo["fastembed encoding the 300 texts"] = [python, "-c", FASTEMBED, str(EXAMPLE), model]
            theirs = str(work / "theirs.npy")
            subprocess.run([*todo["fastembed encoding the 300 texts"], theirs], check=True)
            ours = [*todo["encoding the 300 texts, full precision"], theirs]
            result["cosine"] = float(subprocess.run(ours, check=True, capture_output=True, text=True).stdout)
        found: dict[str, list[dict[str, float]]] = {name: [] for name in todo}
        loads = []
        names = list(todo)
        for i in range(-1, options.rounds):  # the first fills the caches
            loads.append(os.getloadavg()[0])
            for name in names[i % len(names) :] + names[: i % len(names)]:
                once = measured(todo[name], all_env.get(name, env))
                if i >= 0:
                    found[name].append(once)
    result["load"] = round(median(loads[1:]), 1)
    result["results"] = {
        name: {key: round(median(one[key] for one in each), 3) for key in each[0]} for name, each in found.items()
    }
    for name, row in result["results"].items():  # type: ignore[attr-defined]
        print(f"{name:45} {row['seconds']:6.2f} s {row['cpu_seconds']:6.2f} s cpu {row['peak_mb']:6.0f} MB")
    write_json("startup.json", result)


if __name__ == "__main__":
    main()
