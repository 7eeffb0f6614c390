"""What a runtime promises, and how many cores it may use."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from strays.encoders.tokenizer import Batch


class Runtime(Protocol):
    """What runs a model: batches of token ids to embeddings."""

    @property
    def tokens_per_batch(self) -> int:
        """Tokens in one batch that suit it best, padding included."""

    def run(self, batches: Iterable[Batch]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, embeddings) of each batch, in order."""


def usable_cores() -> int:
    """How many cores this process may use: OMP_NUM_THREADS, else a container's share, else the processor's."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(cores, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no such file, or no quota: "max"
        return cores
