"""A chunk of rows and its scores, written to a file of its own: a part, named after the input file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from strays.errors import DataError
from strays.jobs.score.chunks import Task, WrittenChunk
from strays.jobs.score.rows import scored_rows, scored_schema
from strays.model.scores import Scores
from strays.tables import OUTPUT_FORMATS, open_writer

# What tells the parts of one file apart in their names.
NUMBER = re.compile(r"-\d{5,}(?=\.[a-z]+$)")


@dataclass(frozen=True)
class ChunkWriter:
    """Where and how chunks are written; `stems` has what the names of the parts of each input file begin with."""

    folder: str
    stems: dict[str, str]
    format: str | None
    safe_cells: bool

    def write(self, task: Task, scores: Scores) -> WrittenChunk:
        """Write a chunk with its scores; the file is complete and on the disk when this returns."""
        rows, by_full = task.chunk.rows, scores.by_full
        format = self.format or (task.file.format if task.file.format in OUTPUT_FORMATS else "parquet")
        name = f"{self.stems[task.file.name]}-{task.number:05}.{format}"
        path = Path(self.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        schema = scored_schema(rows.schema, task.file.path, estimates=by_full is not None)
        with open_writer(str(path), schema, format, safe_cells=self.safe_cells) as write:
            for batch in scored_rows(rows, scores, schema):
                write(batch)
        return WrittenChunk(
            **task.facts(scores.anomaly_score),
            out=name,
            bytes=path.stat().st_size,
            flagged=int(scores.flagged.sum()),
            by_full=None if by_full is None else int(by_full.sum()),
        )


def part_stems(files: list[str], written: Iterable[WrittenChunk]) -> dict[str, str]:
    """What the names of each file's parts begin with: its name without the extension, or with it where names are alike.

    Files that have parts keep their stem, whatever files were added since.
    """
    given = {part.file: part.out.rpartition("-")[0] for part in written}
    short = {name: _without_extension(name) for name in files}
    taken = Counter([*short.values(), *(stem for name, stem in given.items() if name not in short)])
    stems = {name: given.get(name, stem if taken[stem] == 1 else name) for name, stem in short.items()}
    if len(set(stems.values())) < len(stems):
        alike = [name for name, stem in stems.items() if list(stems.values()).count(stem) > 1]
        raise DataError(f"{alike[0]} and {alike[1]}: their names are too alike to name parts after them; rename one")
    return stems


def _without_extension(name: str) -> str:
    path = PurePosixPath(name)
    plain = path.name.removesuffix(".gz")
    return str(path.with_name(plain.rpartition(".")[0] or plain))


def remove_unlisted(folder: Path, listed: set[str]) -> None:
    """Remove parts named like those listed that a stopped run wrote but did not record; this run may cut other chunks.

    A cluster writes some parts ahead of the manifest, and whoever reads the folder must not find their rows twice.
    """
    named = {NUMBER.sub("", name) for name in listed}
    for path in folder.rglob("*-*"):
        name = path.relative_to(folder).as_posix()
        if NUMBER.search(name) and NUMBER.sub("", name) in named and name not in listed and path.is_file():
            path.unlink()
