"""How many threads a fit has.

NumPy and PyTorch have pools of threads of their own, which wait for more work busily, each on cores that the other
could use. Where matrices are small and many, more threads make a fit slower: `python -m benchmarks.fit_threads`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

# From about as many rows on, PyTorch's matrices are worth its threads.
FEW = 1000


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

    def __enter__(self) -> None:
        with self._lock:
            self._wanted += 1
            if self._wanted == 1:
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
