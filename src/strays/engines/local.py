"""Scoring in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext

from strays.jobs.score import DoneChunk, Plan, Remaining, RowProgress, Scorer


class LocalEngine:
    r"""Scores one chunk after the other in this process.

    >>> import numpy as np
    >>> from pathlib import Path
    >>> from strays import TextOutlierDetector
    >>> from strays.jobs.score import score_files
    >>> class Letters:
    ...     def encode(self, texts):
    ...         return np.array([[text.count(c) for c in "abcde"] for text in texts], dtype=np.float32)
    >>> texts = [f"{a}{b}{c}" for a in "abc" for b in "abc" for c in "abc"]
    >>> model = TextOutlierDetector(Letters(), "centroid").fit(texts)
    >>> _ = Path("texts.csv").write_text("text\nabc\neee\n")
    >>> summary = score_files(model, "texts.csv", "scored.csv", engine=LocalEngine())
    >>> summary.n_rows, summary.n_flagged
    (2, 1)
    >>> Path("scored.csv").read_text().splitlines()[0]
    'text,anomaly_score,p_value,flagged'
    """

    pipes = True

    def ready(self) -> AbstractContextManager[object]:
        """Nothing to start."""
        return nullcontext()

    def run(self, model: Scorer, plan: Plan, left: Iterable[Remaining], progress: RowProgress) -> Iterator[DoneChunk]:
        """Every chunk that is left, done as planned, in order."""
        for task in plan.tasks(left):
            progress.take(len(task.chunk.rows))
            done = plan.finish(model, task, progress.within)
            progress.finish()
            yield done
