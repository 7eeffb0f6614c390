"""A scoring job: files of any size, chunk by chunk, in constant memory, resumed where an earlier run stopped.

There are two kinds of output. A folder gets a file for every chunk, each of them final. A single file needs all chunks;
until then their scores are kept in a hidden folder beside it, and the rows are read a second time to write it in one
go. Where flags wait for all scores (Threshold.together), a folder's scores are kept in the same way before its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from strays import __version__
from strays.errors import DataError, NoRowsError, Note
from strays.jobs.score.chunks import DoneChunk, Key, Remaining
from strays.jobs.score.manifest import Manifest
from strays.jobs.score.plan import ChunkWriter, Engine, Plan, open_once
from strays.jobs.score.progress import RowProgress
from strays.jobs.score.rows import Scorer, flag_rows
from strays.model.scores import RawScores, Scores
from strays.tables import InputFile, InputFiles, Table, output_format
from strays.tables.table import JSON_FORMATS


@dataclass
class Job:
    """What is to be scored, and how."""

    model: Scorer
    source: str
    out: str
    # Whether `out` is a folder of parts.
    to_folder: bool
    inputs: InputFiles
    text_column: str | None
    out_format: str | None
    part_rows: int
    strict: bool
    safe_cells: bool
    restart: bool
    sort: bool
    progress: RowProgress
    engine: Engine
    # Takes what a user should know of how the files are read.
    tell: Callable[[Note], object]
    # Sizes and times of change of the files, as this run found them, and the chunks that it has compared.
    states: dict[str, tuple[int, int]] = field(default_factory=dict)
    compared: set[Key] = field(default_factory=set)

    @cached_property
    def plan(self) -> Plan:
        """What is done with every chunk, where scores are to be kept.

        The text column is the one named; else the first file tells which, and all files must have it.
        """
        in_folder, tables = Path(self.source).is_dir(), dict[str, Table]()
        opened = (open_once(file, in_folder=in_folder, tables=tables) for file in self.inputs.files)
        first = next((table for table in opened if table), None)
        if first is None:
            raise no_rows(self.source)
        column = first.choose_text_column(self.text_column)
        for note in (*self.inputs.notes, *first.notes, column.note()):
            if note:
                self.tell(note)
        return Plan(column.name, self.part_rows, self.strict, in_folder, self._verbatim, tables=tables)

    @property
    def _verbatim(self) -> bool:
        """Whether rows that come from JSON go to JSON: in a folder each file's do, unless they get another format."""
        if self.to_folder:
            return self.out_format is None or self.out_format in JSON_FORMATS
        is_json = all(file.format in JSON_FORMATS for file in self.inputs.files)
        return is_json and output_format(self.out, self.out_format) in JSON_FORMATS

    def header(self) -> dict[str, Any]:
        """What must stay the same until a job is done, as plain data."""
        threshold = self.model.threshold_
        return {
            "strays_version": __version__,
            "model": self.model.fingerprint,
            "encoder": self.model.encoder_identity,
            "threshold": f"{threshold.rule}={threshold.value!r}",
            "text_column": self.plan.text_column,
            "delimiter": self._delimiter,
            "out_format": self.out_format,
            "safe_cells": self.safe_cells,
            "part_rows": self.part_rows,
        }

    @property
    def _delimiter(self) -> str | None:
        """What separates values in the files, where that is one and the same."""
        found = {file.delimiter for file in self.inputs.files}
        return found.pop() if len(found) == 1 else None

    def about_rows(self) -> int | None:
        """Rows in all files, if that is known beforehand."""
        counts = [file.about_rows() for file in self.inputs.files]
        return None if None in counts else sum(count or 0 for count in counts)

    def left(self, done: Mapping[Key, DoneChunk]) -> Iterator[Remaining]:
        """What is left of each file beyond the chunks that are done, in order.

        The rows of chunks that an earlier run has done are read again and compared. Size and time of change would not
        tell: a file can be changed with both kept, and touched, or repaired behind these rows, with neither.
        """
        by_file: dict[str, dict[int, DoneChunk]] = {file.name: {} for file in self.inputs.files}
        for (name, row), chunk in done.items():
            if name not in by_file:
                raise cannot_resume(
                    f"{name}: rows of this file were scored by the earlier run, but it is no longer in {self.source}; "
                    "put it back"
                )
            by_file[name][row] = chunk
        for file in self.inputs.files:
            mine = by_file[file.name]
            self.states[file.name] = state = file.state()
            self._require_same_rows(file, {row: mine[row] for row in mine if (file.name, row) not in self.compared})
            self.compared |= {(file.name, row) for row in mine}
            first = before = 0
            while first in mine and not mine[first].last:
                first, before = first + mine[first].rows, before + 1
            if first not in mine:
                yield Remaining(file, state, first, before, tuple(sorted(row for row in mine if row > first)))

    def _require_same_rows(self, file: InputFile, done: Mapping[int, DoneChunk]) -> None:
        left = dict(done)
        for chunk in self.plan.chunks(file) if left else ():
            known = left.get(chunk.first_row)
            if known and (known.last, known.digest) != (chunk.last, chunk.digest()):
                break
            left.pop(chunk.first_row, None)
            if not left:
                return
        if left:
            first = min(left)
            raise cannot_resume(
                f"{file.path}: has changed since the earlier run ({left[first].size:,} bytes then, "
                f"{file.state()[0]:,} now), and rows {first + 1:,} to {first + left[first].rows:,}, which are scored "
                "already, are no longer the same. Put the earlier file back"
            )

    def run(self, left: Iterable[Remaining], writer: ChunkWriter | None = None) -> Iterator[DoneChunk]:
        """Have the engine do what is left; with a writer, chunks come back written."""
        return self.engine.run(self.model, replace(self.plan, writer=writer), left, self.progress)

    def in_reading_order(self, keys: Iterable[Key]) -> list[Key]:
        """Chunks by their keys in the order in which files and rows are read."""
        number = {file.name: i for i, file in enumerate(self.inputs.files)}
        return sorted(keys, key=lambda key: (number[key[0]], key[1]))

    def flags(self, scores_of: Callable[[Key], RawScores], keys: list[Key]) -> Callable[[Key], Scores]:
        """Scores with p-values and flags of chunks by their key; all flagged at once where the rule looks at all."""
        if not self.model.threshold_.together:
            return lambda key: flag_rows(self.model, scores_of(key))
        parts = [scores_of(key).anomaly_score for key in keys]
        ends = np.cumsum([len(part) for part in parts]).tolist()
        whole = flag_rows(self.model, RawScores(np.concatenate(parts)))
        places = {key: slice(end - len(part), end) for key, part, end in zip(keys, parts, ends, strict=True)}
        return lambda key: whole[places[key]]


def cannot_resume(why: str) -> DataError:
    """The error for a job whose input is not what the earlier run began with."""
    return DataError(
        f"{why}, choose another {{out}}, or score everything again with {{restart}}", param=("out", "restart")
    )


def no_rows(source: str) -> NoRowsError:
    """The error for a job whose files have no rows."""
    return NoRowsError(f"{source}: there are no rows in any of its files; expected at least one")


@contextmanager
def resumable(manifest: Callable[[], Manifest | None]) -> Iterator[None]:
    """Say with an error that what is done is kept, and how to resume."""
    try:
        yield
    except (DataError, OSError) as error:
        kept = manifest()
        if isinstance(error, OSError):
            message = f"{error.filename or (kept and kept.folder)}: could not be written ({error.strerror or error})"
            params: tuple[str, ...] = ()
        else:
            message, params = error.message, error.params
        if kept:
            message += (
                f". What is done ({len(kept.parts) or len(kept.scores):,} chunks of rows) is kept in {kept.folder}; "
                "fix this and run the job again to resume"
            )
        raise DataError(message, param=params) from error
