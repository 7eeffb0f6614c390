"""One table in, the same rows with their scores out, a batch at a time: for pipes, and for scores known already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from strays.errors import DataError, UsageError
from strays.jobs.corpus import no_text
from strays.jobs.score.rows import Scorer, ScoreSummary, Tally, flag_rows, score_texts, scored_rows, scored_schema
from strays.model.scores import RawScores, Scores
from strays.tables import Table, open_writer, output_format


def score_table(
    model: Scorer,
    table: Table,
    text_column: str,
    out: str,
    *,
    out_format: str | None = None,
    strict: bool = False,
    safe_cells: bool = False,
    progress: Callable[[int], None] | None = None,
) -> ScoreSummary:
    """Score every row of a table and write all its columns and the scores; calls progress with the rows done so far."""
    check_output(table, out, out_format, estimates=model.estimates)

    def batch_scores() -> Iterator[RawScores]:
        done = 0
        for texts in table.texts(text_column):
            if strict and None in texts:
                raise no_text(table.name, done + texts.index(None))
            yield score_texts(model, texts)
            done += len(texts)
            if progress:
                progress(done)

    if model.threshold_.together:
        # Which rows are flagged is known only when all are scored; their scores alone fit in memory.
        whole = RawScores(np.concatenate([scores.anomaly_score for scores in batch_scores()]))
        return write_scored(table, out, flag_rows(model, whole), out_format=out_format, safe_cells=safe_cells)
    one_by_one = (flag_rows(model, scores) for scores in batch_scores())
    return _write(table, out, one_by_one, out_format, safe_cells, estimates=model.estimates)


def write_scored(
    table: Table, out: str, scores: Scores, *, out_format: str | None = None, safe_cells: bool = False
) -> ScoreSummary:
    """Write a table's rows with scores that are known already, one for each row, NaN where a row has no text."""
    check_output(table, out, out_format)

    def parts() -> Iterator[Scores]:
        at = 0
        for batch in table.batches():
            yield scores[at : at + len(batch)]
            at += len(batch)

    return _write(table, out, parts(), out_format, safe_cells)


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


def _write(
    table: Table,
    out: str,
    parts: Iterator[Scores],
    out_format: str | None,
    safe_cells: bool,
    *,
    estimates: bool = False,
) -> ScoreSummary:
    schema = scored_schema(table.schema, table.name, estimates=estimates)
    tally = Tally()
    with open_writer(out, schema, out_format, safe_cells=safe_cells) as write:
        for batch, scores in zip(table.batches(), parts, strict=True):
            for scored in scored_rows(pa.Table.from_batches([batch]), scores, schema):
                write(scored)
            tally.add(scores)
    return tally.summary(estimates=estimates)
