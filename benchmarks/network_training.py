"""Networks of this version beside those of another source tree: the same rows, seeds and batches.

    git worktree add ../before 1c56e99        # the last that trained in PyTorch
    python -m benchmarks.network_training ../before/src --data DIR

The paper's 5.1 and AG at 8 % known anomalies, beside the committed rows, and some corpora with 0, 10 and 100 known
anomalies. Rounding alone moves the weights, and a high learning rate multiplies that: the other version is therefore
fitted twice, the second time on rows moved by their last digit. Writes results/network_training.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import RESULTS, machine, write_json
from benchmarks.fitter import ROOT, Fitter
from strays.detectors import AISVDD, DeepSVDD
from strays.encoders import load_encoder
from strays.jobs.metrics import auc, mean_average_precision
from strays.studies.corpora import data_folder, load_corpus
from strays.studies.embeddings import embed
from strays.studies.protocol import few_labels, pollute

POLLUTION = 0.08
NETWORKS = ("ai-svdd", "deep-svdd", "deep-sad", "hypersphere")
METRICS = {"auc": auc, "map": mean_average_precision}


class Task(NamedTuple):
    """One fit and its test."""

    what: dict[str, Any]
    detector: str
    params: dict[str, Any]
    X: np.ndarray
    y: np.ndarray | None
    X_test: np.ndarray
    y_test: np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="src of the other version")
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--paper", nargs="*", default=["5.1", "5.2-ag"])
    parser.add_argument("--corpora", nargs="*", default=["banking", "newsgroups"])
    parser.add_argument("--runs", type=int, default=5, help="of the paper's cells; three of the others")
    options = parser.parse_args()
    tasks = [task for name in options.paper for task in of_the_paper(name, options)]
    tasks += [task for name in options.corpora for task in with_few_labels(name, options)]
    tasks.sort(key=lambda task: task.what["seed"])
    rows: list[dict[str, Any]] = []
    with Fitter(options.before) as before, Fitter(ROOT / "src") as now:
        for task in tasks:
            rows.append(compared(task, before, now))
            print(rows[-1], flush=True)
            write_json(
                "network_training.json",
                {
                    "what": "each value: the other version, this one, the other on rows moved by their last digit",
                    "machine": machine("numpy", "torch"),
                    "summary": summary(rows),
                    "rows": rows,
                },
            )


def of_the_paper(name: str, options: argparse.Namespace) -> Iterator[Task]:
    """The networks of a study at 8 %, as `strays study` fits them."""
    corpus = load_corpus(name, data_folder(options.data))
    drawn = [pollute(corpus, POLLUTION, seed) for seed in range(options.runs)]
    X = embed(corpus, {row for draw in drawn for row in draw.rows}, load_encoder("default", precision="full"))
    committed = [json.loads(line) for line in (RESULTS / "paper" / f"{name}.jsonl").read_text().splitlines()]
    for seed, draw in enumerate(drawn):
        for method, detector, made in (
            ("deep-svdd", "deep-svdd", DeepSVDD.from_paper(name, seed)),
            ("ai-svdd-paper", "ai-svdd", AISVDD.from_paper(name, seed)),
            ("ai-svdd", "ai-svdd", AISVDD(random_state=seed)),
        ):
            cell = {"encoder": "default", "method": method, "pollution": POLLUTION, "seed": seed}
            row = next((row for row in committed if cell.items() <= row.items()), None)
            kept = {} if row is None else {"committed": {metric: row[metric] for metric in METRICS}}
            y = None if detector == "deep-svdd" else draw.train.y
            what = {"study": name, "method": method, "seed": seed, **kept}
            train, test = X[draw.train.rows], X[draw.test.rows]
            yield Task(what, detector, made.get_params(), train, y, test, draw.test.y)


def with_few_labels(name: str, options: argparse.Namespace) -> Iterator[Task]:
    """The networks by default, with none, some and many known anomalies."""
    corpus = load_corpus(name, data_folder(options.data))
    drawn = {(known, seed): few_labels(corpus, known, 0.0, seed) for known in (0, 10, 100) for seed in range(3)}
    X = embed(corpus, {row for draw in drawn.values() for row in draw.rows}, load_encoder("default", precision="full"))
    for (known, seed), draw in drawn.items():
        test = np.r_[draw.test_normal, draw.test_seen]
        y_test = np.r_[np.ones(len(draw.test_normal)), -np.ones(len(draw.test_seen))]
        for method in NETWORKS if known else ("deep-svdd",):  # the others need labels to be worth much
            if known and method == "deep-svdd":
                continue
            what = {"corpus": name, "known": known, "method": method, "seed": seed}
            yield Task(what, method, {"random_state": seed}, X[draw.train.rows], draw.train.y, X[test], y_test)


def compared(task: Task, before: Fitter, now: Fitter) -> dict[str, Any]:
    """The metrics of both versions, and how far their scores are apart, as a share of the score."""
    moved = np.nextafter(task.X, np.random.default_rng(0).choice(np.array([-9, 9], np.float32), task.X.shape))
    scores = [
        fitter.fit(task.detector, task.params, X, task.y, task.X_test)[1]
        for fitter, X in ((before, task.X), (now, task.X), (before, moved))
    ]
    row = dict(task.what)
    for metric, measure in METRICS.items():
        row[metric] = [round(float(measure(task.y_test, s)), 6) for s in scores]
    row["apart"] = [float(f"{np.median(np.abs(s / scores[0] - 1)):.1e}") for s in scores[1:]]
    return row


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over seeds and cells of each place and method."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row.get("study") or f"few labels, {row['corpus']}", row["method"]), []).append(row)
    found = []
    for (place, method), of_group in groups.items():
        line: dict[str, Any] = {"place": place, "method": method, "fits": len(of_group)}
        for metric in METRICS:
            values = np.array([row[metric] for row in of_group])
            line[metric] = values.mean(axis=0).round(4).tolist()
            line[f"{metric}_moved_most"] = np.abs(values[:, 1:] - values[:, :1]).max(axis=0).round(4).tolist()
            kept = [row["committed"][metric] for row in of_group if "committed" in row]
            if len(kept) > 1:
                line[f"{metric}_committed"] = [round(float(f), 4) for f in (np.mean(kept), np.std(kept, ddof=1))]
        line["apart"] = [float(f"{a:.1e}") for a in np.median([row["apart"] for row in of_group], axis=0)]
        found.append(line)
    return found


if __name__ == "__main__":
    main()
