"""The values of the default detector's parts, computed on a GPU: those of auto_features.py, to about 1e-9.

Products are the very same, as they are exact. What is summed up along a row is not: a library chooses the order of its
sums by the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from strays.detectors import kernel_ridge
from strays.detectors.auto_features import AutoFeatures
from strays.detectors.auto_parts import PARTS
from strays.detectors.copies import EQUAL
from strays.detectors.exact import SCORED

if TYPE_CHECKING:
    import torch

ROWS_AT_ONCE = 16_384


class _Arrays(NamedTuple):
    """The arrays of AutoFeatures on a device."""

    center: torch.Tensor
    rows: torch.Tensor
    doubled: torch.Tensor
    squares: torch.Tensor
    field: torch.Tensor
    kernel: torch.Tensor
    linear: torch.Tensor
    radius: torch.Tensor
    left_out: torch.Tensor


_ON_DEVICE: WeakKeyDictionary[AutoFeatures, tuple[str, _Arrays]] = WeakKeyDictionary()


def features_on(device: str, features: AutoFeatures, X: np.ndarray) -> np.ndarray:
    """What `features.at(X)` gives, computed on a torch device."""
    import torch

    arrays = _on_device(device, features)
    blocks = [
        X[start : start + ROWS_AT_ONCE].astype(np.float32, copy=False) for start in range(0, len(X), ROWS_AT_ONCE)
    ]
    parts = [_at(features, arrays, torch.from_numpy(block).to(device).double()) for block in blocks]
    return np.concatenate([part.cpu().numpy() for part in parts])


def _on_device(device: str, features: AutoFeatures) -> _Arrays:
    import torch

    kept = _ON_DEVICE.get(features)
    if kept is None or kept[0] != device:
        compared = features.compared
        of_rows = [compared.center, compared.rows, compared.doubled, compared.squares]
        of_parts = [features.field, features.kernel, features.linear, features.radius, features.left_out]
        tensors = [torch.from_numpy(array).to(device) for array in of_rows + of_parts]
        kept = _ON_DEVICE[features] = device, _Arrays(*tensors)
    return kept[1]


def _at(features: AutoFeatures, arrays: _Arrays, X: torch.Tensor) -> torch.Tensor:
    import torch

    n, m, scale = len(arrays.left_out), len(arrays.radius), features.compared.scale
    X, form = X[:, : features.n_features], X[:, features.n_features :]
    Z = (X - arrays.center) / scale
    grid = _on_grid(Z)
    D = (grid @ arrays.doubled.T).add_(arrays.squares).add_((grid**2).sum(1, keepdim=True)).clamp_(min=0)

    def nearest_of(first: int, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """As ComparedRows.nearest, to the `first` rows."""
        which = D[:, :first].topk(k, largest=False).indices
        distance = (X[:, None] - arrays.rows[which].double()).norm(dim=2) / scale
        D.scatter_(1, which, distance**2)
        distance, order = distance.sort(dim=1)
        return distance, which.gather(1, order)

    distance, nearest = nearest_of(m, min(features.n_neighbors, m - 1))
    closest, itself = (distance, nearest) if n == m else nearest_of(n, 1)
    part = torch.zeros(len(Z), len(PARTS), dtype=torch.float64, device=Z.device)
    part[:, 0] = distance.mean(1)
    part[:, 1] = -(kernel_ridge.laplace(D) @ arrays.field)
    if n < len(arrays.field):
        part[:, 2] = kernel_ridge.gauss(D) @ arrays.kernel
        part[:, 3] = Z @ arrays.linear[:-1] + arrays.linear[-1]
    copy = distance[:, 0] <= arrays.radius[nearest[:, 0]]
    part[copy, :2] = arrays.left_out[nearest[copy, 0], :2]
    known = closest[:, 0] <= EQUAL * Z.norm(dim=1).clamp(min=1)
    part[known, :4] = arrays.left_out[itself[known, 0]]
    at_hand = [form, torch.where(copy & ~known, nearest[:, 0], -1)]
    part[:, 4] = torch.from_numpy(features.form_at(*(of.cpu().numpy() for of in at_hand)))
    return part


def _on_grid(Z: torch.Tensor) -> torch.Tensor:
    """exact.on_grid, of rows that are scored."""
    import torch

    exponent = torch.frexp(Z.norm(dim=1, keepdim=True)).exponent
    unit = torch.ldexp(torch.ones_like(Z[:, :1]), exponent - SCORED)
    return (Z / unit).round_().mul_(unit)
