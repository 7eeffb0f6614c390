"""How many actors a cluster gets, and of which size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from strays.errors import ClusterError, UsageError
from strays.jobs.score import Scorer

# Cores of one actor: encoders that run a network use several; any other works on one core at a time.
CORES_OF_A_NETWORK = 4


@dataclass(frozen=True)
class Pool:
    """How many actors there are, and what each holds of a node."""

    size: int
    cpus: int
    gpus: int | None = None


def pool_for(nodes: list[dict[str, float]], model: Scorer) -> Pool:
    """An actor for every GPU, where the encoder can use one; else all cores, in actors of as many as one can use."""
    device = next((str(e.device) for e in encoders_in(model) if hasattr(e, "device")), None)
    with_gpu = [node for node in nodes if node.get("GPU", 0) >= 1]
    if with_gpu and device in ("auto", "cuda"):
        each = min(int(node.get("CPU", 0) // int(node["GPU"])) for node in with_gpu)
        return Pool(sum(int(node["GPU"]) for node in with_gpu), max(each, 1), 1)
    if device not in (None, "auto", "cpu"):
        raise UsageError(
            f"{{device}} is {device!r}, and {len(with_gpu)} nodes of the cluster have GPUs, which Ray assigns; "
            "expected auto or cpu, or, if there are GPUs, cuda",
            param="device",
        )
    cores = [int(node.get("CPU", 0)) for node in nodes if node.get("CPU", 0) >= 1]
    if not cores:
        raise ClusterError("no node of the cluster has a CPU to work with; start one with `ray start`")
    each = min(CORES_OF_A_NETWORK if device else 1, *cores)
    return Pool(sum(n // each for n in cores), each)


def encoders_in(model: Scorer) -> list[Any]:
    """The encoders of a model, also of one that a cascade is made of."""
    inner = getattr(model, "model", model)
    found = [getattr(inner, "encoder_", None), getattr(getattr(inner, "cascade_", None), "encoder", None)]
    return [encoder for encoder in found if encoder is not None]
