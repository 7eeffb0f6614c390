"""How much the server takes before it says no. Every limit is a number here, and is explained in docs/operations.md."""

from __future__ import annotations

from dataclasses import dataclass

from strays.errors import UsageError


@dataclass(frozen=True)
class Limits:
    """Limits of one server.

    body_bytes        largest body of a call (413)
    texts             most texts in a call (422)
    characters        longest text of a call (422)
    explained         most texts in a call that asks for explanations (422), which reads each text some 65 times over
    explained_characters  longest text of such a call (422)
    waiting           texts that may wait; a call that comes while more do is refused (429)
    requests          requests under way at once (429)
    connections       open at once; one more ends the one that has been idle for longest
    bodies_bytes      what the bodies of all calls under way may hold together (429)
    explaining        calls for explanations under way at once (429)
    body_seconds      how long a body may take to arrive (408)
    idle_seconds      how long a connection may be silent, or an answer unread, before it is closed
    shutdown_seconds  how long a stop waits for what was taken
    """

    body_bytes: int = 8_000_000
    texts: int = 1000
    characters: int = 100_000
    explained: int = 16
    explained_characters: int = 4000
    waiting: int = 1000
    requests: int = 800
    connections: int = 900
    bodies_bytes: int = 128_000_000
    explaining: int = 16
    body_seconds: float = 30.0
    idle_seconds: float = 30.0
    shutdown_seconds: float = 30.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise UsageError(f"the limit {name} is {value}; expected more than 0")
