"""How much of the machine is ours."""

from __future__ import annotations

import os
from pathlib import Path


def usable_cores() -> int:
    """How many cores this process may use: what OMP_NUM_THREADS says, a container's share, the processor's."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(cores, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no such file, or no quota: "max"
        return cores
