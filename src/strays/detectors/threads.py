"""How many threads a fit has.

NumPy and PyTorch have pools of threads of their own, which wait for more work busily, each on cores that the other
could use. Where matrices are small and many, more threads make a fit slower: of 300 rows ten times on two idle cores.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

# From about as many rows on, PyTorch's matrices are worth its threads.
FEW = 1000
_LIMITED = threading.Lock()


@contextmanager
def few_threads(n_rows: int) -> Iterator[None]:
    """One thread for NumPy's products, and one for PyTorch's where rows are few; then as many as before."""
    if not _LIMITED.acquire(blocking=False):  # another fit has seen to it, and is the one to undo it
        yield
        return
    import torch

    with ExitStack() as stack:
        stack.callback(_LIMITED.release)
        stack.enter_context(_pools().limit(limits=1, user_api="blas"))
        if n_rows <= FEW:
            stack.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
        yield


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes milliseconds
