from __future__ import annotations

from pathlib import Path

import pytest

from strays.errors import DataError
from strays.studies.rows import RowFile


def test_rows_come_back_in_order(tmp_path: Path) -> None:
    file = RowFile(tmp_path / "deep" / "rows.jsonl")
    assert file.read() == []
    for i in range(3):
        file.append({"seed": i, "map": 0.5, "label": "é"})
    assert file.read() == [{"seed": i, "map": 0.5, "label": "é"} for i in range(3)]


def test_a_torn_last_line_is_no_row_and_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"seed": 0}\n{"seed": 1, "ma')
    file = RowFile(path)
    assert file.read() == [{"seed": 0}]
    file.append({"seed": 2})
    assert file.read() == [{"seed": 0}, {"seed": 2}]
    assert path.read_bytes() == b'{"seed": 0}\n{"seed": 2}\n'


def test_a_file_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("hello\n")
    with pytest.raises(DataError, match="not JSON"):
        RowFile(path).read()
