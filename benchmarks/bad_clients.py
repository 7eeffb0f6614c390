"""Clients that no server likes: they leave, stay silent, read slowly or send no HTTP; and what any client saw."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SILENT = 150  # silent connections at a time
HEAD = b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 22\r\n\r\n"


@dataclass
class Seen:
    """What the clients of one process saw, and how it was."""

    statuses: dict[str, Counter[str]] = field(default_factory=dict)
    memory_mb: list[float] = field(default_factory=list)
    slowest: float = 0.0
    facts: Counter[str] = field(default_factory=Counter)

    def note(self, kind: str, status: int | str) -> None:
        """Count how a request ended."""
        self.statuses.setdefault(kind, Counter())[str(status)] += 1

    def summary(self) -> dict[str, Any]:
        """As plain data."""
        third = max(1, len(self.memory_mb) // 3)
        parts = {
            "first": self.memory_mb[:third],
            "middle": self.memory_mb[third:-third],
            "last": self.memory_mb[-third:],
        }
        return {
            "requests": sum(sum(counts.values()) for counts in self.statuses.values()),
            "server_errors": sum(n for counts in self.statuses.values() for s, n in counts.items() if s[:1] == "5"),
            "statuses": {kind: dict(sorted(counts.items())) for kind, counts in sorted(self.statuses.items())},
            "slowest_probe_seconds": round(self.slowest, 2),
            "memory_mb": {f"{name}_third": round(float(np.median(values or [0])), 1) for name, values in parts.items()}
            | {"peak": round(max(self.memory_mb, default=0), 1), "samples": len(self.memory_mb)},
            **dict(sorted(self.facts.items())),
        }


class BadClients:
    """Clients of any server that leave, stay silent, trickle or send rubbish; `large` is a GET with a long answer."""

    def __init__(self, base: str, large: bytes, seen: Seen) -> None:
        self._port, self._large, self._seen = int(base.rpartition(":")[2]), large, seen
        self._silent: list[asyncio.StreamWriter] = []

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port, limit=4096)

    async def leave(self) -> None:
        """Ask, and go away before the answer, or in the midst of the body."""
        _, writer = await self._connect()
        writer.write(random.choice([HEAD, HEAD + b'{"texts"', HEAD + b'{"texts": ["a clock"]}', HEAD[:30]]))
        await writer.drain()
        await asyncio.sleep(random.random() / 10)
        writer.transport.abort()
        self._seen.note("client_left", "gone")

    async def be_silent(self) -> None:
        """Hold connections that say nothing, or half a request; those that were closed are opened again."""
        self._silent = [one for one in self._silent if not one.transport.is_closing()]
        for _ in range(SILENT - len(self._silent)):
            _, writer = await self._connect()
            writer.write(random.choice([b"", b"GET / HT", b"POST /api/verdicts HTTP/1.1\r\nHost: 127.0.0.1\r\n"]))
            self._silent.append(writer)
            self._seen.note("silent", "opened")
        await asyncio.sleep(2)

    async def rubbish(self) -> None:
        """Send what is no HTTP."""
        reader, writer = await self._connect()
        writer.write(random.choice([b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET\r\n\r\n", b"x" * 100_000]))
        with suppress(ConnectionError):
            answer = await reader.read(100)
            self._seen.note("rubbish", answer[9:12].decode() or "closed")
        writer.close()

    async def trickle(self) -> None:
        """Read a long answer slowly, to its end."""
        reader, writer = await self._connect()
        writer.write(self._large)
        answer = b""
        while more := await reader.read(4096):
            answer += more
            await asyncio.sleep(0.02)
        head, _, body = answer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split()[0])
        self._seen.note("slow_reader", answer[9:12].decode() if len(body) == length else "cut short")
        writer.close()
