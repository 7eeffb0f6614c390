"""Who does the chunks of a job: this process, or others that it asks (strays.engines.ray)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from strays.jobs.score.manifest import Part
from strays.jobs.score.steps import Rest, Scored, Steps

if TYPE_CHECKING:
    from strays.jobs.score.job import Job


class Engine(Protocol):
    """Does what is left of a job and hands the chunks back in order; the caller notes each before it asks for more."""

    def ready(self) -> AbstractContextManager[object]:
        """Have at hand what it works with, or raise; a job that begins anew does so before it writes anything."""

    def run(self, job: Job, steps: Steps, left: Callable[[], Iterable[Rest]]) -> Iterator[Scored | Part]:
        """What came of every chunk that is left; asked again later, `left` leaves out what was noted meanwhile."""


class LocalEngine:
    """Does it in this process, chunk by chunk."""

    def ready(self) -> AbstractContextManager[object]:
        """Needs nothing."""
        return nullcontext()

    def run(self, job: Job, steps: Steps, left: Callable[[], Iterable[Rest]]) -> Iterator[Scored | Part]:
        """What came of every chunk that is left."""
        for work in job.works(left(), steps):
            job.progress.take(len(work.chunk.rows))
            result = steps.finish(job.model, work, job.progress.within)
            job.progress.finish()
            yield result
