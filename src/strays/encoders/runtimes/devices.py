"""Where a model may run. PyTorch is asked only where there can be a GPU: its import alone takes a second."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from strays.encoders.library_errors import TORCH_PIP
from strays.errors import UsageError

# Where Linux has a GPU of NVIDIA (in Jetsons under other names), of AMD, or of Windows around it.
GPUS = ("nvidia*", "nvhost*", "nvmap", "kfd", "dxg")


def find_device(asked: str) -> str:
    """The device asked for, as PyTorch calls it; for 'auto' a GPU if there is one."""
    if asked == "cpu" or (asked == "auto" and not (gpu_is_possible() and has_torch())):
        return "cpu"
    if not has_torch():
        needs = f"which needs PyTorch, and that is not installed: {TORCH_PIP}. Or choose cpu"
        raise UsageError(f"{{device}} is {asked!r:.60}, {needs}", param="device")
    from strays.encoders.runtimes.torch_runtime import torch_device

    return str(torch_device(asked))


def gpu_is_possible(devices: Path = Path("/dev")) -> bool:
    """Whether this machine may have a GPU that PyTorch can use; False only where that is certain."""
    if sys.platform == "darwin":
        return True
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1"):
        return False
    return sys.platform != "linux" or any(any(devices.glob(name)) for name in GPUS)


def has_torch() -> bool:
    """Whether the extra torch is installed; it is not imported."""
    return all(find_spec(name) is not None for name in ("torch", "transformers"))
