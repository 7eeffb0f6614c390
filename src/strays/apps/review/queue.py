"""What each client is asked next, so that two people are not asked the same question at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from strays.apps.review.snapshot import Snapshot

LEASE_SECONDS = 120.0
# A client's questions that no refit changes: the one it shows, and the one it shows before our answer reaches it.
KEPT_AHEAD = 2


@dataclass(frozen=True)
class _Lease:
    asked: dict[int, str | None]
    until: float


class ClientQueues:
    """The questions that each client (a tab of a browser) was given last, as places in the corpus -> why.

    Who looks at what is known to this process only, and nothing depends on it but what is asked next: it is no part
    of a snapshot, and has a lock of its own.

    >>> queues = ClientQueues()
    >>> queues.put_first("tab", 3, "odd")
    >>> queues.asked("tab"), queues.asked("another tab")
    ({3: 'odd'}, {})
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._leases: dict[str, _Lease] = {}

    def asked(self, client: str) -> dict[int, str | None]:
        """What a client was given last, and why each."""
        found = self._leases.get(client)
        return dict(found.asked) if found else {}

    def put_first(self, client: str, place: int, why: str | None) -> None:
        """Let a client go back to a text."""
        with self._lock:
            self._give(client, {place: why} | self.asked(client))

    def next(self, now: Snapshot, client: str, n: int) -> dict[int, str | None]:
        """The next n questions for a client. Its first ones stay as they were, whatever was learnt meanwhile."""
        with self._lock:
            found = self._choose(now, client, n)
            self._give(client, found)
            return found

    def _give(self, client: str, asked: dict[int, str | None]) -> None:
        """Note what a client is given now; the first of it is nobody else's for two minutes."""
        now = self._clock()
        kept = {name: lease for name, lease in self._leases.items() if lease.until > now}
        self._leases = kept | {client: _Lease(asked, now + LEASE_SECONDS)}

    def _of_others(self, client: str) -> set[int]:
        """Places that other clients are looking at; not all they were given, since a tab may have been closed."""
        now = self._clock()
        return {
            place
            for name, lease in self._leases.items()
            if name != client and lease.until > now
            for place in islice(lease.asked, KEPT_AHEAD)
        }

    def _choose(self, now: Snapshot, client: str, n: int) -> dict[int, str | None]:
        generation, is_open, taken = now.generation, now.verdicts.is_open, self._of_others(client)
        found: dict[int, str | None] = {}

        def add(places: Iterable[tuple[int, str | None]], most: int) -> None:
            for place, why in places:
                if len(found) >= most:
                    return
                if is_open[place] and place not in taken:
                    found.setdefault(place, why)

        add(self.asked(client).items(), min(n, KEPT_AHEAD))
        add(((question.place, question.why) for question in generation.questions), n)
        if len(found) < n:
            rest = generation.order[is_open[generation.order]][: n + len(taken) + len(found)]
            add(((int(place), "odd") for place in rest), n)
        if len(found) < n:
            skipped = (place for place in now.verdicts.skipped_first if place not in taken)
            found |= dict.fromkeys(islice(skipped, n - len(found)))
        return found
