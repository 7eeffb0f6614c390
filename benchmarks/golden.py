"""A golden run: every command on a fixed set of inputs, so that two versions of strays can be compared.

    PYTHONPATH=OLD/src python -m benchmarks.golden run before
    python -m benchmarks.golden run after
    python -m benchmarks.golden compare before after

`run` writes what the commands, the Ray engine and the server give to a folder; `compare` names every file that differs,
and of files of numbers by how much. It is no test: it takes minutes, and what it compares is two versions.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

REPO = Path(__file__).resolve().parents[1]
WORKSHOP, KNOWN = REPO / "examples" / "workshop.csv", REPO / "examples" / "workshop_known.txt"
LABELLED = REPO / "examples" / "workshop_labels.csv"
NETWORKS = ["ai-svdd", "deep-sad", "hypersphere", "deep-svdd"]
DETECTORS = ["auto", "logistic", "centroid", "nearest", "mahalanobis", "oc-svm", "isolation-forest", "lof", *NETWORKS]
# What a run may well have different: times, speeds, and where things are.
VARIES = [
    (re.compile(r'"(rows_per_second|seconds|made_at|made|created|loaded_at|uptime)": [\d.]+'), r'"\1": 0'),
    (re.compile(r"\([\d,]+ rows/s\)"), "(rows/s)"),
]


class Golden:
    """Runs commands in a folder and keeps what they print and write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.env = {**os.environ, "STRAYS_CACHE": str(folder.resolve() / ".cache"), "HF_HUB_OFFLINE": "1"}

    def strays(self, name: str, *args: object, stdin: str | None = None) -> None:
        """Run a command; its output, its words and its exit code go to files named after it."""
        command = [sys.executable, "-m", "strays", *map(str, args)]
        ran = subprocess.run(command, cwd=self.folder, env=self.env, input=stdin, capture_output=True, text=True)
        self.keep(f"{name}.stdout", ran.stdout)
        self.keep(f"{name}.stderr", f"{ran.stderr}\nexit {ran.returncode}\n")

    def keep(self, name: str, text: str) -> None:
        """Write what was given, without what varies from run to run."""
        text = text.replace(str(REPO), "REPO").replace(str(self.folder.resolve()), "HERE")
        for pattern, instead in VARIES:
            text = pattern.sub(instead, text)
        (self.folder / name).write_text(text, encoding="utf-8")


def run(folder: Path, *, ray: bool) -> None:
    golden = Golden(folder)
    _make_inputs(folder)
    for detector in DETECTORS:
        golden.strays(f"scan-{detector}", "scan", "pile.csv", "--known", KNOWN, "--detector", detector, "--json")
        golden.strays(f"scan-{detector}-alone", "scan", "pile.csv", "--detector", detector, "--out", f"{detector}.csv")
    golden.strays("scan-strict", "scan", "gaps.jsonl", "--strict")
    golden.strays("scan-gaps", "scan", "gaps.jsonl", "--out", "gaps-out.parquet", "--json")
    golden.strays("scan-report", "scan", "pile.csv", "--known", KNOWN, "--report", "scan.html", "--json")
    golden.strays("fit", "fit", "pile.csv", "--known", KNOWN, "--model", "model", "--cascade")
    golden.strays("fit-refused", "fit", "pile.csv", "--model", "model", "--max-false-alarms", "2")
    golden.strays("info", "info", "model", "--json")
    golden.strays("explain", "explain", "--model", "model", "My chain slips, earn 900 a day from home", "--json")
    golden.strays("evaluate", "evaluate", LABELLED, "--model", "model", "--label-column", "label", "--json")
    golden.strays(
        "report", "report", LABELLED, "--model", "model", "--label-column", "label", "--out", "r.html", "--json"
    )
    score = ("score", "--model", "model")
    for rule in ("--max-false-alarms 0.02", "--max-false-share 0.2", "--flag-rate 0.1", "--top 7"):
        for out in ("one.csv", "one.jsonl", "one.parquet", "parts/"):
            name = f"{rule[2:].replace(' ', '-')}-{out}"
            golden.strays(
                f"score-{name.rstrip('/')}", *score, "pile.csv", "--out", name, *rule.split(), "--part-rows", 100
            )
    golden.strays("score-folder", *score, "pile/", "--out", "folder/", "--part-rows", 64)
    golden.strays("score-again", *score, "pile/", "--out", "folder/", "--part-rows", 64)
    golden.strays("score-changed", *score, "pile/", "--out", "folder/", "--part-rows", 32)
    golden.strays("score-cascade", *score, "pile.csv", "--out", "cascade.csv", "--cascade", "--json")
    golden.strays("score-cascade-parts", *score, "pile.csv", "--out", "cascade/", "--cascade", "--part-rows", 100)
    golden.strays("score-gaps", *score, "gaps.jsonl", "--out", "gaps-scored.jsonl")
    golden.strays(
        "score-pipe", *score, "-", "--out", "-", "--format", "jsonl", stdin=(folder / "gaps.jsonl").read_text()
    )
    golden.strays("score-nowhere", *score, "pile.csv", "--out", "none/out.csv")
    golden.strays("score-usage", *score, "pile.csv", "--out", "x.csv", "--top", 3, "--flag-rate", 0.1)
    if ray:
        golden.strays("ray", *score, "pile/", "--out", "ray/", "--part-rows", 64, "--engine", "ray")
        golden.strays(
            "ray-file", *score, "pile.csv", "--out", "ray.csv", "--part-rows", 64, "--engine", "ray", "--top", 9
        )
    golden.strays("encoders", "encoders")
    _serve(golden)
    _review(golden)


def _make_inputs(folder: Path) -> None:
    """The example in several formats and files, with columns of other types, and rows without a text."""
    with WORKSHOP.open(encoding="utf-8", newline="") as file:
        rows = [
            row | {"n": i, 'odd, "name"': "=1+2" if i % 50 == 0 else f"r {i}"}
            for i, row in enumerate(csv.DictReader(file))
        ]
    table = pa.Table.from_pylist(rows)
    pyarrow.csv.write_csv(table, folder / "pile.csv")
    (folder / "pile" / "more").mkdir(parents=True)
    pyarrow.parquet.write_table(table.slice(0, 150), folder / "pile" / "a.parquet")
    (folder / "pile" / "more" / "b.jsonl").write_text(
        "".join(json.dumps(row | {"nested": {"k": [i, None]}}) + "\n" for i, row in enumerate(rows[150:260])), "utf-8"
    )
    pyarrow.csv.write_csv(table.slice(260), folder / "pile" / "c.csv")
    gaps = [
        {**row, "text": None if i % 9 == 3 else "  " if i % 9 == 5 else row["text"]} for i, row in enumerate(rows[:90])
    ]
    (folder / "gaps.jsonl").write_text("".join(json.dumps(row) + "\n" for row in gaps), "utf-8")


def _started(golden: Golden, *args: str) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "strays", *args]
    process = subprocess.Popen(
        command, cwd=golden.folder, env=golden.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout
    return process, process.stdout.readline().strip()


def _asked(base: str, path: str, body: Any = None, method: str | None = None, **headers: str) -> dict[str, Any]:
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"content-type": "application/json", **headers}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status, found, text = answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        status, found, text = error.code, error.headers, error.read()
    kept = {name.lower(): value for name, value in found.items() if name.lower() not in ("date", "x-request-id")}
    try:
        body = json.loads(text)
    except ValueError:
        body = text.decode("utf-8", "replace")
    return {"status": status, "headers": dict(sorted(kept.items())), "body": body}


def _serve(golden: Golden) -> None:
    """What the server answers, errors among it."""
    process, base = _started(golden, "serve", "--model", "model", "--port", "0")
    try:
        texts = ["Is my bike ready?", "WIN FREE COINS", "", "x" * 5000, "Is my bike ready?"]
        answers = {
            "score": _asked(base, "/v1/score", {"texts": texts}),
            "score-one-by-one": [_asked(base, "/v1/score", {"texts": [text]}) for text in texts],
            "model": _asked(base, "/v1/model"),
            "health": _asked(base, "/health"),
            "ready": _asked(base, "/ready"),
            "openapi": _asked(base, "/openapi.json"),
            "no path": _asked(base, "/v2"),
            "no method": _asked(base, "/v1/score", method="GET"),
            "no json": _asked(base, "/v1/score", b"{"),
            "no object": _asked(base, "/v1/score", [1]),
            "no texts": _asked(base, "/v1/score", {"texts": [1]}),
            "other type": _asked(base, "/v1/score", b"x", **{"content-type": "text/plain"}),
            "other host": _asked(base, "/health", None, Host="evil.example"),
            "other origin": _asked(base, "/v1/model", None, Origin="http://evil.example"),
        }
        golden.keep("serve.json", re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", json.dumps(answers, indent=1, sort_keys=True)))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _review(golden: Golden) -> None:
    """What the desk asks first, and the labels that come of a few verdicts."""
    process, link = _started(golden, "review", "pile.csv", "--no-browser", "--port", "0")
    base, token = re.split("/[?#]token=", link)  # a query in 0.1
    bearer = {"authorization": f"Bearer {token}"}
    try:
        asked = "/api/queue?client=c&n=6"
        queue = _asked(base, asked, **bearer)
        ids = [item["id"] for item in queue["body"]["items"]]
        said = {"who": "me", "client": "c"}
        verdicts = [{"ids": ids[:1], "verdict": "anomaly", **said}, {"ids": ids[1:3], "verdict": "normal", **said}]
        answers = {
            "queue": queue,
            "verdicts": [_asked(base, "/api/verdicts", verdict, **bearer)["status"] for verdict in verdicts],
            "undo": _asked(base, "/api/undo", said, **bearer)["body"]["undone"],
            "text": _asked(base, f"/api/texts/{ids[0]}", **bearer),
            "why": _asked(base, f"/api/texts/{ids[0]}/why", **bearer),
            "no text": _asked(base, "/api/texts/9999999", **bearer),
            "no token": _asked(base, asked),
            "other origin": _asked(base, "/api/undo", said, **bearer, Origin="http://evil.example"),
        }
        golden.keep("review.json", json.dumps(answers, indent=1, sort_keys=True))
        golden.keep("review-labels.csv", _asked(base, "/api/export", **bearer)["body"])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def compare(before: Path, after: Path) -> int:
    """Name what differs; the number of differences."""
    names = {p.relative_to(root).as_posix() for root in (before, after) for p in root.rglob("*") if p.is_file()}
    kept = sorted(name for name in names if not name.startswith(".cache/") and "pile.csv.strays" not in name)
    different = 0
    for name in kept:
        a, b = before / name, after / name
        if not (a.exists() and b.exists()):
            print(f"only {'before' if a.exists() else 'after'}: {name}")
        elif a.read_bytes() == b.read_bytes():
            continue
        else:
            print(f"differs: {name}{_how_far(a, b)}")
        different += 1
    print(f"{len(kept)} files compared, {different} different")
    return different


def _how_far(a: Path, b: Path) -> str:
    """How far apart the numbers of two texts are that are otherwise the same; else the first line that differs."""
    try:
        one, other = a.read_text("utf-8"), b.read_text("utf-8")
    except UnicodeDecodeError:
        return ""
    number = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
    if number.sub("#", one) == number.sub("#", other):
        gaps = [abs(float(x) - float(y)) for x, y in zip(number.findall(one), number.findall(other), strict=True)]
        return f" (numbers alone, by at most {max(gaps):.2g})"
    for x, y in zip(one.splitlines(), other.splitlines(), strict=False):
        if x != y:
            return f"\n  - {x[:300]}\n  + {y[:300]}"
    return " (length)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="run everything into a new folder")
    runs.add_argument("folder", type=Path)
    runs.add_argument("--no-ray", action="store_true")
    compares = commands.add_parser("compare", help="name what differs between two runs")
    compares.add_argument("before", type=Path)
    compares.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "compare":
        sys.exit(bool(compare(options.before, options.after)))
    start = time.perf_counter()
    run(options.folder, ray=not options.no_ray)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
