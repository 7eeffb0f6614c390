"""`AutoDetector.fit` with one thread for products and decompositions, against all that NumPy would take, in turns.

    python -m benchmarks.fit_threads [--rounds 5]

From it comes `strays.detectors.threads.FEW`. Writes results/fit_threads.json.
"""

from __future__ import annotations

import argparse
import os
from contextlib import nullcontext
from functools import partial
from unittest.mock import patch

import numpy as np

from benchmarks.common import machine, seconds, write_json
from strays.detectors import AutoDetector
from strays.detectors.threads import one_thread

ROWS, D, KNOWN = (300, 1000, 2000, 6000), 384, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    sizes = []
    for n in ROWS:
        X = rng.normal(size=(n, D)).astype(np.float32)
        y = np.where(np.arange(n) < KNOWN, -1, 0)
        AutoDetector().fit(X, y)
        one: list[float] = []
        all_: list[float] = []
        for _ in range(options.rounds):
            for found, threads in ((one, one_thread), (all_, nullcontext)):
                with patch("strays.detectors.auto_parts.few_threads", lambda n_rows, threads=threads: threads()):
                    found.append(seconds(partial(AutoDetector().fit, X, y)))
        ratios = np.array(one) / all_
        sizes.append({"rows": n, "one": one, "all": all_, "ratio_median": round(float(np.median(ratios)), 3)})
        print(n, sizes[-1]["ratio_median"], flush=True)
    write_json(
        "fit_threads.json",
        {
            "what": f"seconds to fit rows x {D} with {KNOWN} known anomalies, in turns; ratio of one thread to all",
            "machine": machine("numpy"),
            "load": round(os.getloadavg()[0], 1),
            "sizes": sizes,
        },
    )


if __name__ == "__main__":
    main()
