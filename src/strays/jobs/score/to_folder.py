"""Scores to a folder: a file for every chunk, final as soon as it is there, beside the diary of the job."""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any

from strays.errors import DataError, UsageError
from strays.files import remove_unfinished
from strays.jobs.score.job import Job, judged, resumable
from strays.jobs.score.manifest import NAME, Manifest, Part
from strays.jobs.score.rows import ScoreSummary
from strays.jobs.score.steps import Parts
from strays.tables import OUTPUT_FORMATS, count_rows

# What tells parts of one file apart in their names.
PART = re.compile(r"-\d{5,}(?=\.[a-z]+$)")


def score_to_folder(job: Job) -> ScoreSummary:
    """Score all rows and write them in parts, whose folders and names are those of the input files."""
    if job.out_format and job.out_format not in OUTPUT_FORMATS:
        raise UsageError(f"cannot write {job.out_format}; expected one of {', '.join(OUTPUT_FORMATS)}")
    folder = Path(job.out)
    _require_ours(folder)
    header, together = job.header(), job.model.threshold_.together
    with ExitStack() as stack:
        if job.restart or not (folder / NAME).exists():
            stack.enter_context(job.engine.ready())
        _make(folder)
        diary = stack.enter_context(Manifest(folder / NAME, header, restart=job.restart))
        stack.enter_context(resumable(lambda: diary))
        remove_unfinished(folder)  # under the lock nobody else writes any
        done = diary.scores if together else diary.parts
        resumed = sum(entry.rows for entry in done.values())
        parts = Parts(job.out, _stems(job, diary), job.out_format, job.safe_cells)
        steps = job.steps(None if together else parts)
        with job.progress.bar("scoring", resumed, job.about_rows()):
            for result in job.engine.run(job, steps, lambda: job.left(done, diary.states)):
                if isinstance(result, Part):
                    diary.add(result)
                else:
                    _require_seen(job, diary, result.entry)
                    diary.keep_scores(result.entry, result.scores)
        speed = job.progress.rows_per_second
        if together:
            scores_of = judged(job, diary.read_scores, sorted(diary.scores))
            written = sum(part.rows for part in diary.parts.values())
            with job.progress.bar("writing", written, job.about_rows()):
                for work in job.works(job.left(diary.parts, diary.states), steps):
                    job.progress.take(len(work.chunk.rows))
                    diary.add(parts.write(work, scores_of(work.key), estimates=job.model.estimates))
                    job.progress.finish()
        remove_unfinished(folder)
        _remove_unlisted(folder, {part.out for part in diary.parts.values()})
        _check(job, diary)
        all_parts = diary.parts.values()
        return ScoreSummary(
            n_rows=sum(part.rows for part in all_parts),
            n_without_text=sum(part.without_text for part in all_parts),
            n_flagged=sum(part.flagged for part in all_parts),
            n_files=len(job.inputs.files),
            n_parts=len(all_parts),
            n_resumed_rows=resumed,
            n_remade=len(diary.missing),
            rows_per_second=speed,
            ignored=tuple(job.inputs.ignored),
            n_by_full=sum(part.by_full or 0 for part in all_parts) if job.model.estimates else None,
        )


def _require_seen(job: Job, diary: Manifest, entry: dict[str, Any]) -> None:
    """Raise where flags that look at all rows together were given already, and without these rows."""
    if diary.parts and (entry["file"], entry["first_row"]) not in diary.parts:
        path = next(file.path for file in job.inputs.files if file.name == entry["file"])
        raise DataError(
            f"{path}: is new, and the earlier run gave its flags ({job.model.threshold_}) without it. Take it away, "
            "choose another --out, or score all again with --restart"
        )


def _stems(job: Job, diary: Manifest) -> dict[str, str]:
    """What a file's parts are called: as the file, without its ending, or with it where another has the same name.

    Files that have parts keep their name, whatever files came since.
    """
    given = {part.file: part.out.rpartition("-")[0] for part in diary.parts.values()}
    short = {file.name: _without_ending(file.name) for file in job.inputs.files}
    taken = Counter([*short.values(), *(stem for name, stem in given.items() if name not in short)])
    stems = {name: given.get(name, stem if taken[stem] == 1 else name) for name, stem in short.items()}
    if len(set(stems.values())) < len(stems):
        raise DataError(f"{job.source}: some files are named so alike that their parts would be mixed up; rename them")
    return stems


def _without_ending(name: str) -> str:
    way = PurePosixPath(name)
    plain = way.name.removesuffix(".gz")
    return str(way.with_name(plain.rpartition(".")[0] or plain))


def _require_ours(folder: Path) -> None:
    """Raise where there is a file of this name, or a folder with other things in it, which is not written to."""
    try:
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{folder}: is a file; expected the name of a folder for the parts")
        others = folder.exists() and not (folder / NAME).exists() and any(folder.iterdir())
        place = folder if folder.exists() else folder.absolute().parent
        if not os.access(place, os.W_OK):
            reason = os.strerror(errno.EACCES if place.exists() else errno.ENOENT)
            raise DataError(f"{folder}: could not be made or written to ({reason}); choose another --out")
    except OSError as error:
        raise DataError(f"{folder}: could not be read ({error.strerror}); choose another --out") from error
    if others:
        raise DataError(f"{folder}: is a folder with other things in it; expected a new or empty one")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: could not be made ({error.strerror}); choose another --out") from error


def _remove_unlisted(folder: Path, listed: set[str]) -> None:
    """Remove parts named like these that a stopped run had written but not noted; this one may have cut others.

    A cluster writes some parts ahead of the diary, and whoever reads the folder must not find their rows twice.
    """
    named = {PART.sub("", name) for name in listed}
    for path in folder.rglob("*-*"):
        name = path.relative_to(folder).as_posix()
        if PART.search(name) and PART.sub("", name) in named and name not in listed and path.is_file():
            path.unlink()


def _check(job: Job, diary: Manifest) -> None:
    """Raise unless every row that was read is in a part, by what the files themselves say."""
    if not diary.parts:
        raise DataError(f"{job.source}: there are no rows in any of its files; expected at least one")
    read: Counter[str] = Counter()
    for part in diary.parts.values():
        read[part.file] += part.rows
        written = count_rows(str(diary.folder / part.out), part.out.rpartition(".")[2])
        if written != part.rows:
            raise DataError(f"{diary.folder / part.out}: holds {written:,} rows, expected {part.rows:,}; remove it")
    for file in job.inputs.files:
        there = file.about_rows() if file.format == "parquet" else None
        if there is not None and there != read[file.name]:
            raise DataError(f"{file.path}: has {there:,} rows, but {read[file.name]:,} were written; the check failed")
