"""One table in, the same rows with their scores out, a batch at a time: for pipes, and for scores known already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from strays.errors import DataError, UsageError
from strays.jobs.corpus import no_text
from strays.jobs.score.rows import Scorer, ScoreSummary, flag_rows, score_texts, scored_schema, write_scored_rows
from strays.model.scores import RawScores, Scores
from strays.tables import Table, output_format, texts_of


def score_table(
    model: Scorer,
    table: Table,
    out: str,
    *,
    text_column: str | None,
    out_format: str | None,
    strict: bool,
    safe_cells: bool,
    progress: Callable[[int], None],
) -> ScoreSummary:
    """Score every row of a table and write all its columns and the scores; calls progress with the rows done so far."""
    column, out_format = table.text_column(text_column), stream_format(table, out, out_format)
    check_output(table, out, out_format, estimates=model.estimates)

    def scored() -> Iterator[tuple[pa.Table, RawScores]]:
        done = 0
        for batch in table.batches():
            texts = texts_of(batch, column)
            if strict and None in texts:
                raise no_text(table.name, done + texts.index(None))
            yield pa.Table.from_batches([batch]), score_texts(model, texts)
            done += len(batch)
            progress(done)

    if model.threshold_.together:
        # Which rows are flagged is known only when all are scored; their scores alone fit in memory.
        whole = RawScores(np.concatenate([scores.anomaly_score for _, scores in scored()]))
        return write_scored(table, out, flag_rows(model, whole), out_format=out_format, safe_cells=safe_cells)
    schema = scored_schema(table.schema, table.name, estimates=model.estimates)
    flagged = ((rows, flag_rows(model, scores)) for rows, scores in scored())
    return write_scored_rows(out, schema, out_format, safe_cells, flagged)


def write_scored(
    table: Table, out: str, scores: Scores, *, out_format: str | None = None, safe_cells: bool = False
) -> ScoreSummary:
    """Write a table's rows with scores that are known already, one for each row, NaN where a row has no text."""

    def parts() -> Iterator[tuple[pa.Table, Scores]]:
        at = 0
        for batch in table.batches():
            yield pa.Table.from_batches([batch]), scores[at : at + len(batch)]
            at += len(batch)

    return write_scored_rows(out, scored_schema(table.schema, table.name), out_format, safe_cells, parts())


def check_output(table: Table, out: str, out_format: str | None = None, *, estimates: bool = False) -> None:
    """Raise, before any work is done, if the output could not be written as asked."""
    output_format(out, out_format)
    scored_schema(table.schema, table.name, estimates=estimates)
    if out != "-" and Path(out).exists() and Path(table.name).exists() and Path(out).samefile(table.name):
        raise UsageError(f"{out}: is the input itself; write to another file")
    if out != "-" and not Path(out).absolute().parent.is_dir():
        raise DataError(f"{out}: there is no folder {Path(out).parent}; create it first")


def stream_format(table: Table, out: str, asked: str | None) -> str | None:
    """For stdout the input's own format, if it holds columns; for files the one that their name tells."""
    if asked or out != "-":
        return asked
    return table.format if table.format in ("csv", "tsv", "jsonl") else "jsonl"
