"""How far a job is, in rows, also while the encoder is busy with a chunk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

# Opens a progress bar with a title; it takes (done, in all).
OpenProgress = Callable[[str], AbstractContextManager[Callable[[int, int | None], None]]]


def no_bar(title: str) -> AbstractContextManager[Callable[[int, int | None], None]]:
    """Open no bar at all."""
    return nullcontext(lambda done, total=None: None)


@contextmanager
def bars_in_turn(open_bar: OpenProgress) -> Iterator[Callable[[str], Callable[[int, int | None], None]]]:
    """Makes progress functions by title; a bar opens when its function is first called, and closes the one before.

    >>> @contextmanager
    ... def bar(title):
    ...     yield lambda done, total: print(title, done, "of", total)
    ...     print(title, "done")
    >>> with bars_in_turn(bar) as progress:
    ...     encoding, fitting = progress("encoding"), progress("fitting")
    ...     encoding(20, 40)
    ...     fitting(0, 1)
    encoding 20 of 40
    encoding done
    fitting 0 of None
    fitting done
    """
    with ExitStack() as stack:
        shown: dict[str, Callable[[int, int | None], None]] = {}

        def progress(title: str) -> Callable[[int, int | None], None]:
            def show(done: int, total: int | None) -> None:
                if title not in shown:
                    stack.close()
                    shown.clear()
                    shown[title] = stack.enter_context(open_bar(title))
                # A bar of a single step would stand still; without an end it moves.
                shown[title](done, None if total == 1 else total)

            return show

        yield progress


class RowProgress:
    """Counts rows and shows them on a bar; `within` is the `progress` of a model that scores the rows in hand.

    >>> from contextlib import contextmanager
    >>> @contextmanager
    ... def bar(title):
    ...     yield lambda done, total: print(title, done, "of", total)
    >>> progress = RowProgress(bar)
    >>> with progress.bar("scoring", 0, 30):
    ...     progress.take(20)
    ...     progress.within(1, 2)
    ...     progress.finish()
    scoring 0 of 30
    scoring 10 of 30
    scoring 20 of 30
    """

    def __init__(self, open_bar: OpenProgress = no_bar) -> None:
        self._open_bar = open_bar
        self._show: Callable[[int, int | None], None] = lambda done, total: None
        self._done = self._new = self._in_hand = 0
        self._total: int | None = None
        self._seconds = 0.0

    @contextmanager
    def bar(self, title: str, done: int, total: int | None) -> Iterator[None]:
        """Show a bar that starts at rows done already; these do not count for the speed."""
        self._done, self._new, self._in_hand, self._total = done, 0, 0, total
        start = time.perf_counter()
        with self._open_bar(title) as self._show:
            self._show(done, total)
            yield
        self._seconds = time.perf_counter() - start

    def reach(self, done: int) -> None:
        """So many rows are done in all."""
        self._done, self._new, self._in_hand = done, self._new + done - self._done, 0
        self.within(0, 1)

    def take(self, rows: int) -> None:
        """Rows are going to be worked on."""
        self._in_hand = rows

    def within(self, done: int, of: int) -> None:
        """A share of the rows in hand is done."""
        at = self._done + self._in_hand * done // max(of, 1)
        self._show(at, self._total and max(self._total, at))

    def finish(self) -> None:
        """The rows in hand are done."""
        self.reach(self._done + self._in_hand)

    @property
    def rows_per_second(self) -> float | None:
        """Speed on the bar shown last; None where nothing was done."""
        return round(self._new / max(self._seconds, 1e-9), 1) if self._new else None
