"""How a job reads, scores and writes its chunks, in whichever process has the model and sees the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from strays.encoders import Progress
from strays.errors import NoRowsError
from strays.files import sha256
from strays.jobs.corpus import no_text
from strays.jobs.score.chunks import DoneChunk, Remaining, ScoredChunk, Task, WrittenChunk, require_unchanged
from strays.jobs.score.part_files import part_name, path_aside
from strays.jobs.score.progress import RowProgress
from strays.jobs.score.rows import Scorer, flag_rows, score_texts, scored_schema, write_scored_rows
from strays.model.scores import Scores
from strays.tables import DOCUMENTS, OUTPUT_FORMATS, Chunk, InputFile, Table, cut, open_input, texts_of


@dataclass(frozen=True)
class ChunkWriter:
    """Writes chunks to files of their own (parts), whose names begin with the `stems` of their input files.

    They get these names when the manifest has recorded them (part_files.py).
    """

    folder: str
    stems: dict[str, str]
    format: str | None
    safe_cells: bool

    def write(self, task: Task, scores: Scores) -> WrittenChunk:
        """Write a chunk with its scores; the file is complete and on the disk when this returns."""
        rows, format = task.chunk.rows, self.format or task.file.format
        format = format if format in OUTPUT_FORMATS else "parquet"
        name = part_name(self.stems[task.file.name], task.number, format)
        path = path_aside(Path(self.folder), name)
        path.parent.mkdir(parents=True, exist_ok=True)
        schema = scored_schema(rows.schema, task.file.path, estimates=scores.by_full is not None)
        delimiter = task.file.delimiter if format == task.file.format else None
        written = write_scored_rows(str(path), schema, format, self.safe_cells, [(rows, scores)], delimiter)
        facts, size = task.facts(scores.anomaly_score), path.stat().st_size
        return WrittenChunk(
            **facts, out=name, bytes=size, sha256=sha256(path), flagged=written.n_flagged, by_full=written.n_by_full
        )


@dataclass(frozen=True)
class Plan:
    """What a job does with every chunk: score it and, with a `writer`, write it."""

    text_column: str
    part_rows: int
    strict: bool
    in_folder: bool
    # Whether rows that come from JSON keep their own text, since they are written as JSON.
    verbatim: bool = False
    writer: ChunkWriter | None = None
    # Tables that this process has opened, see open_once.
    tables: dict[str, Table] = field(default_factory=dict, compare=False, repr=False)

    def open(self, file: InputFile) -> Table | None:
        """A file's table, which must have the text column; None for a file in a folder that has no rows."""
        table = open_once(file, in_folder=self.in_folder, tables=self.tables)
        if table:
            table.text_column(self.text_column)
        return table.verbatim if table and table.verbatim and self.verbatim else table

    def chunks(self, file: InputFile, first_row: int = 0) -> Iterator[Chunk]:
        """The chunks of a file from a row on, which must be the first of a chunk."""
        if table := self.open(file):
            yield from cut(table, first_row, most_rows=self.part_rows)

    def tasks(self, left: Iterable[Remaining]) -> Iterator[Task]:
        """The chunks that are left, in order."""
        for rest in left:
            for number, chunk in enumerate(self.chunks(rest.file, rest.first_row), rest.number):
                if chunk.first_row not in rest.done:
                    yield Task(rest.file, rest.state, number, chunk)
            require_unchanged(rest.file, rest.state)

    def finish(self, model: Scorer, task: Task, progress: Progress | None = None) -> ScoredChunk | WrittenChunk:
        """Score a chunk and, with a writer, write it."""
        texts = texts_of(task.chunk.rows, self.text_column)
        if self.strict and None in texts:
            raise no_text(task.file.path, task.chunk.first_row + texts.index(None))
        scores = score_texts(model, texts, progress)
        if self.writer is None:
            return ScoredChunk(**task.facts(scores.anomaly_score), scores=scores)
        return self.writer.write(task, flag_rows(model, scores))


def open_once(file: InputFile, *, in_folder: bool, tables: dict[str, Table]) -> Table | None:
    """A file's table; None for a file in a folder that has no rows. Uses and fills `tables`, by name of the file."""
    if file.name in tables:
        return tables[file.name]
    try:
        table = open_input(file)
    except NoRowsError:
        if in_folder:
            return None
        raise
    if file.format in ("json", "jsonl", "xlsx", DOCUMENTS):  # all of it was read to know its columns, or to check it
        tables[file.name] = table
    return table


class Engine(Protocol):
    """What carries out a plan: this process, or others (strays.engines)."""

    @property
    def pipes(self) -> bool:
        """Whether a job of this engine may read stdin and write stdout."""

    def ready(self) -> AbstractContextManager[object]:
        """Start what it works with, or raise; a new job waits for this before it writes anything."""

    def run(self, model: Scorer, plan: Plan, left: Iterable[Remaining], progress: RowProgress) -> Iterator[DoneChunk]:
        """Every chunk that is left, done as planned, in order; the caller records each before it asks for the next."""
