"""What scores the chunks of a job: this process, or others (strays.engines)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from strays.jobs.score.chunks import Remaining, ScoredChunk, WrittenChunk
from strays.jobs.score.plan import Plan
from strays.jobs.score.progress import RowProgress
from strays.jobs.score.rows import Scorer


class Engine(Protocol):
    """Scores what is left of some files."""

    @property
    def pipes(self) -> bool:
        """Whether a job of this engine may read stdin and write stdout."""

    def ready(self) -> AbstractContextManager[object]:
        """Start what it works with, or raise; a new job waits for this before it writes anything."""

    def run(
        self, model: Scorer, plan: Plan, left: Iterable[Remaining], progress: RowProgress
    ) -> Iterator[ScoredChunk | WrittenChunk]:
        """Every chunk that is left, done as planned, in order; the caller records each before it asks for the next."""
