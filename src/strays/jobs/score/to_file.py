"""Scores to one file: the scores of finished chunks are kept in a hidden folder until the file can be written whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from strays.errors import DataError
from strays.jobs.score.job import Job, judged, resumable
from strays.jobs.score.manifest import NAME, Key, Manifest
from strays.jobs.score.rows import ScoreSummary, Tally, scored_rows, scored_schema
from strays.jobs.score.steps import Rest, Scored, require_unchanged
from strays.model import Scores
from strays.tables import Table, count_rows, open_writer, output_format


def score_to_file(job: Job) -> ScoreSummary:
    """Score all rows and write them to one file, which appears when it is complete.

    The hidden folder is made when a first chunk is done and more follow, so that small jobs leave no trace.
    """
    format = output_format(job.out, job.out_format)
    first = _tables_alike(job)
    schema = scored_schema(first.schema, first.name, estimates=job.model.estimates)
    target = Path(job.out).resolve()
    hidden = target.with_name(f".{target.name}.strays")
    with ExitStack() as stack:
        diary: Manifest | None = None
        if hidden.is_dir():
            if job.restart:
                stack.enter_context(job.engine.ready())
            diary = stack.enter_context(Manifest(hidden / NAME, job.header(), restart=job.restart))
        resumed = sum(entry.rows for entry in diary.scores.values()) if diary else 0
        in_memory: dict[Key, np.ndarray] = {}
        stack.enter_context(resumable(lambda: diary))

        def left() -> Iterator[Rest]:
            return job.left(diary.scores, diary.states) if diary else job.left({}, {})

        with job.progress.bar("scoring", resumed, job.about_rows()):
            for result in job.engine.run(job, job.steps(), left):
                if not isinstance(result, Scored):
                    raise TypeError(f"the engine gave a {type(result).__name__}; expected scores")
                entry = result.entry
                is_all = entry["last"] and entry["file"] == job.inputs.files[-1].name
                if diary is None and not is_all:
                    hidden.mkdir(exist_ok=True)
                    diary = stack.enter_context(Manifest(hidden / NAME, job.header()))
                if diary:
                    diary.keep_scores(entry, result.scores)
                else:
                    in_memory[entry["file"], entry["first_row"]] = result.scores
        speed = job.progress.rows_per_second
        keys = sorted(in_memory or (diary.scores if diary else {}))
        scores_of = judged(job, lambda key: diary.read_scores(key) if diary else in_memory[key], keys)
        summary = _write(job, schema, format, scores_of)
        if diary:
            diary.close(remove=True)
    return replace(summary, n_resumed_rows=resumed, rows_per_second=speed)


def _write(job: Job, schema: pa.Schema, format: str, scores_of: Callable[[Key], Scores]) -> ScoreSummary:
    """Read the files once more and write their rows with the scores; then count what was written."""
    tally = Tally()
    with (
        job.progress.bar("writing", 0, job.about_rows()),
        open_writer(job.out, schema, format, safe_cells=job.safe_cells) as write,
    ):
        for file in job.inputs.files:
            table = job.table(file)
            for chunk in job.chunks(table) if table else ():
                require_unchanged(file, job.states[file.name])
                scores = scores_of((file.name, chunk.first_row))
                for batch in scored_rows(chunk.rows, scores, schema):
                    write(batch)
                tally.add(scores)
                job.progress.reach(tally.n_rows)
    written = count_rows(job.out, format)
    if written != tally.n_rows:
        raise DataError(f"{job.out}: holds {written:,} rows, but {tally.n_rows:,} were read; the check failed")
    return tally.summary(
        estimates=job.model.estimates, n_files=len(job.inputs.files), ignored=tuple(job.inputs.ignored)
    )


def _tables_alike(job: Job) -> Table:
    """The first table, when all have its columns: one file can hold no others."""
    first: Table | None = None
    for file in job.inputs.files:
        table = job.table(file)
        if first is None:
            first = table
        elif table and not table.schema.equals(first.schema):
            raise DataError(
                f"{file.path}: its columns or their types are not those of {first.name}, so that one file cannot hold "
                f"both; got {_words(table)}, expected {_words(first)}. Write to a folder: --out NAME/"
            )
    if first is None:
        raise DataError(f"{job.source}: there are no rows in any of its files; expected at least one")
    return first


def _words(table: Table) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in table.schema)
