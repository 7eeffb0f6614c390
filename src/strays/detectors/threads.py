"""How many threads a fit has, and blocks of rows scored in threads.

The library that NumPy multiplies with has a pool of threads, which wait for more work busily, on cores that others
could use. Where matrices are small and many, more threads make a fit slower: `python -m benchmarks.fit_threads`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from queue import SimpleQueue
from typing import Any, Self

import numpy as np
from threadpoolctl import ThreadpoolController

Each = Callable[[Callable[[Any], None], Sequence[Any]], None]

# From about as many rows on, the matrices of a fit are worth more threads.
FEW = 2000
# More threads than this would take much memory for little.
MOST_THREADS = 16
# Fewer blocks than this are done before threads have begun.
FEW_BLOCKS = 8


def in_blocks(score: Callable[[np.ndarray], np.ndarray], X: np.ndarray, at_once: int) -> np.ndarray:
    """What `score` makes of the rows X, so many at once, in as many threads as NumPy multiplies with.

    >>> in_blocks(lambda block: block.sum(axis=1), np.eye(5), at_once=2)
    array([1., 1., 1., 1., 1.])
    """
    blocks = [X[start : start + at_once] for start in range(0, len(X), at_once)]
    n_threads = min(len(blocks), _NUMPY.threads(), MOST_THREADS)
    if n_threads <= 1 or len(blocks) < FEW_BLOCKS:
        return np.concatenate([score(block) for block in blocks])
    # Each thread multiplies on its own: what is between the products would otherwise have one thread.
    with one_thread(), ThreadPoolExecutor(n_threads) as pool:
        return np.concatenate(list(pool.map(score, blocks)))


def in_turn(do: Callable[[Any], None], pieces: Sequence[Any]) -> None:
    """do(piece) for each piece of some work."""
    for piece in pieces:
        do(piece)


@contextmanager
def workers() -> Iterator[Each]:
    """Like `in_turn`, but in as many threads as NumPy multiplies with, while each product has one.

    The threads of NumPy's products wait busily for one another, many times as long where other processes work.
    """
    n = min(_NUMPY.threads(), MOST_THREADS)
    if n == 1:
        yield in_turn
        return
    with one_thread(), _Team(n - 1) as team:
        yield team.each


class _Team:
    """Threads that wait for pieces of work. Handing one over takes a tenth of what ThreadPoolExecutor takes."""

    def __init__(self, n: int) -> None:
        self._given: list[SimpleQueue[tuple[Callable[[Any], None], Sequence[Any]] | None]]
        self._given = [SimpleQueue() for _ in range(n)]
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._work, args=(given,), daemon=True) for given in self._given]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for given, thread in zip(self._given, self._threads, strict=True):
            given.put(None)
            thread.join()

    def each(self, do: Callable[[Any], None], pieces: Sequence[Any]) -> None:
        """do(piece) for each piece; the caller works, too."""
        n = len(self._given) + 1
        others = self._given[: len(pieces) - 1]
        for i, given in enumerate(others, start=1):
            given.put((do, pieces[i::n]))
        try:
            in_turn(do, pieces[::n])
        finally:
            errors = [self._done.get() for _ in others]
        for error in filter(None, errors):
            raise error

    def _work(self, given: SimpleQueue[tuple[Callable[[Any], None], Sequence[Any]] | None]) -> None:
        np.seterr(all="ignore")  # what comes of an overflow is for the caller to notice; of this thread alone
        while (work := given.get()) is not None:
            try:
                in_turn(*work)
            except BaseException as error:
                self._done.put(error)
            else:
                self._done.put(None)


@contextmanager
def few_threads(n_rows: int) -> Iterator[None]:
    """One thread for products and decompositions where rows are few; then as many as before."""
    with one_thread() if n_rows <= FEW else nullcontext():
        yield


def one_thread() -> AbstractContextManager[None]:
    """One thread for products and decompositions; `in_blocks` and `workers` have as many as before."""
    return _NUMPY


class _OneForNumpy(AbstractContextManager[None]):
    """One thread for the libraries that NumPy multiplies with, in the whole process, while anybody wants it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self._limited: Any = None
        self._before = 1

    def threads(self) -> int:
        """How many there are while nobody wants one."""
        with self._lock:
            return self._before if self._wanted else _blas_threads()

    def __enter__(self) -> None:
        with self._lock:
            self._wanted += 1
            if self._wanted == 1:
                self._before = _blas_threads()
                _nobody_controls()
                self._limited = _pools().limit(limits=1, user_api="blas")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._wanted -= 1
            if not self._wanted:
                _nobody_controls()
                self._limited.restore_original_limits()
                _nobody_controls()


def _nobody_controls() -> None:
    """From threadpoolctl 3.8 on, only the thread that set a limit first changes it, and others silently do nothing.

    Here the last fit to end gives the threads back, whichever began.
    """
    for library in _pools().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


_NUMPY = _OneForNumpy()


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes milliseconds


def _blas_threads() -> int:
    return max((library.num_threads for library in _pools().lib_controllers if library.user_api == "blas"), default=1)
