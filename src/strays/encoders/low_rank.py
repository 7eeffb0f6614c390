"""Updates of a transformer's matrices that are few numbers beside the weights they are for.

A matrix W (outputs, inputs) becomes W + up down, with `down` (rank, inputs) and `up` (outputs, rank): Hu et al.,
"LoRA", 2022. Part of an update is one with a smaller `up`; Wortsman et al., "Robust fine-tuning of zero-shot models",
2022, show that half of a tuning often keeps most of what it gains and loses little elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from strays.encoders.bert_weights import Weights
from strays.errors import LoadingError

DOWN, UP, LEARNT_FROM = "down/", "up/", "learnt_from"


@dataclass(frozen=True)
class LowRank:
    """The update of one matrix."""

    down: np.ndarray
    up: np.ndarray

    def applied(self, W: np.ndarray) -> np.ndarray:
        """W + up down; the sums are of float64, so that they are the same float32 on nearly every machine."""
        if (self.up.shape[0], self.down.shape[1]) != W.shape:
            shapes = f"{self.up.shape} and {self.down.shape}"
            raise LoadingError(f"an update in the shapes {shapes} does not fit a matrix in the shape {W.shape}")
        return (W + self.up.astype(np.float64) @ self.down.astype(np.float64)).astype(np.float32)


class LowRankUpdates(Mapping[str, LowRank]):
    """The name of a weight matrix -> its update; `learnt_from` are hashes of the texts they rest on, ascending.

    >>> one = LowRank(np.ones((1, 3), np.float32), np.ones((2, 1), np.float32))
    >>> updates = LowRankUpdates({"dense.weight": one})
    >>> updates.scaled(0.5)["dense.weight"].applied(np.zeros((2, 3), np.float32)).tolist()
    [[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]
    >>> LowRankUpdates.from_arrays(updates.to_arrays()).digest == updates.digest
    True
    """

    def __init__(self, updates: Mapping[str, LowRank], learnt_from: np.ndarray | None = None) -> None:
        self._updates = dict(sorted(updates.items()))
        self.learnt_from = np.unique(np.asarray([] if learnt_from is None else learnt_from, dtype=np.uint64))

    def __getitem__(self, name: str) -> LowRank:
        return self._updates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._updates)

    def __len__(self) -> int:
        return len(self._updates)

    def scaled(self, share: float) -> LowRankUpdates:
        """A share of each update."""
        scaled = {name: LowRank(one.down, (share * one.up).astype(np.float32)) for name, one in self.items()}
        return LowRankUpdates(scaled, self.learnt_from)

    @cached_property
    def digest(self) -> str:
        """Hash of all numbers and names that decide an embedding."""
        hashed = hashlib.sha256(b"strays low-rank updates 1")
        for name, array in self._matrices().items():
            hashed.update(f"{name} {array.shape}".encode())
            hashed.update(np.ascontiguousarray(array, dtype="<f4").tobytes())
        return hashed.hexdigest()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """As plain arrays, for a model's folder."""
        return self._matrices() | {LEARNT_FROM: self.learnt_from}

    def _matrices(self) -> dict[str, np.ndarray]:
        downs = {DOWN + name: one.down for name, one in self.items()}
        return downs | {UP + name: one.up for name, one in self.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> LowRankUpdates:
        """What to_arrays gave; whether it fits the weights is told when it is applied to them."""
        learnt_from = arrays.get(LEARNT_FROM)
        if learnt_from is None or learnt_from.dtype != np.uint64 or learnt_from.ndim != 1 or len(arrays) < 2:
            raise LoadingError("an update of the encoder, or what it was learnt from, is not one that strays wrote")
        arrays = {name: array for name, array in arrays.items() if array is not learnt_from}
        names = [name.removeprefix(DOWN) for name in arrays if name.startswith(DOWN)]
        expected = {place + name for name in names for place in (DOWN, UP)}
        for name, array in arrays.items():
            usable = name in expected and array.dtype == np.float32 and array.ndim == 2 and np.isfinite(array).all()
            if not usable:
                raise LoadingError(f"an update of the encoder, {name!r:.80}, is not one that strays wrote")
        found = {name: LowRank(arrays[DOWN + name], arrays.get(UP + name, np.empty((0, 0)))) for name in names}
        if any(one.up.shape[1] != len(one.down) for one in found.values()):
            raise LoadingError("an update of the encoder is not one that strays wrote: its ranks differ")
        return cls(found, learnt_from)


class UpdatedWeights(Weights):
    """Weights with updates, which are applied whenever a matrix is read; what has none is as it was, mapped or not."""

    def __init__(self, weights: Weights, updates: LowRankUpdates) -> None:
        if unknown := [name for name in updates if name not in weights]:
            raise LoadingError(f"an update is of {unknown[0]!r:.80}, which the encoder does not have")
        super().__init__(weights)
        self._weights, self._updates = weights, updates

    def __getitem__(self, name: str) -> np.ndarray:
        W = self._weights[name]
        return self._updates[name].applied(W) if name in self._updates else W

    def require_unchanged(self) -> None:
        """Raise if somebody wrote to a file that tensors are mapped from."""
        self._weights.require_unchanged()
