"""What is done with a chunk of rows, in whichever process: read it, score it, and, where it can be final, write it.

All that a process needs to know for this is plain data (Rest, Steps) and the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from strays.encoders import Progress
from strays.errors import DataError, NoRowsError
from strays.jobs.corpus import no_text
from strays.jobs.score.manifest import Key, Part
from strays.jobs.score.rows import Scorer, flag_rows, score_texts, scored_rows, scored_schema
from strays.model import Scores
from strays.tables import OUTPUT_FORMATS, Chunk, InputFile, Table, cut, open_table, open_writer, texts_of


@dataclass(frozen=True)
class Rest:
    """What is left to do of a file that has this size and time of change: the rows from one on, but for chunks done.

    `number` says how many chunks come before that row, `done` with which rows later chunks start that are done.
    """

    file: InputFile
    state: tuple[int, int]
    first_row: int
    number: int
    done: tuple[int, ...]


@dataclass(frozen=True)
class Work:
    """A chunk to do: of which file, and the how manieth of it."""

    rest: Rest
    number: int
    chunk: Chunk

    @property
    def key(self) -> Key:
        """What tells a chunk from others."""
        return self.rest.file.name, self.chunk.first_row

    def entry(self, scores: np.ndarray) -> dict[str, Any]:
        """What the diary says of the chunk when it is done: the fields of Done."""
        size, mtime_ns = self.rest.state
        return {
            "file": self.rest.file.name,
            "size": size,
            "mtime_ns": mtime_ns,
            "first_row": self.chunk.first_row,
            "rows": len(self.chunk.rows),
            "last": self.chunk.last,
            "digest": self.chunk.digest(),
            "without_text": int(np.isnan(scores).sum()),
        }


@dataclass(frozen=True)
class Scored:
    """A chunk's scores, NaN where a row has no text, and what the diary says of it."""

    entry: dict[str, Any]
    scores: np.ndarray


@dataclass(frozen=True)
class Parts:
    """Where and how chunks are written, each to a file of its own; `stems` are the names by input file."""

    folder: str
    stems: dict[str, str]
    format: str | None
    safe_cells: bool

    def write(self, work: Work, scores: Scores, *, estimates: bool) -> Part:
        """Write a chunk with its scores; the file is complete and on the disk when this returns."""
        file, rows = work.rest.file, work.chunk.rows
        format = self.format or (file.format if file.format in OUTPUT_FORMATS else "parquet")
        name = f"{self.stems[file.name]}-{work.number:05}.{format}"
        path = Path(self.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        schema = scored_schema(rows.schema, file.path, estimates=estimates)
        with open_writer(str(path), schema, format, safe_cells=self.safe_cells) as write:
            for batch in scored_rows(rows, scores, schema):
                write(batch)
        entry = work.entry(scores.anomaly_score)
        by_full = None if scores.by_full is None else int(scores.by_full.sum())
        return Part(**entry, out=name, bytes=path.stat().st_size, flagged=int(scores.flagged.sum()), by_full=by_full)


@dataclass(frozen=True)
class Steps:
    """What a job does with every chunk; without `parts`, scores are handed back."""

    text_column: str
    part_rows: int
    strict: bool
    in_folder: bool
    parts: Parts | None = None

    def works(self, rest: Rest, table: Table | None = None) -> Iterator[Work]:
        """The chunks of a file that are left, in order; none of a file in a folder that has no rows."""
        table = table or open_input(rest.file, in_folder=self.in_folder)
        if table is None:
            return
        table.text_column(self.text_column)
        chunks = cut(table, rest.first_row, most_rows=self.part_rows)
        for number, chunk in enumerate(chunks, rest.number):
            if chunk.first_row not in rest.done:
                yield Work(rest, number, chunk)
        require_unchanged(rest.file, rest.state)

    def finish(self, model: Scorer, work: Work, progress: Progress | None = None) -> Scored | Part:
        """Score a chunk and, where there are to be parts, write it."""
        texts = texts_of(work.chunk.rows, self.text_column)
        if self.strict and None in texts:
            raise no_text(work.rest.file.path, work.chunk.first_row + texts.index(None))
        scores = score_texts(model, texts, progress)
        if self.parts is None:
            return Scored(work.entry(scores), scores)
        return self.parts.write(work, flag_rows(model, scores), estimates=model.estimates)


def open_input(file: InputFile, *, in_folder: bool) -> Table | None:
    """A file's table; None in a folder where it has no rows."""
    try:
        return open_table(file.path, file.format)
    except NoRowsError:
        if in_folder:
            return None
        raise


def require_unchanged(file: InputFile, state: tuple[int, int]) -> None:
    """Raise if a file no longer has the size and time of change that the job has begun with."""
    if file.state() != state:
        raise DataError(f"{file.path}: was changed while it was being read; score it when it stays as it is")
