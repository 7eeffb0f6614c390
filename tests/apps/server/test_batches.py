"""Calls that are scored together: everyone gets their own scores, whatever the others do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strays.apps.server.batches import SLICE, TOKENS_PER_ROUND, Batches
from strays.apps.web.busy import BusyError
from tests.apps.asgi import run as run_apart


def score(texts: list[str]) -> np.ndarray:
    """What cannot be taken for another text's: its number."""
    return np.array([float(text) for text in texts])


def run(
    work: Callable[[Batches], Coroutine[Any, Any, Any]],
    score_texts: Callable[[list[str]], np.ndarray] = score,
    *,
    places: int = 2,
    most_waiting: int = 10**6,
) -> Any:
    async def main() -> Any:
        with ThreadPoolExecutor(places) as executor:
            return await work(Batches(score_texts, asyncio.Semaphore(places), executor, most_waiting))

    return run_apart(main())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3 * SLICE), max_size=25), st.integers(1, 3))
def test_every_call_gets_its_own_scores(sizes: list[int], places: int) -> None:
    ends = np.cumsum([0, *sizes])
    calls = [[str(n) for n in range(a, b)] for a, b in pairwise(ends)]

    async def work(batches: Batches) -> list[np.ndarray]:
        found = await asyncio.gather(*(batches.score(call) for call in calls))
        assert batches.waiting == 0
        await batches.drained()
        return found

    for call, found in zip(calls, run(work, places=places), strict=True):
        assert found.tolist() == score(call).tolist()


def test_calls_that_wait_share_a_round() -> None:
    sizes: list[int] = []

    def noting(texts: list[str]) -> np.ndarray:
        sizes.append(len(texts))
        return score(texts)

    async def work(batches: Batches) -> None:
        await asyncio.gather(*(batches.score([str(n)]) for n in range(30)))

    run(work, noting, places=1)
    assert sum(sizes) == 30
    assert max(sizes) >= 29  # all that came while the first round ran, or waited


def test_a_round_has_about_its_tokens() -> None:
    sizes: list[int] = []

    def noting(texts: list[str]) -> np.ndarray:
        sizes.append(sum(min(len(text) // 4 + 3, 256) for text in texts))
        return score(texts)

    async def work(batches: Batches) -> None:
        await asyncio.gather(*(batches.score(["7".rjust(n, "0")] * 40) for n in (4, 40, 400, 4000)))

    run(work, noting)
    assert max(sizes) < TOKENS_PER_ROUND + 256
    assert len(sizes) > 2


def test_a_small_call_does_not_wait_for_all_of_a_large_one() -> None:
    done: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def slow(texts: list[str]) -> np.ndarray:
        begun.set()
        go_on.wait(20)
        return score(texts)

    async def work(batches: Batches) -> None:
        async def one(name: str, n: int) -> None:
            await batches.score(["1".rjust(1000, "0")] * n)
            done.append(name)

        large = asyncio.create_task(one("large", 500))
        await asyncio.to_thread(begun.wait, 20)
        small = asyncio.create_task(one("small", 1))
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(large, small)

    run(work, slow, places=1)
    assert done == ["small", "large"]


def test_one_bad_text_spoils_only_its_own_call() -> None:
    def picky(texts: list[str]) -> np.ndarray:
        if "666" in texts:
            raise ValueError("no")
        return score(texts)

    async def work(batches: Batches) -> list[Any]:
        calls = [["1"], ["2", "3"], ["666", "4"], ["5"]]
        found = await asyncio.gather(*map(batches.score, calls), return_exceptions=True)
        again = await batches.score(["6"])
        return [*found, again]

    first, second, third, fourth, again = run(work, picky, places=1)
    assert isinstance(third, ValueError)
    assert [x.tolist() for x in (first, second, fourth, again)] == [[1.0], [2.0, 3.0], [5.0], [6.0]]


def test_more_than_may_wait_is_refused_until_there_is_room() -> None:
    go_on = threading.Event()

    def slow(texts: list[str]) -> np.ndarray:
        go_on.wait(20)
        return score(texts)

    async def work(batches: Batches) -> None:
        first = asyncio.create_task(batches.score(["1"]))
        await asyncio.sleep(0.05)  # it has its place
        second = asyncio.create_task(batches.score(["2"] * 11))  # taken whole, as nothing else waits
        await asyncio.sleep(0)
        assert batches.waiting == 11
        with pytest.raises(BusyError):
            await batches.score(["3"])
        go_on.set()
        await asyncio.gather(first, second)
        assert (await batches.score(["3"])).tolist() == [3.0]

    run(work, slow, places=1, most_waiting=10)


def test_texts_of_a_client_that_is_gone_are_not_scored() -> None:
    go_on, seen = threading.Event(), []

    def slow(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        go_on.wait(20)
        return score(texts)

    async def work(batches: Batches) -> None:
        first = asyncio.create_task(batches.score(["1"]))
        await asyncio.sleep(0.05)
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        second = asyncio.create_task(batches.score(["2"], gone))
        third = asyncio.create_task(batches.score(["3"]))
        await asyncio.sleep(0)
        gone.set_result(None)
        with pytest.raises(asyncio.CancelledError):
            await second
        go_on.set()
        assert (await first).tolist() == [1.0]
        assert (await third).tolist() == [3.0]
        assert batches.waiting == 0

    run(work, slow, places=1)
    assert sorted(seen) == ["1", "3"]
