"""A chunk of rows and its scores, written to a file of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from strays.jobs.score.chunks import Task, WrittenChunk
from strays.jobs.score.rows import scored_rows, scored_schema
from strays.model.scores import Scores
from strays.tables import OUTPUT_FORMATS, open_writer


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
