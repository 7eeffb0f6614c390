"""Scoring in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext

from strays.jobs.score import Plan, Remaining, RowProgress, ScoredChunk, Scorer, WrittenChunk


class LocalEngine:
    """Scores one chunk after the other in this process: `score_files(..., engine=LocalEngine())`."""

    pipes = True

    def ready(self) -> AbstractContextManager[object]:
        """Nothing to start."""
        return nullcontext()

    def run(
        self, model: Scorer, plan: Plan, left: Iterable[Remaining], progress: RowProgress
    ) -> Iterator[ScoredChunk | WrittenChunk]:
        """Every chunk that is left, done as planned, in order."""
        for task in plan.tasks(left):
            progress.take(len(task.chunk.rows))
            done = plan.finish(model, task, progress.within)
            progress.finish()
            yield done
