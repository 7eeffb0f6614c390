from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.score.standin import StandIn, Stop, rows, run, stopping, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files of 25, 13 and 30 rows, one of them in a folder of its own; and some that are no input."""
    source = tmp_path / "in"
    write(source / "a.parquet", rows(25, "a"))
    write(source / "b.csv", rows(13, "b"))
    write(source / "deep" / "c.jsonl", rows(30, "c"))
    (source / "_SUCCESS").touch()
    (source / ".hidden.csv").write_text("text\nno\n")
    (source / "readme.md").write_text("no")
    (source / "empty.csv").write_text("id,text\n")
    return source


@pytest.fixture
def stopped(folder: Path, tmp_path: Path) -> str:
    """A folder of parts, of which six of eight were written."""
    with pytest.raises(Stop):
        run(folder, f"{tmp_path}/out/", stopping(StandIn(), 6))
    return f"{tmp_path}/out/"
