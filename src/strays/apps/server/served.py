"""A model that is being served, and the threads that all served models share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

from strays.apps.server.batches import TOKENS_PER_CORE, TOKENS_PER_ROUND, Batches
from strays.apps.server.limits import Limits
from strays.apps.web.busy import BusyError
from strays.encoders.runtimes.base import usable_cores
from strays.model import TextOutlierDetector

# Rounds under way at once: while one's texts are prepared, or its scores go out, another keeps the cores busy.
ROUNDS_AT_ONCE = 2


class ScoringThreads:
    """The threads in which models score and explain. Explanations take turns, so that scores never wait for many."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._executor = ThreadPoolExecutor(ROUNDS_AT_ONCE, "scoring")
        # Small rounds get slower with more threads: they wait for each other, busily.
        torch.set_num_threads(max(1, usable_cores() // ROUNDS_AT_ONCE))
        self._places = asyncio.Semaphore(ROUNDS_AT_ONCE)
        self._explaining, self._n_explaining = asyncio.Lock(), 0

    def batches(self, model: TextOutlierDetector, on_round: Callable[[int, float], None]) -> Batches:
        """A queue of calls for a model."""
        tokens = max(TOKENS_PER_ROUND, TOKENS_PER_CORE * usable_cores())
        return Batches(model.anomaly_score, self._places, self._executor, self._limits.waiting, tokens, on_round)

    async def explain(self, model: TextOutlierDetector, texts: list[str], gone: asyncio.Future[Any]) -> list[Any]:
        """Explanations of texts, as plain data; cancelled if the client is `gone`."""
        if self._n_explaining >= self._limits.explaining:
            raise BusyError(f"{self._n_explaining} calls for explanations are under way")
        self._n_explaining += 1
        try:
            async with self._explaining, self._places:
                if gone.done():
                    raise asyncio.CancelledError
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self._executor, model.explain_many, texts)
                return [explanation.to_dict() for explanation in found]
        finally:
            self._n_explaining -= 1

    def close(self) -> None:
        """Drop what has not begun: nobody waits for it."""
        self._executor.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A loaded model and the calls that wait for it; `stamp` tells what its folder looked like."""

    name: str
    model: TextOutlierDetector
    info: dict[str, Any]
    stamp: object
    batches: Batches
    loaded_at: float

    @property
    def version(self) -> str:
        """A hash that changes whenever a score could."""
        return str(self.info["version"])
