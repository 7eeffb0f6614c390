"""Does a row's score depend on its batch? How many shapes of batches differ from one large one, and by how much.

    python -m benchmarks.batches [--pad 4] [--threads 1]

For `auto`, on made-up rows. --pad fills every batch up to a multiple of so many rows before it is scored, to see if
that is a cure. Other processors: see `make test-avx2`.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from strays.detectors import AutoDetector

# (rows fitted on, dimensions, known anomalies)
FITS = ((60, 384, 6), (333, 384, 10), (1001, 384, 0), (507, 96, 5))
SIZES = (1, 2, 3, 5, 7, 8, 13, 16, 31, 33, 64, 100, 255, 299, 513)
ROWS = 600


def scores(detector: AutoDetector, X: np.ndarray, pad: int) -> np.ndarray:
    filled = np.vstack([X, np.repeat(X[-1:], -len(X) % pad, axis=0)])
    return detector.anomaly_score(filled)[: len(X)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pad", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rng = np.random.default_rng(0)
    gaps = []
    for n, d, known in FITS:
        X = rng.normal(size=(n, d)).astype(np.float32)
        detector = AutoDetector().fit(X, np.where(np.arange(n) < known, -1, 0) if known else None)
        fresh = rng.normal(size=(ROWS, d)).astype(np.float32)
        fresh[:20] = X[-20:]
        whole = scores(detector, fresh, options.pad)
        for size in SIZES:
            cut = [scores(detector, fresh[i : i + size], options.pad) for i in range(0, ROWS, size)]
            gaps.append(float(np.abs(np.concatenate(cut) - whole).max()))
    print(f"{sum(gap > 0 for gap in gaps)} of {len(gaps)} shapes differ, by at most {max(gaps):.1e}")


if __name__ == "__main__":
    main()
