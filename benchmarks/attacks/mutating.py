"""What the mutations of models share: hostile names and values, and how a bit is flipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.attacks.saved import Saved

T = TypeVar("T")
Rng = np.random.Generator
Mutation = Callable[[Rng, Saved, Path, Path], str]

HOSTILE_NAMES = (
    "../../outside/canary.txt",
    "/etc/passwd",
    "detector/../../x",
    "",
    "\0",
    "a\0b",
    "x" * 100_000,
    "__class__",
    "detector/__init__",
    "detector/rows_.0",
    "calibration/normal_scores/..",
    "\u202egnp",
    "CON",
)
HOSTILE_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    10**30,
    -(10**30),
    2**31,
    2**63,
    10**18,
    0.5,
    -0.0,
    1e-320,
    1e308,
    "",
    " ",
    "a",
    "x" * 200_000,
    "../..",
    "../../outside",
    "../../outside/canary.txt",
    "/etc/passwd",
    "/dev/zero",
    "/proc/self/environ",
    "~root",
    "file:///etc/passwd",
    "https://example.invalid/model",
    "someone/some-model",
    "http://169.254.169.254/latest/meta-data",
    "\0",
    "\ud800",
    "\u202e",
    "nan",
    "inf",
    "__import__('os').system('touch x')",
    "os.system",
    [],
    [[]],
    {},
    {"a": {"b": {}}},
    [1, 2, 3],
    ["x"] * 1000,
    {"__class__": "os.system"},
    {"name": "default"},
)


def pick(rng: Rng, options: Sequence[T]) -> T:
    """One of them."""
    return options[int(rng.integers(len(options)))]


def flipped(rng: Rng, data: bytes, low: int, high: int) -> bytes:
    """With one to eight bits flipped between two places."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        if high > low:
            out[int(rng.integers(low, high))] ^= 1 << int(rng.integers(8))
    return bytes(out)
