"""Single flipped bits: what the benchmarks of damaged files share."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np


def options(doc: str | None) -> argparse.Namespace:
    """How many bits to flip, and the seed, from the command line of a benchmark with this docstring."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n\n")[0])
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def flip_one(path: Path, rng: np.random.Generator) -> None:
    """Flip a random bit of a file."""
    data = bytearray(path.read_bytes())
    bit = int(rng.integers(8 * len(data)))
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
