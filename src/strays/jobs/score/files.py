"""The entry: a job goes through a pipe, to one file, or to a folder of parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from strays.encoders.cut_texts import gather_cut_texts
from strays.errors import DataError, Note, UsageError
from strays.files import real_path
from strays.jobs.corpus import no_text
from strays.jobs.score import rows
from strays.jobs.score.job import Job
from strays.jobs.score.plan import Engine
from strays.jobs.score.progress import RowProgress
from strays.jobs.score.rows import Scorer, ScoreSummary
from strays.jobs.score.to_file import score_to_file
from strays.jobs.score.to_folder import score_to_folder
from strays.model.scores import RawScores
from strays.tables import PART_ROWS, InputFiles, Table, find_files, format_of, open_table, output_format, texts_of


def score_files(
    model: Scorer,
    source: str,
    out: str,
    *,
    engine: Engine,
    text_column: str | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    out_format: str | None = None,
    part_rows: int | None = None,
    strict: bool = False,
    safe_cells: bool = False,
    restart: bool = False,
    sort: bool = False,
    progress: RowProgress | None = None,
    tell: Callable[[Note], object] = lambda note: None,
) -> ScoreSummary:
    """Score the rows of a file, of a folder, or of stdin ('-'), and write them with their scores.

    A folder holds files of rows, or documents, each of which is one text. `tell` gets notes on how they are read.

    `engine` does the work: strays.engines.LocalEngine() in this process, strays.engines.RayEngine() on a cluster. `out`
    is a file, stdout ('-'), or a folder: one that exists, or a name that ends in a slash or has no extension. A folder
    gets a file for every chunk, in the format of the input. An interrupted job resumes when it is run again, except one
    with a pipe.
    Rows keep their order, or come the oddest first with `sort`, which needs one file (or stdout) to write to.
    """
    part_rows = PART_ROWS if part_rows is None else part_rows
    if part_rows < 1:
        raise UsageError(f"{{part_rows}} is {part_rows}; must be at least 1", param="part_rows")
    to_folder = _names_a_folder(out, source)
    if sort and to_folder:
        raise UsageError(
            f"{out}: is a folder, whose parts are written while later rows are not scored yet, so that {{sort}} cannot "
            "order them; name one file for {out}, such as ranked.parquet",
            param=("sort", "out"),
        )
    piped = _is_pipe(source) or _is_pipe(out)
    if piped:
        if to_folder:
            raise UsageError(f"{source} to {out}: a folder cannot be written from a pipe; name a file")
        if not engine.pipes:
            raise UsageError(
                f"{source} to {out}: with this {{engine}}, a cluster works on files that its nodes see; name files, "
                "not pipes",
                param="engine",
            )
    else:
        _require_apart(source, out)
    job = Job(
        model=model,
        source=source,
        out=out,
        to_folder=to_folder,
        inputs=InputFiles([], []) if piped else find_files(source, format, delimiter=delimiter, sheet=sheet),
        text_column=text_column,
        out_format=out_format,
        part_rows=part_rows,
        strict=strict,
        safe_cells=safe_cells,
        restart=restart,
        sort=sort,
        progress=progress or RowProgress(),
        engine=engine,
        tell=tell,
    )
    with gather_cut_texts():  # once for the whole job, with the total
        if piped:
            table = open_table(source, format, text_column=text_column, delimiter=delimiter, sheet=sheet)
            with job.progress.bar("scoring", 0, None):
                return _score_pipe(job, table)
        return score_to_folder(job) if to_folder else score_to_file(job)


def _is_pipe(path: str) -> bool:
    return path == "-" or (Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir())


def _score_pipe(job: Job, table: Table) -> ScoreSummary:
    """Score every row of a table and write all its columns and the scores, a batch at a time."""
    model, chosen = job.model, table.choose_text_column(job.text_column)
    column = chosen.name
    for note in (*table.notes, chosen.note()):
        if note:
            job.tell(note)
    out_format = rows.stream_format(table, job.out, job.out_format)
    table = table.written_as(output_format(job.out, out_format))
    schema = rows.check_output(table, job.out, out_format, estimates=model.estimates)

    def scored() -> Iterator[tuple[pa.Table, RawScores]]:
        done = 0
        for batch in table.batches():
            texts = texts_of(batch, column)
            if job.strict and None in texts:
                raise no_text(table.name, done + texts.index(None))
            yield pa.Table.from_batches([batch]), rows.score_texts(model, texts)
            done += len(batch)
            job.progress.reach(done)

    if model.threshold_.together or job.sort:
        # Which rows are flagged, and which come first, is known only when all are scored; these fit in memory.
        flagged = rows.flag_rows(model, RawScores.joined([scores for _, scores in scored()]))
        return rows.write_scored(
            table, job.out, flagged, out_format=out_format, safe_cells=job.safe_cells, sort=job.sort
        )
    parts = ((batch, rows.flag_rows(model, scores)) for batch, scores in scored())
    delimiter = rows.kept_delimiter(table, job.out, out_format)
    return rows.write_scored_rows(job.out, schema, out_format, job.safe_cells, parts, delimiter)


def _names_a_folder(out: str, source: str) -> bool:
    """Whether parts go to a folder: it is one, ends in a slash, or is a name without an extension.

    Where a folder is scored, a name with an extension that is of no format will do too. From a pipe only a slash tells,
    as what it gives goes to one file.
    """
    if out.endswith("/") or Path(out).is_dir():
        return True
    if _is_pipe(out) or _is_pipe(source):
        return False
    if not Path(out).suffix:
        return True
    try:
        format_of(out)
    except DataError:
        return Path(source).is_dir()
    return False


def _require_apart(source: str, out: str) -> None:
    into, where = real_path(out), real_path(source)
    if into == where:
        raise UsageError(f"{out}: is the input itself; write to another place")
    if where in into.parents:
        raise UsageError(f"{out}: is inside the input {source}, whose files it would become one of; write elsewhere")
    if not into.parent.is_dir():
        raise DataError(f"{out}: there is no folder {into.parent}; create it first")
