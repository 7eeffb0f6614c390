"""Does a row's score depend on its batch? How many shapes of batches differ from one large one, and by how much.

    python -m benchmarks.batches [--threads 1]

For every detector, on made-up rows. Writes results/batches.json, under the instructions that NumPy found. On other
processors, or with the switches of `make test-avx2`, run it again: results are added to those there.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks.common import RESULTS, machine, write_json
from strays.detectors import DETECTORS, detector_class

# (rows fitted on, dimensions, known anomalies)
FITS = ((60, 384, 6), (333, 384, 10), (1001, 384, 0), (507, 96, 5))
SIZES = (1, 2, 3, 5, 7, 8, 13, 16, 31, 33, 64, 100, 255, 299, 513)
ROWS = 600
# Of networks and forests: small ones show what large ones would.
SMALL = {"hidden_size": 64, "min_steps": 20, "n_estimators": 20, "random_state": 0}


def gaps_of(name: str, fit: tuple[int, int, int]) -> list[float]:
    """For each size of batches the largest difference to scoring all rows at once."""
    n, d, known = fit
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    fresh = rng.normal(size=(ROWS, d)).astype(np.float32)
    fresh[:20] = X[-20:]
    cls = detector_class(name)
    detector = cls(**{key: value for key, value in SMALL.items() if key in cls().get_params()})
    detector.fit(X, np.where(np.arange(n) < known, -1, 0) if known else None)
    whole = detector.anomaly_score(fresh)
    gaps = []
    for size in SIZES:
        cut = [detector.anomaly_score(fresh[start : start + size]) for start in range(0, ROWS, size)]
        gaps.append(float(np.abs(np.concatenate(cut) - whole).max()))
    return gaps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    with threadpool_limits(options.threads):
        for name in DETECTORS:
            gaps = [gap for fit in FITS for gap in gaps_of(name, fit)]
            found[name] = {"shapes": len(gaps), "differ": sum(gap > 0 for gap in gaps), "largest_gap": max(gaps)}
            print(name, found[name], flush=True)
    blas = next(pool["architecture"] for pool in threadpool_info() if pool["internal_api"] == "openblas")
    path = RESULTS / "batches.json"
    runs = json.loads(path.read_text())["runs"] if path.exists() else {}
    runs[f"{blas}, {options.threads} threads"] = {"machine": machine("numpy", "scikit-learn"), "detectors": found}
    what = "shapes of batches whose scores differ from those of one large batch, by detector"
    write_json("batches.json", {"what": what, "runs": runs})


if __name__ == "__main__":
    main()
