"""What 8-bit products cost in quality: the default detector on embeddings of full precision and of int8.

    python -m benchmarks.precision --data DIR

The paper's cells with most labels (p = 8 %) and cells without any, test splits, five draws. Also how many normal test
texts are flagged at 1 % when the precision changes between fitting and scoring, as it does from a CPU to a GPU. Writes
results/precision.json.
"""

from __future__ import annotations

import argparse
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.common import write_json
from strays.detectors import detector_class
from strays.encoders import load_encoder
from strays.jobs.metrics import auc, mean_average_precision
from strays.model.calibration import Calibration, threshold
from strays.studies.corpora import data_folder, load_corpus
from strays.studies.embeddings import embed
from strays.studies.protocol import RUNS, Scenario, pollute

CORPORA = ("5.1", "5.2-ag", "5.2-rct")
POLLUTION = 0.08
PRECISIONS = ("full", "int8")
LABELS = ("none", "all")
RULE = threshold(max_false_alarms=0.01)


def run(X: dict[str, np.ndarray], draw: Scenario, labels: str, fitted_on: str) -> dict[str, float]:
    """Quality on one draw, and false alarms in both precisions; every fifth training row is held out."""
    rows, y = draw.train.rows, draw.train.y
    if labels == "none":
        rows, y = rows[y > 0], y[y > 0]
    held_out = np.arange(len(rows)) % 5 == 0
    detector = detector_class("auto")().fit(X[fitted_on][rows[~held_out]], y[~held_out])
    normal_scores = detector.anomaly_score(X[fitted_on][rows[held_out & (y > 0)]])
    calibration = Calibration.from_scores(normal_scores, normal_scores)
    scores = {precision: detector.anomaly_score(X[precision][draw.test.rows]) for precision in PRECISIONS}
    own = scores[fitted_on]
    alarms = {
        f"false_alarms_{precision}": float(calibration.flagged(RULE, score)[draw.test.y > 0].mean())
        for precision, score in scores.items()
    }
    return {"auc": auc(draw.test.y, own), "map": mean_average_precision(draw.test.y, own), **alarms}


def summed_up(rows: list[dict[str, Any]], corpus: str, labels: str) -> dict[str, Any]:
    """Means of a cell, in percent."""

    def mean(fitted_on: str, what: str) -> float:
        chosen = [r for r in rows if (r["corpus"], r["labels"], r["fitted_on"]) == (corpus, labels, fitted_on)]
        return round(100 * fmean(row[what] for row in chosen), 2)

    cell: dict[str, Any] = {"corpus": corpus, "labels": labels}
    for what in ("auc", "map"):
        cell[what] = {precision: mean(precision, what) for precision in PRECISIONS}
    cell["false_alarms"] = {
        f"fitted on {fitted_on}, scoring {scored}": mean(fitted_on, f"false_alarms_{scored}")
        for fitted_on in PRECISIONS
        for scored in PRECISIONS
    }
    return cell


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--corpora", nargs="*", default=CORPORA)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    summary = []
    for name in options.corpora:
        corpus = load_corpus(name, data_folder(options.data))
        draws = [pollute(corpus, POLLUTION, seed) for seed in range(RUNS)]
        wanted = {row for draw in draws for row in draw.rows}
        X = {p: embed(corpus, wanted, load_encoder("default", precision=p)) for p in PRECISIONS}
        for labels in LABELS:
            for seed, draw in enumerate(draws):
                for fitted_on in PRECISIONS:
                    what = {"corpus": name, "labels": labels, "fitted_on": fitted_on, "seed": seed}
                    rows.append(what | run(X, draw, labels, fitted_on))
            summary.append(summed_up(rows, name, labels))
            print(summary[-1], flush=True)
    write_json("precision.json", {"pollution": POLLUTION, "summary": summary, "rows": rows})


if __name__ == "__main__":
    main()
