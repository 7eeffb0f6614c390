from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.score.standin import rows, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of all kinds, one of them in a folder of its own and one without rows."""
    source = tmp_path / "in"
    write(source / "a.parquet", [*rows(24, "a"), {"id": "none", "text": None}])
    write(source / "b.csv", rows(13, "b"))
    write(source / "deep" / "c.jsonl", rows(30, "c"))
    (source / "deep" / "d.tsv").write_text("text\n" + "".join(f"line {i}\n" for i in range(12)))
    (source / "empty.csv").write_text("id,text\n")
    return source
