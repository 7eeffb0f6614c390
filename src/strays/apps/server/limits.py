"""The server's limits: how much it takes before it refuses. docs/operations.md explains each."""

from __future__ import annotations

from dataclasses import dataclass

from strays.errors import UsageError


@dataclass(frozen=True)
class Limits:
    """Limits of one server.

    >>> Limits(texts=10).texts
    10
    """

    # In brackets, the status of what exceeds the limit.
    body_bytes: int = 8_000_000  # largest body of a call (413)
    texts: int = 1000  # most texts in a call (422)
    characters: int = 100_000  # longest text of a call (422)
    explained_texts: int = 16  # most texts in a call with explanations (422): each text is encoded some 65 times
    explained_characters: int = 4000  # longest text of such a call (422)
    waiting: int = 1000  # texts that may wait to be scored; while there are more, calls are refused (429)
    requests: int = 800  # requests under way at once (429)
    connections: int = 900  # open at once; one more closes the one idle for longest
    bodies_bytes: int = 128_000_000  # size of the bodies of all calls under way together (429)
    explaining: int = 16  # calls for explanations under way at once (429)
    body_seconds: float = 30.0  # how long a body may take to arrive (408)
    idle_seconds: float = 30.0  # how long a connection may be silent, or an answer unread, before it is closed
    shutdown_seconds: float = 6.0  # how long a stop waits for calls under way (503); the process ends 3 s later

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise UsageError(f"the limit {name} is {value}; must be greater than 0")
