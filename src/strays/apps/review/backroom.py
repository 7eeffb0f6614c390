"""The thread in which the desk's model is fitted again: one, so that no two fits run at once."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress

from strays.apps.review.desk import Desk, in_words

# Added to a background thread's niceness, so that a person's click comes first.
NICENESS = 5


class Backroom:
    """Does the desk's work whenever it is due, until closed."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="strays-refits", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        step_back()
        while True:
            self._desk.due.wait()
            if self._closed.is_set():
                return
            self._desk.due.clear()
            try:
                self._desk.work(self._closed.is_set)
            except Exception as error:  # the thread must live on, or nothing would ever be learnt again
                self._desk.tell(f"the desk's work beside the page has failed: {in_words(error)}")

    def close(self, timeout: float = 10.0) -> None:
        """Let the fit that is running come to its end, and start no other."""
        self._closed.set()
        self._desk.due.set()
        self._thread.join(timeout)


def step_back() -> None:
    """Give the calling thread, and those it starts, less of the processor where others want it."""
    if sys.platform == "linux":  # elsewhere niceness is the whole process's
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
