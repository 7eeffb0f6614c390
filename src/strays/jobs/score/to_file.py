"""Scores to one file: the scores of finished chunks are kept in a hidden folder until the file can be written whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace

import pyarrow as pa

from strays.errors import DataError
from strays.files import real_path
from strays.jobs.score.chunks import DoneChunk, Key, ScoredChunk, require_scored, require_unchanged
from strays.jobs.score.earlier import upgrade
from strays.jobs.score.job import Job, no_rows, resumable
from strays.jobs.score.manifest import SORTING, Manifest
from strays.jobs.score.rows import OddestFirst, ScoreSummary, kept_delimiter, scored_schema, write_scored_rows
from strays.model.scores import RawScores, Scores
from strays.tables import Table, count_rows, output_format, require_alike


def score_to_file(job: Job) -> ScoreSummary:
    """Score all rows and write them to one file, which appears when it is complete.

    The hidden folder is made when a first chunk is done and more follow, so that small jobs leave no trace.
    """
    format = output_format(job.out, job.out_format)
    first = _tables_alike(job)
    schema = scored_schema(first.schema, first.name, estimates=job.model.estimates)
    target = real_path(job.out)
    folder = target.with_name(f".{target.name}.strays")
    with ExitStack() as stack:
        manifest: Manifest | None = None
        if folder.is_dir():
            if job.restart:
                stack.enter_context(job.engine.ready())
            upgrade(folder, estimates=job.model.estimates, in_output=False)
            manifest = stack.enter_context(Manifest(folder, job.header(), restart=job.restart))
            manifest.begin()
        resumed = sum(chunk.rows for chunk in manifest.scores.values()) if manifest else 0
        in_memory: dict[Key, ScoredChunk] = {}
        stack.enter_context(resumable(lambda: manifest))
        left = job.left(manifest.scores if manifest else {})
        with job.progress.bar("scoring", resumed, job.about_rows()):
            for chunk in job.run(left):
                is_all = chunk.last and chunk.file == job.inputs.files[-1].name
                if manifest is None and not is_all:
                    folder.mkdir(exist_ok=True)
                    manifest = stack.enter_context(Manifest(folder, job.header()))
                    manifest.begin()
                if manifest:
                    manifest.add(chunk)
                elif isinstance(chunk, ScoredChunk):
                    in_memory[chunk.key] = chunk
        speed = job.progress.rows_per_second
        scored: Mapping[Key, DoneChunk] = manifest.scores if manifest else in_memory
        raw_scores_of = manifest.read_scores if manifest else lambda key: in_memory[key].scores
        keys = job.in_reading_order(scored)
        order = None
        if job.sort:
            whole = RawScores.joined([raw_scores_of(key) for key in keys])
            order = OddestFirst(whole.anomaly_score, folder / SORTING if manifest else None)
        delimiter = kept_delimiter(first, job.out, format)
        summary = _write(job, schema, format, scored, job.flags(raw_scores_of, keys), delimiter, order)
        if manifest:
            manifest.remove()
    files, ignored = len(job.inputs.files), tuple(job.inputs.ignored)
    return replace(summary, n_files=files, ignored=ignored, n_resumed_rows=resumed, rows_per_second=speed)


def _write(
    job: Job,
    schema: pa.Schema,
    format: str,
    scored: Mapping[Key, DoneChunk],
    scores_of: Callable[[Key], Scores],
    delimiter: str | None,
    order: OddestFirst | None,
) -> ScoreSummary:
    """Read the files once more and write their rows with the scores; then count what was written."""

    def parts() -> Iterator[tuple[pa.Table, Scores]]:
        done = 0
        for file in job.inputs.files:
            for chunk in job.plan.chunks(file):
                key = file.name, chunk.first_row
                require_unchanged(file, job.states[file.name])
                require_scored(file, chunk, scored.get(key))
                yield chunk.rows, scores_of(key)
                done += len(chunk.rows)
                job.progress.reach(done)

    with job.progress.bar("writing", 0, job.about_rows()):
        summary = write_scored_rows(job.out, schema, format, job.safe_cells, parts(), delimiter, order=order)
    written = count_rows(job.out, format)
    if written != summary.n_rows:
        raise DataError(f"{job.out}: holds {written:,} rows, but {summary.n_rows:,} were read; the check failed")
    return summary


def _tables_alike(job: Job) -> Table:
    """The first table, if all have its columns: one file can hold no others."""
    first: Table | None = None
    for file in job.inputs.files:
        table = job.plan.open(file)
        if first is None:
            first = table
        elif table:
            remedy = "One file cannot hold both. Score them to a folder: a name for {out} that ends in a slash"
            require_alike(table, first, remedy, param="out")
    if first is None:
        raise no_rows(job.source)
    return first
