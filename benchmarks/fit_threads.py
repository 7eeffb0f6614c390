"""`AutoDetector.fit` with the threads it takes, against all that NumPy and PyTorch would take: seconds, in turns.

python -m benchmarks.fit_threads [--rounds 5]
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
        few, all_ = [], []
        for _ in range(options.rounds):
            few.append(seconds(partial(AutoDetector().fit, X, y)))
            with patch("strays.detectors.auto.few_threads", lambda n_rows: nullcontext()):
                all_.append(seconds(partial(AutoDetector().fit, X, y)))
        ratios = np.array(few) / all_
        sizes.append({"rows": n, "few": few, "all": all_, "ratio_median": round(float(np.median(ratios)), 3)})
        print(n, sizes[-1]["ratio_median"], flush=True)
    write_json(
        "fit_threads.json",
        {
            "what": f"seconds to fit rows x {D} with {KNOWN} known anomalies, in turns; ratio of few threads to all",
            "machine": machine("numpy", "torch"),
            "load": round(os.getloadavg()[0], 1),
            "sizes": sizes,
        },
    )


if __name__ == "__main__":
    main()
