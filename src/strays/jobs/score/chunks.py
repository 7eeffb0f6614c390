"""Chunks of rows on their way through a job, as plain data: what is left of a file, one chunk to do, one that is done.

Remaining -> Task -> ScoredChunk or WrittenChunk
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from strays.errors import DataError
from strays.model.scores import RawScores
from strays.tables import Chunk, InputFile

# What tells a chunk from others: the name of its file, and its first row.
Key = tuple[str, int]


@dataclass(frozen=True)
class DoneChunk:
    """A chunk that is done: rows of a file that had this size and time of change when they were read."""

    file: str
    size: int
    mtime_ns: int
    first_row: int
    rows: int
    last: bool
    digest: str
    without_text: int

    @property
    def key(self) -> Key:
        """What tells this chunk from others."""
        return self.file, self.first_row

    def facts(self) -> dict[str, Any]:
        """The fields that every chunk done has."""
        return {field.name: getattr(self, field.name) for field in fields(DoneChunk)}


@dataclass(frozen=True)
class ScoredChunk(DoneChunk):
    """A chunk with its scores, NaN where a row has no text; its rows are written later."""

    scores: RawScores


@dataclass(frozen=True)
class WrittenChunk(DoneChunk):
    """A chunk that is written, with its scores, to a file of its own, of this size and digest."""

    out: str
    bytes: int
    sha256: str
    flagged: int
    by_full: int | None = None


@dataclass(frozen=True)
class Remaining:
    """What is left of a file that has this size and time of change: the rows from one on, except chunks done.

    `number` chunks come before `first_row`; `done` has the first rows of later chunks that are done.
    """

    file: InputFile
    state: tuple[int, int]
    first_row: int = 0
    number: int = 0
    done: tuple[int, ...] = ()

    def after(self, chunk: DoneChunk) -> Remaining:
        """What is left when one more chunk is done."""
        if chunk.first_row == self.first_row:
            return replace(self, first_row=self.first_row + chunk.rows, number=self.number + 1)
        return replace(self, done=(*self.done, chunk.first_row))


@dataclass(frozen=True)
class Task:
    """A chunk to do, the `number`-th of its file, which has this size and time of change."""

    file: InputFile
    state: tuple[int, int]
    number: int
    chunk: Chunk

    def facts(self, anomaly_score: np.ndarray) -> dict[str, Any]:
        """The fields that the chunk has when it is done."""
        size, mtime_ns = self.state
        return {
            "file": self.file.name,
            "size": size,
            "mtime_ns": mtime_ns,
            "first_row": self.chunk.first_row,
            "rows": len(self.chunk.rows),
            "last": self.chunk.last,
            "digest": self.chunk.digest(),
            "without_text": int(np.isnan(anomaly_score).sum()),
        }


def require_unchanged(file: InputFile, state: tuple[int, int]) -> None:
    """Raise if a file no longer has the size and time of change that it had when its reading began."""
    if file.state() != state:
        raise _changing(file)


def require_scored(file: InputFile, chunk: Chunk, scored: DoneChunk | None) -> None:
    """Raise if a chunk that is read again, to be written, no longer has the rows that were scored."""
    if scored is None or chunk.digest() != scored.digest:
        raise _changing(file)


def _changing(file: InputFile) -> DataError:
    return DataError(f"{file.path}: changed while it was being read; score it when it no longer changes")
