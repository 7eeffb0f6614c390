"""The server's limits: how much it takes before it refuses. docs/operations.md explains each."""

from __future__ import annotations

from dataclasses import dataclass

from strays.errors import UsageError


@dataclass(frozen=True)
class Limits:
    """Limits of one server; in brackets, the status of what exceeds them.

    >>> Limits(texts=10).texts
    10

    body_bytes        largest body of a call (413)
    texts             most texts in a call (422)
    characters        longest text of a call (422)
    explained         most texts in a call with explanations (422): each text is encoded some 65 times
    explained_characters  longest text of such a call (422)
    waiting           texts that may wait to be scored; while there are more, calls are refused (429)
    requests          requests under way at once (429)
    connections       open at once; one more closes the one idle for longest
    bodies_bytes      size of the bodies of all calls under way together (429)
    explaining        calls for explanations under way at once (429)
    body_seconds      how long a body may take to arrive (408)
    idle_seconds      how long a connection may be silent, or an answer unread, before it is closed
    shutdown_seconds  how long a stop waits for calls under way (503)
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
                raise UsageError(f"the limit {name} is {value}; must be greater than 0")
