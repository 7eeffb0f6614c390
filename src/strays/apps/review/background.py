"""Work beside the page: threads that let a person's click come first, and their failures in words."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from strays.errors import StraysError, first_line

# Added to a background thread's niceness.
NICENESS = 5


def start_thread(work: Callable[[], None], name: str) -> threading.Thread:
    """Do some work in a thread of low priority, which ends with the process."""

    def run() -> None:
        lower_priority()
        work()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


def lower_priority() -> None:
    """Give the calling thread, and those it starts, less of the processor where others want it."""
    if sys.platform == "linux":  # elsewhere niceness is the whole process's
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def in_words(error: Exception) -> str:
    """What went wrong, for the page."""
    return str(error) if isinstance(error, StraysError) else f"{type(error).__name__}: {first_line(error)}"
