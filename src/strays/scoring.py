"""A file in, the same rows with their scores out, in order and a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from strays.corpus import no_text
from strays.errors import DataError, UsageError
from strays.model import Scores, TextOutlierDetector
from strays.tables import Table, open_writer, output_format

# What is added to a row; null where the row has no text.
SCORE_FIELDS = (
    pa.field("anomaly_score", pa.float64()),
    pa.field("p_value", pa.float64()),
    pa.field("flagged", pa.bool_()),
)


@dataclass(frozen=True)
class ScoreSummary:
    """What became of a file's rows."""

    n_rows: int
    n_without_text: int
    n_flagged: int


def score_table(
    model: TextOutlierDetector,
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
    check_output(table, out, out_format)

    def batch_scores() -> Iterator[np.ndarray]:
        done = 0
        for texts in table.texts(text_column):
            if strict and None in texts:
                raise no_text(table.name, done + texts.index(None))
            scores = np.full(len(texts), np.nan)
            there = [i for i, text in enumerate(texts) if text is not None]
            scores[there] = model.anomaly_score([text for text in texts if text is not None])
            done += len(texts)
            if progress:
                progress(done)
            yield scores

    if model.threshold_.together:
        # Which rows are flagged is known only when all are scored; their scores alone fit in memory.
        judged = judge_rows(model, np.concatenate(list(batch_scores())))
        return write_scored(table, out, judged, out_format=out_format, safe_cells=safe_cells)
    one_by_one = (judge_rows(model, scores) for scores in batch_scores())
    return _write(table, out, one_by_one, out_format, safe_cells)


def write_scored(
    table: Table, out: str, scores: Scores, *, out_format: str | None = None, safe_cells: bool = False
) -> ScoreSummary:
    """Write a table's rows with scores that are known already, one for each row, NaN where a row has no text."""
    check_output(table, out, out_format)

    def parts() -> Iterator[Scores]:
        at = 0
        for batch in table.batches():
            part = slice(at, at + len(batch))
            yield Scores(scores.anomaly_score[part], scores.p_value[part], scores.flagged[part])
            at += len(batch)

    return _write(table, out, parts(), out_format, safe_cells)


def judge_rows(model: TextOutlierDetector, anomaly_score: np.ndarray) -> Scores:
    """P-values and flags for rows of which some have no score (NaN)."""
    there = ~np.isnan(anomaly_score)
    judged = model.judge(anomaly_score[there])
    p_value, flagged = np.full(len(there), np.nan), np.zeros(len(there), dtype=bool)
    p_value[there], flagged[there] = judged.p_value, judged.flagged
    return Scores(anomaly_score, p_value, flagged)


def check_output(table: Table, out: str, out_format: str | None = None) -> None:
    """Raise, before any work is done, if the output could not be written as asked."""
    output_format(out, out_format)
    taken = [field.name for field in SCORE_FIELDS if field.name in table.columns]
    if taken:
        raise DataError(f"{table.name}: already has a column {taken[0]!r}; rename or drop it before scoring")
    if out != "-" and Path(out).exists() and Path(table.name).exists() and Path(out).samefile(table.name):
        raise UsageError(f"{out}: is the input itself; write to another file")
    if out != "-" and not Path(out).absolute().parent.is_dir():
        raise DataError(f"{out}: there is no folder {Path(out).parent}; make it first")


def _write(table: Table, out: str, parts: Iterator[Scores], out_format: str | None, safe_cells: bool) -> ScoreSummary:
    schema = pa.schema([*table.schema, *SCORE_FIELDS], metadata=table.schema.metadata)
    n_rows = n_without_text = n_flagged = 0
    with open_writer(out, schema, out_format, safe_cells=safe_cells) as write:
        for batch, scores in zip(table.batches(), parts, strict=True):
            absent = np.isnan(scores.anomaly_score)
            columns = (scores.anomaly_score, scores.p_value, scores.flagged)
            added = [pa.array(c, f.type, mask=absent) for c, f in zip(columns, SCORE_FIELDS, strict=True)]
            write(pa.record_batch([*batch.columns, *added], schema=schema))
            n_rows += len(batch)
            n_without_text += int(absent.sum())
            n_flagged += int(scores.flagged.sum())
    return ScoreSummary(n_rows, n_without_text, n_flagged)
