"""How far a job is, in rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strays.jobs.score import RowProgress
from tests.jobs.score.standin import run


def test_progress_counts_rows_and_starts_where_it_goes_on(folder: Path, stopped: str) -> None:
    shown: list[tuple[str, int, int | None]] = []

    @contextmanager
    def bar(title: str) -> Iterator[object]:
        yield lambda done, total: shown.append((title, done, total))

    run(folder, stopped, progress=RowProgress(bar))
    assert shown[0][:2] == ("scoring", 48)
    assert shown[-1][1] == 68
    assert [done for _, done, _ in shown] == sorted(done for _, done, _ in shown)


def test_an_encoder_moves_the_bar_within_a_chunk() -> None:
    shown: list[tuple[int, int | None]] = []

    @contextmanager
    def bar(title: str) -> Iterator[object]:
        yield lambda done, total: shown.append((done, total))

    progress = RowProgress(bar)
    with progress.bar("scoring", 100, 150):
        progress.take(40)
        progress.within(5, 10)
        progress.finish()
        progress.take(20)
        progress.finish()
    assert shown == [(100, 150), (120, 150), (140, 150), (160, 160)]
    assert progress.rows_per_second > 0
