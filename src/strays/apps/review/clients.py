"""Who is looking at which texts, so that two people are not asked the same question at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

LEASE_SECONDS = 120.0
# A client's questions that no refit changes: the one it shows, and the one it shows before our answer reaches it.
KEPT_AHEAD = 2


@dataclass
class _Client:
    asked: dict[int, str | None]
    until: float


class Clients:
    """The questions that each client (a tab of a browser) was given last, as places in the corpus -> why."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._clients: dict[str, _Client] = {}

    def asked(self, client: str) -> dict[int, str | None]:
        """What a client was given last, and why each."""
        found = self._clients.get(client)
        return dict(found.asked) if found else {}

    def give(self, client: str, asked: dict[int, str | None]) -> None:
        """Note what a client is given now; the first of it is nobody else's for two minutes."""
        now = self._clock()
        self._clients = {name: c for name, c in self._clients.items() if c.until > now or name == client}
        self._clients[client] = _Client(asked, now + LEASE_SECONDS)

    def put_first(self, client: str, place: int, why: str | None) -> None:
        """Let a client go back to a text."""
        self.give(client, {place: why} | self.asked(client))

    def of_others(self, client: str) -> set[int]:
        """Places that other clients are looking at; not all they were given, since a tab may have been closed."""
        now = self._clock()
        return {
            place
            for name, other in self._clients.items()
            if name != client and other.until > now
            for place in islice(other.asked, KEPT_AHEAD)
        }
