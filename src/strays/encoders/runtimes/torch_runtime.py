"""BERT-like encoders on PyTorch: float32 on a CPU, bfloat16 on a GPU.

On a GPU several batches are under way at once: while one is computed, the next is copied there and the last one back.
BERT's own kind runs there without padding (packed_bert); any other model as transformers writes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

from strays.encoders.runtimes.packed_bert import PackedBert
from strays.encoders.settings import EncoderSettings
from strays.encoders.tokenizer import Batch
from strays.errors import UsageError, first_line

# Batches on the GPU at once.
IN_FLIGHT = 4


def torch_device(asked: str) -> torch.device:
    """The device asked for; for 'auto' a GPU if there is one."""
    if asked != "auto":
        try:
            return torch.zeros(1, device=asked).device
        except (RuntimeError, AssertionError) as error:
            why = f"cannot be used here ({first_line(error)}); expected auto, cpu, cuda or mps"
            raise UsageError(f"{{device}} is {asked!r}, which {why}", param="device") from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


class TorchRuntime:
    """Padded batches of token ids to embeddings, by any model of transformers on any device."""

    tokens_per_batch = 1024

    def __init__(self, model: Any, shape: EncoderSettings, device: str) -> None:
        self.shape, self.device = shape, torch.device(device)
        self.model = model.to(self.device).eval()

    def run(self, batches: Iterable[Batch]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, embeddings) of each batch, in order."""
        for batch in batches:
            with torch.inference_mode():
                embeddings = self._embed(batch).cpu().numpy()
            yield batch.rows, embeddings

    def _embed(self, batch: Batch) -> torch.Tensor:
        ids, mask = self._sent(batch.ids), self._sent(batch.mask)
        hidden = self.model(input_ids=ids, attention_mask=mask).last_hidden_state  # (texts, tokens, dimension)
        if self.shape.pooling == "cls":
            return self._finished(hidden[:, 0].float())
        weight = mask.unsqueeze(-1).float()
        return self._finished((hidden.float() * weight).sum(1) / weight.sum(1).clamp(min=1))

    def _finished(self, pooled: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(pooled, dim=1) if self.shape.normalize else pooled

    def _sent(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)


class GpuRuntime(TorchRuntime):
    """The same in bfloat16 on an NVIDIA GPU, with copies and computing at the same time."""

    def __init__(self, model: Any, shape: EncoderSettings, device: str) -> None:
        super().__init__(model.to(torch.bfloat16), shape, device)
        # About 2 GB of hidden states of a BERT-base, or 0.5 GB on a small GPU.
        large = torch.cuda.get_device_properties(device).total_memory > 20 * 2**30
        self.tokens_per_batch = 131_072 if large else 32_768

    def run(self, batches: Iterable[Batch]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, embeddings) of each batch, in order."""
        waiting: deque[tuple[np.ndarray, torch.Tensor, Any]] = deque()
        for batch in batches:
            with torch.inference_mode(), torch.cuda.device(self.device):
                embeddings = self._embed(batch)
                host = torch.empty(embeddings.shape, dtype=embeddings.dtype, pin_memory=True)
                host.copy_(embeddings, non_blocking=True)
                there = torch.cuda.Event()
                there.record()
            waiting.append((batch.rows, host, there))
            if len(waiting) == IN_FLIGHT:
                yield _arrived(*waiting.popleft())
        for under_way in waiting:
            yield _arrived(*under_way)

    def _sent(self, array: np.ndarray) -> torch.Tensor:
        plain = torch.from_numpy(array)
        # Pinned memory from PyTorch's own stock; pin_memory() would take milliseconds.
        pinned = torch.empty(plain.shape, dtype=plain.dtype, pin_memory=True).copy_(plain)
        return pinned.to(self.device, non_blocking=True)


class PackedGpuRuntime(GpuRuntime):
    """The same for BERT's own kind, without padding."""

    def __init__(self, model: Any, shape: EncoderSettings, device: str) -> None:
        super().__init__(model, shape, device)
        self.model = PackedBert(self.model)

    def _embed(self, batch: Batch) -> torch.Tensor:
        packed, lengths = self._sent(batch.packed), self._sent(batch.lengths)
        hidden = self.model(packed, lengths, int(batch.lengths.max()))  # (tokens, dimension)
        if self.shape.pooling == "cls":
            return self._finished(hidden[lengths.cumsum(0) - lengths].float())
        return self._finished(torch.segment_reduce(hidden.float(), "mean", lengths=lengths, unsafe=True))


def _arrived(rows: np.ndarray, embeddings: torch.Tensor, there: Any) -> tuple[np.ndarray, np.ndarray]:
    there.synchronize()
    return rows, embeddings.numpy()
