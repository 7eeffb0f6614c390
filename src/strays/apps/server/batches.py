"""Batches: calls that arrive together are scored together.

The texts of all waiting calls go to the model in rounds of a few thousand tokens, which the encoder cuts into batches
of texts of similar length. Nothing waits for a round to fill: the next one begins as soon as it may, with what is
there. Calls take turns, a slice each, so that a large one does not hold up small ones. All models share the threads.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strays.apps.server.limits import Limits
from strays.apps.web.busy import BusyError
from strays.encoders.runtimes.base import usable_cores
from strays.model import TextOutlierDetector

# Rounds under way at once: while one's texts are prepared, or its scores go out, another keeps the cores busy.
ROUNDS_AT_ONCE = 2
TOKENS_PER_ROUND, TOKENS_PER_CORE = 4096, 1024
# How many texts of a call go into a round before it is the next call's turn.
SLICE = 64
# A token has about this many characters, and an encoder reads about this many tokens of a text.
CHARACTERS, MOST_TOKENS = 4, 256
# The tokenizer reads this many characters in the time that the encoder takes for one token.
CUT_LIKE_ONE = 400


def cost(text: str) -> int:
    """About how much work a text is, in tokens: those the encoder reads, and tokenizing all of it."""
    return max(min(len(text) // CHARACTERS + 3, MOST_TOKENS), len(text) // CUT_LIKE_ONE)


@dataclass(eq=False)
class Call:
    """The texts of one call, their scores as far as known, and the future that its sender awaits."""

    texts: list[str]
    scores: np.ndarray
    finished: asyncio.Future[np.ndarray]
    taken: int = 0
    known: int = 0

    def settle(self, part: slice, scores: np.ndarray) -> None:
        """Fill in some of the scores."""
        self.scores[part] = scores
        self.known += part.stop - part.start
        if self.known == len(self.texts) and not self.finished.done():
            self.finished.set_result(self.scores)


Round = list[tuple[Call, slice]]


@dataclass(eq=False)
class Batches:
    """The waiting calls of one model; `places` limits the rounds under way, of all models together."""

    score_texts: Callable[[list[str]], np.ndarray]
    places: asyncio.Semaphore
    executor: Executor
    most_waiting: int
    tokens_per_round: int = TOKENS_PER_ROUND
    on_round: Callable[[int, float], None] = lambda n_texts, seconds: None
    waiting: int = 0
    _calls: deque[Call] = field(default_factory=deque)
    _rounds: set[asyncio.Task[None]] = field(default_factory=set)
    _is_wanted: bool = False

    async def score(self, texts: list[str], gone: asyncio.Future[Any] | None = None) -> np.ndarray:
        """Scores of these texts, in order. The call is cancelled once its sender is `gone`."""
        if self.waiting > self.most_waiting:
            raise BusyError(f"more than {self.most_waiting:,} texts are waiting")
        call = Call(texts, np.empty(len(texts)), asyncio.get_running_loop().create_future())
        if not texts:
            return call.scores
        self.waiting += len(texts)
        self._calls.append(call)
        self._start_rounds()
        if gone is not None:
            gone.add_done_callback(lambda _: call.finished.cancel())
        return await call.finished

    def _start_rounds(self) -> None:
        """Have a round wait for its place if calls wait; it then takes whatever has arrived by that time."""
        if self._calls and not self._is_wanted:
            self._is_wanted = True
            task = asyncio.get_running_loop().create_task(self._round())
            self._rounds.add(task)
            task.add_done_callback(self._rounds.discard)

    async def _round(self) -> None:
        async with self.places:
            self._is_wanted = False
            taken = self._take()
            self._start_rounds()
            if taken:
                await self._run(taken)

    def _take(self) -> Round:
        """Slices of the waiting calls, in turns, until the round is full."""
        taken: Round = []
        tokens = 0
        while self._calls and tokens < self.tokens_per_round:
            call = self._calls.popleft()
            if call.finished.done():  # its sender left, or a slice of it failed
                self.waiting -= len(call.texts) - call.taken
                continue
            start = stop = call.taken
            while stop < min(start + SLICE, len(call.texts)) and tokens < self.tokens_per_round:
                tokens += cost(call.texts[stop])
                stop += 1
            call.taken = stop
            self.waiting -= stop - start
            taken.append((call, slice(start, stop)))
            if stop < len(call.texts):
                self._calls.append(call)
        return taken

    async def _run(self, taken: Round) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        texts = [text for call, part in taken for text in call.texts[part]]
        try:
            scores = await loop.run_in_executor(self.executor, self.score_texts, texts)
        except Exception as error:
            if len(taken) > 1:  # whose text was it? the others still get their scores
                for one in taken:
                    await self._run([one])
            elif not (finished := taken[0][0].finished).done():
                finished.set_exception(error)
            return
        for call, part in taken:
            n = part.stop - part.start
            call.settle(part, scores[:n])
            scores = scores[n:]
        self.on_round(len(texts), loop.time() - began)

    async def drained(self) -> None:
        """Wait until nothing is under way."""
        while self._rounds:
            await asyncio.wait(list(self._rounds))


def share_cores() -> None:
    """Let PyTorch, where it runs an encoder, use as many cores as there are for each round.

    Small rounds get slower with more threads: they wait for each other, busily. Models have scored once by now.
    """
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(max(1, usable_cores() // ROUNDS_AT_ONCE))


class ScoringThreads:
    """The threads in which models score and explain. Explanations take turns, so that scores never wait for many."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._executor = ThreadPoolExecutor(ROUNDS_AT_ONCE, "scoring", share_cores)
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
