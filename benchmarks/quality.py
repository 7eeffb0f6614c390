"""AI-SVDD on the paper's corpora: MAP, Recall@5 and AUC on the test split, mean and spread of 5 seeds.

    python -m benchmarks.quality --data FOLDER [--seeds 5]

Every seed draws other anomalies and starts other networks. Rows are appended to results/quality.jsonl, one for each
corpus, method, pollution and seed; rows that are there already are not run again, so a rerun only fills gaps. Settings
were chosen on the dev splits (LOG.md); the test splits are read here alone.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.common import RESULTS
from strays.detectors import AISVDD, CentroidDistance, Detector
from strays.encoders import load_encoder
from strays.evaluation import evaluate
from strays.evaluation.corpora import CORPORA, data_folder, load_corpus
from strays.evaluation.protocol import POLLUTIONS, pollute

ROWS = RESULTS / "quality.jsonl"

# Name -> (how to make it for a corpus and a seed, whether it is told the labels).
METHODS: dict[str, tuple[Callable[[str, int], Detector], bool]] = {
    "ai-svdd": (lambda corpus, seed: AISVDD(random_state=seed), True),
    "ai-svdd as printed": (lambda corpus, seed: AISVDD.from_paper(corpus, random_state=seed), True),
    "centroid": (lambda corpus, seed: CentroidDistance(), False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder with the corpora; default: the environment variable STRAYS_DATA")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    folder = data_folder(options.data)
    done = {(r["corpus"], r["method"], r["pollution"], r["seed"]) for r in read_rows()}
    for name in CORPORA:
        corpus = load_corpus(name, folder)
        wanted = [(method, p, seed) for method in METHODS for p in POLLUTIONS for seed in range(options.seeds)]
        missing = [cell for cell in wanted if (name, *cell) not in done]
        if not missing:
            continue
        scenarios = {(p, seed): pollute(corpus, p, seed) for _, p, seed in missing}
        used = sorted({int(i) for s in scenarios.values() for part in (s.train, s.test) for i in part.rows})
        print(f"{name}: encoding {len(used):,} texts", flush=True)
        embeddings = np.empty((len(corpus.texts), 384), dtype=np.float32)
        embeddings[used] = load_encoder().encode([corpus.texts[i] for i in used])
        for method, p, seed in missing:
            make, told = METHODS[method]
            scenario = scenarios[p, seed]
            X, y = embeddings[scenario.train.rows], scenario.train.y
            fitted = make(name, seed).fit(X, y if told else None)
            result = evaluate(scenario.test.y, fitted.anomaly_score(embeddings[scenario.test.rows]))
            append_row({"corpus": name, "method": method, "pollution": p, "seed": seed, **asdict(result)})
    print_table()


def read_rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def append_row(row: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    with ROWS.open("a") as file:
        file.write(json.dumps(row) + "\n")


def print_table() -> None:
    groups: dict[tuple[str, str, float], list[dict[str, Any]]] = defaultdict(list)
    for row in read_rows():
        groups[row["corpus"], row["method"], row["pollution"]].append(row)
    for (corpus, method, p), rows in sorted(groups.items()):
        figures = "  ".join(
            f"{label} {100 * np.mean(values):5.1f} ({100 * np.std(values):.1f})"
            for label, key in (("MAP", "map"), ("Recall@5", "recall_at_5"), ("AUC", "auc"))
            if (values := [row[key] for row in rows])
        )
        print(f"{corpus:7} {method:19} p={p:.0%}  {figures}  n={len(rows)}")


if __name__ == "__main__":
    main()
