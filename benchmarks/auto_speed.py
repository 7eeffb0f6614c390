"""Fitting and scoring `auto` against PyOD's LUNAR on the same 12,000 x 384 rows, in turn, in one process.

    python -m benchmarks.auto_speed [--rounds 3]

Writes results/auto_speed.json. What counts is the ratio; seconds are this machine's.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.common import machine, seconds, write_json
from strays.detectors import AutoDetector

N, D, KNOWN = 12_000, 384, 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    from pyod.models.lunar import LUNAR

    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(np.arange(N) < KNOWN, -1, 0)
    auto = AutoDetector()
    rounds = []
    for _ in range(options.rounds):
        ours = seconds(lambda: auto.fit(X, y))
        scoring = N / seconds(lambda: auto.anomaly_score(X))
        theirs = seconds(lambda: LUNAR().fit(X))
        rounds.append({"strays": ours, "lunar": theirs, "scored_per_second": scoring})
        print(rounds[-1], flush=True)
    result = {
        "what": f"seconds to fit {N:,} x {D} rows, {KNOWN} known anomalies for strays; embeddings scored per second",
        "machine": machine("pyod", "torch", "scikit-learn"),
        "rounds": rounds,
        "ratio_median": float(np.median([r["strays"] / r["lunar"] for r in rounds])),
        "fit_seconds_median": float(np.median([r["strays"] for r in rounds])),
        "scored_per_second_median": float(np.median([r["scored_per_second"] for r in rounds])),
    }
    write_json("auto_speed.json", result)


if __name__ == "__main__":
    main()
