"""Fitting AISVDD against PyOD's DeepSVDD: the same rows, layers, batch size and epochs, all else
at its defaults, in turn, in one process.

    python -m benchmarks.fit_speed [--rounds 7] [--epochs 20]

Writes results/fit_speed.json. What counts is the ratio; seconds are this machine's.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.common import machine, seconds, write_json
from strays.detectors import AISVDD


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    from pyod.models.deep_svdd import DeepSVDD

    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 384)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(np.arange(len(X)) < 800, -1, 1)

    def ours() -> object:
        return AISVDD(hidden_size=1024, latent_size=128, batch_size=128, epochs=options.epochs, random_state=0).fit(
            X, y
        )

    def theirs() -> object:
        return DeepSVDD(
            n_features=384,
            hidden_neurons=[1024, 128],
            batch_size=128,
            epochs=options.epochs,
            verbose=0,
            random_state=0,
        ).fit(X)

    ours(), theirs()  # the first run of each loads and warms
    rounds = [{"strays": seconds(ours), "pyod": seconds(theirs)} for _ in range(options.rounds)]
    ratios = [r["strays"] / r["pyod"] for r in rounds]
    result = {
        "what": "seconds to fit 10,000 x 384 rows, layers 384-1024-128, batches of 128; 800 known anomalies for strays",
        "epochs": options.epochs,
        "machine": machine("pyod", "torch"),
        "rounds": rounds,
        "ratio_median": float(np.median(ratios)),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
    }
    write_json("fit_speed.json", result)
    print(f"strays / pyod: {result['ratio_median']:.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
