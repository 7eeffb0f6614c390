"""Scoring files of any size: chunk by chunk, in constant memory, going on where an earlier run stopped.

Two kinds of output. A folder gets a file for every chunk, each of them final. A single file needs all chunks; until
then their scores are kept in a hidden folder beside it, and the rows are read a second time to write it in one go.
Where flags wait for all scores (Threshold.together), a folder's scores are kept in the same way before its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from strays import __version__
from strays.errors import DataError, NoRowsError
from strays.jobs.score.engine import Engine
from strays.jobs.score.manifest import Done, Key, Manifest
from strays.jobs.score.progress import RowProgress
from strays.jobs.score.rows import Scorer, flag_rows
from strays.jobs.score.steps import Parts, Rest, Steps, Work, open_input
from strays.model import Scores
from strays.tables import Chunk, InputFile, InputFiles, Table, cut


@dataclass
class Job:
    """What is to be scored, and how."""

    model: Scorer
    source: str
    out: str
    inputs: InputFiles
    asked_column: str | None
    out_format: str | None
    part_rows: int
    strict: bool
    safe_cells: bool
    restart: bool
    progress: RowProgress
    engine: Engine
    # Sizes and times of change of the files, as this run found them.
    states: dict[str, tuple[int, int]] = field(default_factory=dict)
    _tables: dict[str, Table] = field(default_factory=dict)

    @cached_property
    def text_column(self) -> str:
        """The column of texts: where none was named, the first file tells which; all files must have it."""
        if self.asked_column is not None:
            return self.asked_column
        for file in self.inputs.files:
            if table := self._open(file):
                return table.text_column()
        raise NoRowsError(f"{self.source}: there are no rows in any of its files; expected at least one")

    def header(self) -> dict[str, Any]:
        """What must not change while a job goes on, as plain data."""
        threshold = self.model.threshold_
        return {
            "strays_version": __version__,
            "model": self.model.fingerprint,
            "threshold": f"{threshold.rule}={threshold.value!r}",
            "text_column": self.text_column,
            "out_format": self.out_format,
            "safe_cells": self.safe_cells,
            "part_rows": self.part_rows,
        }

    def table(self, file: InputFile) -> Table | None:
        """A file's table, with the column of texts; None in a folder where it has no rows."""
        table = self._open(file)
        if table:
            table.text_column(self.text_column)
        return table

    def _open(self, file: InputFile) -> Table | None:
        if file.name in self._tables:
            return self._tables[file.name]
        table = open_input(file, in_folder=self.in_folder)
        if table and file.format == "jsonl":  # all of it was read to know its columns
            self._tables[file.name] = table
        return table

    def about_rows(self) -> int | None:
        """Rows in all files, where they can be told beforehand."""
        counts = [file.about_rows() for file in self.inputs.files]
        return None if None in counts else sum(count or 0 for count in counts)

    def chunks(self, table: Table, first_row: int = 0) -> Iterator[Chunk]:
        """A table in the chunks of this job."""
        return cut(table, first_row, most_rows=self.part_rows)

    @property
    def in_folder(self) -> bool:
        """Whether the input is a folder of files."""
        return Path(self.source).is_dir()

    def steps(self, parts: Parts | None = None) -> Steps:
        """What is done with every chunk."""
        return Steps(self.text_column, self.part_rows, self.strict, self.in_folder, parts)

    def works(self, left: Iterable[Rest], steps: Steps) -> Iterator[Work]:
        """The chunks that are left, in order, read by this process."""
        for rest in left:
            if table := self._open(rest.file):
                yield from steps.works(rest, table)

    # ---- what is left to do ------------------------------------------------------------------------------------------

    def left(self, done: Mapping[Key, Done], states: Mapping[str, tuple[int, int]]) -> Iterator[Rest]:
        """What is left of each file beyond the chunks that are done, in order.

        A file of the same size and time of change as in `states` is trusted. The chunks done of any other are read
        again and compared, so that a file that was only touched, or mended after them, does not stop the job.
        """
        self._require_all_there(done)
        by_file: dict[str, dict[int, Done]] = {}
        for (name, row), entry in done.items():
            by_file.setdefault(name, {})[row] = entry
        for file in self.inputs.files:
            mine = by_file.get(file.name, {})
            self.states[file.name] = state = file.state()
            if mine and states[file.name] != state:
                self._require_same_rows(file, mine, states[file.name])
            first = before = 0
            while first in mine and not mine[first].last:
                first, before = first + mine[first].rows, before + 1
            if first not in mine:
                yield Rest(file, state, first, before, tuple(sorted(row for row in mine if row > first)))

    def _require_all_there(self, done: Mapping[Key, Done]) -> None:
        names = {file.name for file in self.inputs.files}
        for name, _ in done:
            if name not in names:
                raise DataError(
                    f"{name}: rows of this file were scored by the earlier run, but it is not in {self.source} any "
                    "more; put it back, choose another --out, or score all again with --restart"
                )

    def _require_same_rows(self, file: InputFile, done: Mapping[int, Done], was: tuple[int, int]) -> None:
        left, table = dict(done), self.table(file)
        for chunk in self.chunks(table) if table else ():
            known = left.get(chunk.first_row)
            if known and (known.last, known.digest) != (chunk.last, chunk.digest()):
                break
            left.pop(chunk.first_row, None)
            if not left:
                return
        first = min(left)
        raise DataError(
            f"{file.path}: has changed since the earlier run ({was[0]:,} bytes then, {file.state()[0]:,} now), and "
            f"rows {first + 1:,} to {first + left[first].rows:,}, which are scored already, are not the same any more. "
            "Put the earlier file back, choose another --out, or score all again with --restart"
        )


def judged(job: Job, manifest_scores: Callable[[Key], np.ndarray], keys: list[Key]) -> Callable[[Key], Scores]:
    """Scores, p-values and flags of chunks by their key; all judged at once where the rule looks at all of them."""
    if not job.model.threshold_.together:
        return lambda key: flag_rows(job.model, manifest_scores(key))
    parts = [manifest_scores(key) for key in keys]
    ends = np.cumsum([len(part) for part in parts]).tolist()
    whole = flag_rows(job.model, np.concatenate(parts))
    places = {key: slice(end - len(part), end) for key, part, end in zip(keys, parts, ends, strict=True)}

    def of(key: Key) -> Scores:
        place = places[key]
        return Scores(whole.anomaly_score[place], whole.p_value[place], whole.flagged[place])

    return of


@contextmanager
def resumable(manifest: Callable[[], Manifest | None]) -> Iterator[None]:
    """Say with an error that what is done is kept, and how to go on."""
    try:
        yield
    except (DataError, OSError) as error:
        diary = manifest()
        words = str(error).removesuffix("; nothing was changed")
        if isinstance(error, OSError):
            words = f"{error.filename or (diary and diary.folder)}: could not be written ({error.strerror or error})"
        if diary is None:
            raise DataError(words) from error
        n = len(diary.parts) or len(diary.scores)
        raise DataError(
            f"{words}. What is done ({n:,} chunks of rows) is kept in {diary.folder}; mend this, and the same command "
            "goes on from there"
        ) from error
