"""Fitting AISVDD against PyOD's DeepSVDD: the same rows, layers, batches and epochs, all else at its defaults, in turn.

    python -m benchmarks.fit_speed [--rounds 7] [--epochs 20] [--before ../before/src]

Also with one thread, with the threads of NumPy's products instead of our own, and, given the src of another version,
with that. Writes results/fit_speed.json. What counts are the ratios; seconds are this machine's.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import machine, seconds, write_json
from benchmarks.fitter import Fitter
from strays.detectors import AISVDD
from strays.detectors.threads import in_turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--before", help="src of another version")
    options = parser.parse_args()
    from pyod.models.deep_svdd import DeepSVDD

    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 384)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(np.arange(len(X)) < 800, -1, 1)
    params = {
        "hidden_size": 1024, "latent_size": 128, "batch_size": 128, "epochs": options.epochs, "random_state": 0
    }  # fmt: skip

    def ours() -> float:
        return seconds(lambda: AISVDD(**params).fit(X, y))

    def with_one_thread() -> float:
        with threadpool_limits(1, "blas"):
            return ours()

    def with_numpys_threads() -> float:
        with (
            patch("strays.detectors.training.workers", lambda: nullcontext(in_turn)),
            patch("strays.detectors.sphere.one_thread", nullcontext),
        ):
            return ours()

    def pyod() -> float:
        settings = {"hidden_neurons": [1024, 128], "batch_size": 128, "epochs": options.epochs, "random_state": 0}
        return seconds(lambda: DeepSVDD(n_features=384, verbose=0, **settings).fit(X))

    ways: dict[str, Callable[[], float]] = {
        "strays": ours,
        "pyod": pyod,
        "one thread": with_one_thread,
        "numpy's threads": with_numpys_threads,
    }
    with ExitStack() as stack:
        if options.before:
            before = stack.enter_context(Fitter(options.before))
            ways["before"] = lambda: before.fit("ai-svdd", params, X, y, X[:2])[0]
        for way in ways.values():
            way()  # the first run of each loads and warms
        rounds = []
        for _ in range(options.rounds):
            rounds.append({name: way() for name, way in ways.items()})
            print(rounds[-1], flush=True)
    ratios = {name: [r["strays"] / r[name] for r in rounds] for name in ways if name != "strays"}
    result = {
        "what": "seconds to fit 10,000 x 384 rows, layers 384-1024-128, batches of 128; 800 known anomalies for strays",
        "epochs": options.epochs,
        "machine": machine("pyod", "torch", "numpy"),
        "load": round(os.getloadavg()[0], 1),
        "rounds": rounds,
        "ratios_median": {name: round(float(np.median(values)), 3) for name, values in ratios.items()},
        "ratio_median": float(np.median(ratios["pyod"])),
        "ratio_min": min(ratios["pyod"]),
        "ratio_max": max(ratios["pyod"]),
    }
    write_json("fit_speed.json", result)
    print(result["ratios_median"])


if __name__ == "__main__":
    main()
