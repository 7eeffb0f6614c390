"""How an encoder is tuned: steps of gradient descent on presumed normal texts and known anomalies. Needs PyTorch.

Every step sees as many known anomalies as presumed normal texts. With z an embedding of length 1, s = SHARPNESS, and y
telling normal (+1) from anomaly (-1), an objective is the mean of some of

    cross-entropy  of a logistic head w, b beside it:  log(1 + exp(y (s w'z + b)))
    contrastive    -log of the share of exp(s z'z') that goes to the other texts of the same label
                   (Khosla et al., "Supervised Contrastive Learning", 2020)
    hypersphere    d for normal texts and -log(1 - exp(-d)) for anomalies, d the pseudo-Huber distance to the normals'
                   center (Ruff et al., "Rethinking Assumptions in Deep Anomaly Detection", 2021)
    bc-loss        the paper's own, sum y |z - c|^2 / n with c = sum y z / sum y, each anomaly with half the weight of a
                   normal text
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from strays.encoders.base import Progress
from strays.encoders.trainable_bert import States, TrainableBert

# Chosen on dev splits; see benchmarks/LOG.md.
RATE, HEAD_RATE, DECAY, SHARPNESS = 1.5e-3, 1e-2, 0.01, 10.0
WARM_UP, LARGEST_GRADIENT = 0.1, 1.0
OBJECTIVE = ("cross-entropy", "hypersphere", "contrastive")
# The weight of a known anomaly in bc-loss; that of a normal text is 1.
ANOMALY_MASS = 0.5


class _Head(NamedTuple):
    w: Tensor
    b: Tensor


Objective = Callable[[Tensor, Tensor, _Head], Tensor]


def tune(
    bert: TrainableBert,
    states: States,
    normal: np.ndarray,
    known: np.ndarray,
    *,
    steps: int,
    half_batch: int,
    seed: int,
    progress: Progress | None = None,
) -> None:
    """Let a BERT learn, from its beginning, from the rows `normal` and the known anomalies `known` of some texts.

    Each of `steps` sees `half_batch` of either.
    """
    bert.begin(seed)
    rng = np.random.default_rng(seed)
    head = _Head(
        torch.zeros(bert.config.hidden_size, device=bert.device, requires_grad=True),
        torch.zeros((), device=bert.device, requires_grad=True),
    )
    optimizer = torch.optim.AdamW(
        [{"params": bert.parameters, "lr": RATE}, {"params": [*head], "lr": HEAD_RATE}], weight_decay=DECAY
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / (WARM_UP * steps)) * (1 - step / steps)
    )
    normals, anomalies = _in_turn(normal, rng), _in_turn(known, rng)
    y = torch.ones(2 * half_batch, device=bert.device)
    y[half_batch:] = -1
    for step in range(steps):
        rows = np.array([next(source) for source in (normals, anomalies) for _ in range(half_batch)])
        optimizer.zero_grad()
        z = bert.embeddings(states.take(rows))
        sum(OBJECTIVES[name](z, y, head) / len(OBJECTIVE) for name in OBJECTIVE).backward()
        torch.nn.utils.clip_grad_norm_(bert.parameters, LARGEST_GRADIENT)
        optimizer.step()
        schedule.step()
        if progress:
            progress(step + 1, steps)


def _in_turn(rows: np.ndarray, rng: np.random.Generator) -> Iterator[int]:
    """All rows in random order, again and again."""
    while True:
        yield from rng.permutation(rows).tolist()


def _cross_entropy(z: Tensor, y: Tensor, head: _Head) -> Tensor:
    return functional.softplus(y * (SHARPNESS * z @ head.w + head.b)).mean()


def _contrastive(z: Tensor, y: Tensor, head: _Head) -> Tensor:
    itself = torch.eye(len(y), dtype=torch.bool, device=y.device)
    like = (SHARPNESS * z @ z.T).masked_fill(itself, -torch.inf).log_softmax(dim=1)
    same = (y[:, None] == y) & ~itself
    return -(like.masked_fill(~same, 0).sum(1) / same.sum(1).clamp(min=1)).mean()


def _hypersphere(z: Tensor, y: Tensor, head: _Head) -> Tensor:
    center = z[y > 0].mean(0)
    d = torch.sqrt(SHARPNESS * ((z - center) ** 2).sum(1) + 1) - 1
    return torch.where(y > 0, d, -torch.log(-torch.expm1(-d) + 1e-6)).mean()


def _bc_loss(z: Tensor, y: Tensor, head: _Head) -> Tensor:
    weight = torch.where(y > 0, 1.0, -ANOMALY_MASS)
    center = (weight[:, None] * z).sum(0) / weight.sum()
    return SHARPNESS * (weight * ((z - center) ** 2).sum(1)).mean()


OBJECTIVES: dict[str, Objective] = {
    "cross-entropy": _cross_entropy,
    "contrastive": _contrastive,
    "hypersphere": _hypersphere,
    "bc-loss": _bc_loss,
}
