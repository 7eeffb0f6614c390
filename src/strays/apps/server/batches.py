"""Calls that come together are scored together.

The texts of all waiting calls go to the model in rounds of some thousand tokens, which the encoder cuts into its
batches of texts of like length, whoever they came from. Nothing waits for a round to fill: the next one begins when a
place for it is free, with what is there. Calls take turns, a slice each, so that a large one does not hold up small
ones.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field

import numpy as np

# Scores of texts, one each.
Score = Callable[[list[str]], np.ndarray]

TOKENS_PER_ROUND, TOKENS_PER_CORE = 4096, 1024
# What a call gets into a round before it is the next one's turn.
SLICE = 64
# A token is about this many characters, and an encoder reads about this many tokens of a text.
CHARACTERS, MOST_TOKENS = 4, 256
# So many characters are cut into tokens in the time that the encoder takes for one.
CUT_LIKE_ONE = 400


def cost(text: str) -> int:
    """About how many tokens' work a text is: those that are read, and cutting all of it into tokens."""
    return max(min(len(text) // CHARACTERS + 3, MOST_TOKENS), len(text) // CUT_LIKE_ONE)


class BusyError(Exception):
    """More is waiting than may."""


@dataclass(eq=False)
class Call:
    """Texts that belong together, their scores as far as known, and who waits for them."""

    texts: list[str]
    scores: np.ndarray
    finished: asyncio.Future[np.ndarray]
    taken: int = 0
    known: int = 0

    def settle(self, part: slice, scores: np.ndarray) -> None:
        """Some of the scores are known."""
        self.scores[part] = scores
        self.known += part.stop - part.start
        if self.known == len(self.texts) and not self.finished.done():
            self.finished.set_result(self.scores)

    def fail(self, error: Exception) -> None:
        """Nobody will get these scores."""
        if not self.finished.done():
            self.finished.set_exception(error)


Round = list[tuple[Call, slice]]


@dataclass(eq=False)
class Batches:
    """The waiting calls of one model; `places` says how many rounds may be under way on this machine."""

    score_texts: Score
    places: asyncio.Semaphore
    executor: Executor
    most_waiting: int
    tokens_per_round: int = TOKENS_PER_ROUND
    on_round: Callable[[int, float], None] = lambda n_texts, seconds: None
    waiting: int = 0
    _calls: deque[Call] = field(default_factory=deque)
    _rounds: set[asyncio.Task[None]] = field(default_factory=set)
    _wanted: int = 0

    async def score(self, texts: list[str], gone: Awaitable[object] | None = None) -> np.ndarray:
        """Scores of these texts, in their order; a call whose sender is `gone` is dropped."""
        if self.waiting > self.most_waiting:
            raise BusyError(f"more than {self.most_waiting:,} texts are waiting")
        loop = asyncio.get_running_loop()
        call = Call(texts, np.empty(len(texts)), loop.create_future())
        if not texts:
            return call.scores
        self.waiting += len(texts)
        self._calls.append(call)
        self._start_rounds()
        if isinstance(gone, asyncio.Future):
            gone.add_done_callback(lambda _: call.finished.cancel())
        return await call.finished

    def _start_rounds(self) -> None:
        """See to it that somebody takes what waits: a round that waits for its place takes what there is by then."""
        if self._calls and not self._wanted:
            self._wanted += 1
            task = asyncio.get_running_loop().create_task(self._round())
            self._rounds.add(task)
            task.add_done_callback(self._rounds.discard)

    async def _round(self) -> None:
        async with self.places:
            self._wanted -= 1
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
            if call.finished.done():  # its sender is gone, or a part of it failed
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
            if len(taken) == 1:
                taken[0][0].fail(error)
            for one in taken if len(taken) > 1 else ():  # whose texts were it? the others shall have their scores
                await self._run([one])
            return
        at = 0
        for call, part in taken:
            n = part.stop - part.start
            call.settle(part, scores[at : at + n])
            at += n
        self.on_round(len(texts), loop.time() - began)

    async def drained(self) -> None:
        """Wait until nothing is under way."""
        while self._rounds:
            await asyncio.wait(list(self._rounds))
