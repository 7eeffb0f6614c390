"""Scores to a folder: a file for every chunk, final as soon as it is there, beside the manifest of the job."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from strays.errors import DataError, UsageError
from strays.jobs.score.chunks import ScoredChunk, WrittenChunk, require_scored
from strays.jobs.score.earlier import is_begun, upgrade
from strays.jobs.score.job import Job, cannot_resume, no_rows, resumable
from strays.jobs.score.manifest import Manifest
from strays.jobs.score.part_files import taken
from strays.jobs.score.plan import ChunkWriter
from strays.jobs.score.rows import ScoreSummary
from strays.tables import OUTPUT_FORMATS, PART_BYTES, InputFile, count_rows


def score_to_folder(job: Job) -> ScoreSummary:
    """Score all rows and write them in parts, whose folders and names are those of the input files."""
    if job.out_format and job.out_format not in OUTPUT_FORMATS:
        raise UsageError(
            f"{{out_format}} is {job.out_format!r}; expected one of {', '.join(OUTPUT_FORMATS)}", param="out_format"
        )
    folder = Path(job.out)
    _require_ours(folder)
    header, together = job.header(), job.model.threshold_.together
    with ExitStack() as stack:
        if job.restart or not is_begun(folder):
            stack.enter_context(job.engine.ready())
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise _unusable(folder, "made", error.strerror) from error
        upgrade(folder, estimates=job.model.estimates)
        manifest = stack.enter_context(Manifest(folder, header, restart=job.restart))
        stems = part_stems(
            [file.name for file in job.inputs.files], [] if job.restart else list(manifest.parts.values())
        )
        _require_free(job, manifest, stems)
        stack.enter_context(resumable(lambda: manifest))
        manifest.begin()
        stack.callback(manifest.tidy)  # when the run ends, however it ends
        done = manifest.scores if together else manifest.parts
        resumed = sum(chunk.rows for chunk in done.values())
        writer = ChunkWriter(job.out, stems, job.out_format, job.safe_cells)
        with job.progress.bar("scoring", resumed, job.about_rows()):
            for chunk in job.run(job.left(done), None if together else writer):
                if isinstance(chunk, ScoredChunk):
                    _require_seen(job, manifest, chunk)
                manifest.add(chunk)
        speed = job.progress.rows_per_second
        if together:
            _write(job, manifest, writer)
        parts = manifest.parts.values()
        _check(job, manifest)
        return ScoreSummary(
            n_rows=sum(part.rows for part in parts),
            n_without_text=sum(part.without_text for part in parts),
            n_flagged=sum(part.flagged for part in parts),
            n_files=len(job.inputs.files),
            n_parts=len(parts),
            n_resumed_rows=resumed,
            n_remade=len(manifest.missing),
            rows_per_second=speed,
            ignored=tuple(job.inputs.ignored),
            n_by_full=sum(part.by_full or 0 for part in parts) if job.model.estimates else None,
        )


def _write(job: Job, manifest: Manifest, writer: ChunkWriter) -> None:
    """Flag all rows together, now that all are scored, and write the parts that are not written yet."""
    scores_of = job.flags(manifest.read_scores, sorted(manifest.scores))
    written = sum(part.rows for part in manifest.parts.values())
    with job.progress.bar("writing", written, job.about_rows()):
        for task in job.plan.tasks(job.left(manifest.parts)):
            key = task.file.name, task.chunk.first_row
            require_scored(task.file, task.chunk, manifest.scores.get(key))
            job.progress.take(len(task.chunk.rows))
            manifest.add(writer.write(task, scores_of(key)))
            job.progress.finish()


def _require_seen(job: Job, manifest: Manifest, chunk: ScoredChunk) -> None:
    """Raise if rows are flagged together, and the earlier run did so already without these."""
    if manifest.parts and chunk.key not in manifest.parts and not manifest.damaged:
        path = next(file.path for file in job.inputs.files if file.name == chunk.file)
        rule = job.model.threshold_
        raise cannot_resume(f"{path}: is new, and the earlier run flagged rows ({rule}) without it. Remove it")


def _require_free(job: Job, manifest: Manifest, stems: dict[str, str]) -> None:
    """Raise, before anything is written, if the names of parts to come are other people's files'.

    How many parts there will be is known only roughly; what is beyond that is noticed when the part is to get the name.
    Where parts may be there that the manifest does not list, it is noticed then, too.
    """
    if manifest.unproven:
        return
    parts = manifest.parts.values()
    ended = set() if job.restart else {part.file for part in parts if part.last}
    written = Counter(part.file for part in parts)
    numbers = {
        stems[file.name]: range(written[file.name] if file.name in ended else _most_parts(file, job.part_rows))
        for file in job.inputs.files
    }
    for path in manifest.files.in_the_way({part.out for part in parts}, numbers):
        raise taken(path)


def _most_parts(file: InputFile, part_rows: int) -> int:
    """More parts than a file is likely to have."""
    size, rows = file.state()[0], file.about_rows()
    by_rows = (size if rows is None else 2 * rows) // part_rows
    return 10 + by_rows + 20 * size // PART_BYTES


def _require_ours(folder: Path) -> None:
    """Raise where there is a file of this name, or a folder with other things in it, which is not written to."""
    try:
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{folder}: is a file; expected the name of a folder for the parts")
        others = folder.exists() and not is_begun(folder) and any(folder.iterdir())
        place = folder if folder.exists() else folder.absolute().parent
        if not os.access(place, os.W_OK):
            raise _unusable(folder, "made or written to", os.strerror(errno.EACCES))
    except OSError as error:
        raise _unusable(folder, "read", error.strerror) from error
    if others:
        raise DataError(f"{folder}: is a folder with other things in it; expected a new or empty one")


def _unusable(folder: Path, what: str, why: str | None) -> DataError:
    return DataError(f"{folder}: could not be {what} ({why}); choose another {{out}}", param="out")


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


def _check(job: Job, manifest: Manifest) -> None:
    """Raise unless every row that was read is in a part, by what the files themselves say."""
    if not manifest.parts:
        raise no_rows(job.source)
    read: Counter[str] = Counter()
    for part in manifest.parts.values():
        read[part.file] += part.rows
        written = count_rows(str(manifest.folder / part.out), part.out.rpartition(".")[2])
        if written != part.rows:
            raise DataError(f"{manifest.folder / part.out}: holds {written:,} rows, expected {part.rows:,}; remove it")
    for file in job.inputs.files:
        there = file.about_rows() if file.format == "parquet" else None
        if there is not None and there != read[file.name]:
            raise DataError(f"{file.path}: has {there:,} rows, but {read[file.name]:,} were written; the check failed")
