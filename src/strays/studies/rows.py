"""Results as rows of JSON, one a line, appended as they come: what is finished stays finished."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from strays.errors import DataError
from strays.files import append

Row = dict[str, Any]


class RowFile:
    """A file of rows. A last line that a killed process left unfinished is no row; the next row replaces it.

    >>> file = RowFile(Path("results") / "5.1.jsonl")
    >>> file.append({"method": "lof", "seed": 0, "auc": 0.91})
    >>> file.read()
    [{'method': 'lof', 'seed': 0, 'auc': 0.91}]
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Row]:
        """All whole rows, in the order they were added."""
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")[:-1]
        try:
            return [json.loads(line) for line in lines if line.strip()]
        except ValueError as error:
            raise DataError(f"{self.path} holds a line that is not JSON ({error}); expected rows of results") from error

    def append(self, row: Row) -> None:
        """Add a row; it is on the disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._cut_torn_line()
        append(self.path, json.dumps(row, ensure_ascii=False).encode() + b"\n")

    def _cut_torn_line(self) -> None:
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.path, whole)
