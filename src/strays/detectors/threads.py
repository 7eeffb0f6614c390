"""How many threads a fit has, and blocks of rows scored in threads.

NumPy and PyTorch have pools of threads of their own, which wait for more work busily, each on cores that the other
could use. Where matrices are small and many, more threads make a fit slower: `python -m benchmarks.fit_threads`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

# From about as many rows on, PyTorch's matrices are worth its threads.
FEW = 1000
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
    with _NUMPY, ThreadPoolExecutor(n_threads) as pool:
        return np.concatenate(list(pool.map(score, blocks)))


@contextmanager
def few_threads(n_rows: int) -> Iterator[None]:
    """One thread for NumPy's products, and one for PyTorch's where rows are few; then as many as before."""
    import torch

    torch.get_num_threads()  # sets up its own for this thread, which it would do later otherwise, over ours
    with ExitStack() as stack:
        stack.enter_context(_NUMPY)
        if n_rows <= FEW:
            stack.enter_context(_pools().limit(limits=1, user_api="openmp"))  # of this thread alone
        yield


class _OneForNumpy:
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
                self._limited = _pools().limit(limits=1, user_api="blas")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._wanted -= 1
            if not self._wanted:
                self._limited.restore_original_limits()


_NUMPY = _OneForNumpy()


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes milliseconds


def _blas_threads() -> int:
    return max((library.num_threads for library in _pools().lib_controllers if library.user_api == "blas"), default=1)
