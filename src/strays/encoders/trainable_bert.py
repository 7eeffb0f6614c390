"""A BERT whose upper layers learn low-rank updates of their matrices, in PyTorch. Needs the extra torch.

The layers below stay as they are, so their outputs are computed once for all texts and kept. Tokens of a batch are the
rows of one matrix without padding, but in attention. What is trained is the number of parameters of a small network,
which keeps few labels from spoiling what the model knows; Hu et al., "LoRA", 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from strays.encoders.base import Progress
from strays.encoders.bert_weights import Weights
from strays.encoders.low_rank import LowRank, LowRankUpdates
from strays.encoders.runtimes.packed_bert import padded_attention
from strays.encoders.settings import EncoderSettings, first_position

# Of the layers the first third stays as it is; the numbers in an update's smaller side; and the share of numbers that
# are set to zero, at random, in learning. Chosen on dev splits; see benchmarks/LOG.md.
FIXED, RANK, DROPOUT = 1 / 3, 16, 0.1
# The matrices of a layer.
DENSE = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
# Tokens that are looked at together where nothing is learnt.
TOKENS = 2048


@dataclass(frozen=True)
class States:
    """Outputs of the lower layers for some texts, the tokens of one after those of another."""

    x: Tensor  # (tokens, dimension)
    lengths: np.ndarray  # (texts,)

    def take(self, rows: np.ndarray) -> States:
        """Those of some texts."""
        ends = np.cumsum(self.lengths)
        places = np.concatenate([np.arange(ends[row] - self.lengths[row], ends[row]) for row in rows.tolist()])
        return States(self.x[torch.from_numpy(places).to(self.x.device)], self.lengths[rows])


class TrainableBert:
    """A BERT with these weights, of which the upper layers have updates, at first zero."""

    def __init__(self, weights: Weights, config: Any, shape: EncoderSettings, device: str) -> None:
        self.config, self.shape, self.device = config, shape, torch.device(device)
        self.first = round(FIXED * config.num_hidden_layers)
        self.weights = {name: torch.tensor(np.asarray(weights[name]), device=self.device) for name in weights}
        places = self.weights["embeddings.position_embeddings.weight"][first_position(config) :]
        if "embeddings.token_type_embeddings.weight" in weights:
            places = places + self.weights["embeddings.token_type_embeddings.weight"][0]
        self.places = places
        self.down: dict[str, Tensor] = {}
        self.up: dict[str, Tensor] = {}
        # The numbers that dropout draws, alone: those that others draw stay as they are.
        self._drawn = torch.Generator(self.device)
        self.begin(0)

    def begin(self, seed: int) -> None:
        """Forget what was learnt; what is random from here on depends on the seed alone."""
        drawn = torch.Generator().manual_seed(seed)
        self._drawn.manual_seed(seed)
        for layer in range(self.first, self.config.num_hidden_layers):
            for name in (f"encoder.layer.{layer}.{dense}" for dense in DENSE):
                outputs, inputs = self.weights[f"{name}.weight"].shape
                start = torch.randn(RANK, inputs, generator=drawn) / math.sqrt(inputs)
                self.down[name] = start.to(self.device).requires_grad_()
                self.up[name] = torch.zeros(outputs, RANK, device=self.device, requires_grad=True)

    @property
    def parameters(self) -> list[Tensor]:
        """What is learnt."""
        return [*self.down.values(), *self.up.values()]

    def updates(self) -> LowRankUpdates:
        """What was learnt."""
        return LowRankUpdates(
            {
                f"{name}.weight": LowRank(down.detach().cpu().numpy(), self.up[name].detach().cpu().numpy())
                for name, down in self.down.items()
            }
        )

    def lower(self, ids: Sequence[Sequence[int]], progress: Progress | None = None) -> States:
        """What the lower layers make of texts, as token ids."""
        lengths = np.array([len(text) for text in ids])
        starts = np.cumsum(lengths) - lengths
        x = torch.empty(int(lengths.sum()), self.config.hidden_size, device=self.device)
        done = 0
        with torch.no_grad():
            for rows in _batches(lengths):
                flat = torch.tensor([token for row in rows for token in ids[row]], device=self.device)
                n = lengths[rows]
                place = torch.from_numpy(np.concatenate([np.arange(length) for length in n])).to(self.device)
                found = self.weights["embeddings.word_embeddings.weight"][flat] + self.places[place]
                found = self._layers(self._normalized(found, "embeddings.LayerNorm"), n, range(self.first))
                at = np.concatenate([np.arange(starts[row], starts[row] + lengths[row]) for row in rows])
                x[torch.from_numpy(at).to(self.device)] = found
                done += len(rows)
                if progress:
                    progress(done, len(ids))
        return States(x, lengths)

    def embeddings(self, states: States, *, learning: bool = True) -> Tensor:
        """Embeddings (texts, dimension) from what the lower layers made of the texts: of length 1 while learning."""
        with nullcontext() if learning else torch.no_grad():
            x = self._layers(states.x, states.lengths, range(self.first, self.config.num_hidden_layers))
            lengths = torch.from_numpy(states.lengths).to(self.device)
            if self.shape.pooling == "cls":
                pooled = x[lengths.cumsum(0) - lengths]
            else:
                own = torch.arange(int(states.lengths.max()), device=self.device) < lengths[:, None]
                padded = x.new_zeros(*own.shape, x.shape[1])
                padded[own] = x
                pooled = padded.sum(1) / lengths[:, None]
            return functional.normalize(pooled, dim=1) if learning or self.shape.normalize else pooled

    def embedded(self, states: States, share: float, progress: Progress | None = None) -> np.ndarray:
        """Embeddings of texts with a share of the updates."""
        out = np.empty((len(states.lengths), self.config.hidden_size), dtype=np.float32)
        learnt, done = {name: up.detach().clone() for name, up in self.up.items()}, 0
        try:
            with torch.no_grad():
                for name, up in self.up.items():
                    up.copy_(share * learnt[name])
            for rows in _batches(states.lengths):
                out[rows] = self.embeddings(states.take(rows), learning=False).cpu().numpy()
                done += len(rows)
                if progress:
                    progress(done, len(out))
        finally:
            with torch.no_grad():
                for name, up in self.up.items():
                    up.copy_(learnt[name])
        return out

    def _layers(self, x: Tensor, lengths: np.ndarray, layers: range) -> Tensor:
        n = torch.from_numpy(lengths).to(self.device)
        starts, longest = n.cumsum(0) - n, int(lengths.max())
        for layer in (f"encoder.layer.{i}." for i in layers):
            qkv = torch.cat([self._dense(x, f"{layer}attention.self.{role}") for role in ("query", "key", "value")], 1)
            mixed = padded_attention(qkv, starts, n, longest, self.config.num_attention_heads)
            mixed = self._dropped(self._dense(mixed, f"{layer}attention.output.dense"))
            x = self._normalized(mixed + x, f"{layer}attention.output.LayerNorm")
            inner = functional.gelu(self._dense(x, f"{layer}intermediate.dense"))
            outer = self._dropped(self._dense(inner, f"{layer}output.dense"))
            x = self._normalized(outer + x, f"{layer}output.LayerNorm")
        return x

    def _dropped(self, x: Tensor) -> Tensor:
        """Some numbers set to zero, at random, and the others made larger, while something is learnt."""
        if not torch.is_grad_enabled():
            return x
        kept = torch.rand(x.shape, generator=self._drawn, device=self.device) >= DROPOUT
        return x * kept / (1 - DROPOUT)

    def _dense(self, x: Tensor, name: str) -> Tensor:
        y = functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])
        return y + (x @ self.down[name].T) @ self.up[name].T if name in self.down else y

    def _normalized(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return functional.layer_norm(x, (x.shape[1],), weight, bias, self.config.layer_norm_eps)


def _batches(lengths: np.ndarray) -> Iterator[np.ndarray]:
    """The rows of texts of these lengths, the longest first, about TOKENS tokens at a time."""
    order, at = np.argsort(-lengths, kind="stable"), 0
    while at < len(order):
        n = max(1, TOKENS // max(1, int(lengths[order[at]])))
        yield order[at : at + n]
        at += n
