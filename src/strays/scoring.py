"""A file in, the same rows with their scores out, in order and a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from strays.calibration import Threshold
from strays.corpus import no_text
from strays.errors import DataError, UsageError
from strays.model import Scores
from strays.tables import Table, open_writer, output_format
from strays.triage import CascadeScorer


class Scorer(Protocol):
    """What scoring needs of a model; TextOutlierDetector and CascadeScorer are such."""

    @property
    def threshold_(self) -> Threshold:
        """What is flagged."""

    def anomaly_score(self, texts: Sequence[str]) -> np.ndarray:
        """One float for each text; higher is odder."""

    def judge(self, scores: np.ndarray) -> Scores:
        """The p-values and flags of texts whose anomaly scores are known."""


# What is added to a row; null where the row has no text.
SCORE_FIELDS = (
    pa.field("anomaly_score", pa.float64()),
    pa.field("p_value", pa.float64()),
    pa.field("flagged", pa.bool_()),
)
# Added by a cascade: `full` where the score is the model's, `fast` where it is an estimate.
SCORED_BY = pa.field("scored_by", pa.string())


@dataclass(frozen=True)
class ScoreSummary:
    """What became of a file's rows."""

    n_rows: int
    n_without_text: int
    n_flagged: int
    # How many rows the model itself scored, in a cascade.
    n_by_full: int | None = None


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
    cascade = isinstance(model, CascadeScorer)
    check_output(table, out, out_format, cascade=cascade)

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
    return _write(table, out, one_by_one, out_format, safe_cells, cascade=cascade)


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


def judge_rows(model: Scorer, anomaly_score: np.ndarray) -> Scores:
    """P-values and flags for rows of which some have no score (NaN)."""
    there = ~np.isnan(anomaly_score)
    judged = model.judge(anomaly_score[there])
    p_value, flagged = np.full(len(there), np.nan), np.zeros(len(there), dtype=bool)
    p_value[there], flagged[there] = judged.p_value, judged.flagged
    if judged.by_full is None:
        return Scores(anomaly_score, p_value, flagged)
    by_full = np.zeros(len(there), dtype=bool)
    by_full[there] = judged.by_full
    return Scores(anomaly_score, p_value, flagged, by_full)


def check_output(table: Table, out: str, out_format: str | None = None, *, cascade: bool = False) -> None:
    """Raise, before any work is done, if the output could not be written as asked."""
    output_format(out, out_format)
    taken = [field.name for field in _added_fields(cascade) if field.name in table.columns]
    if taken:
        raise DataError(f"{table.name}: already has a column {taken[0]!r}; rename or drop it before scoring")
    if out != "-" and Path(out).exists() and Path(table.name).exists() and Path(out).samefile(table.name):
        raise UsageError(f"{out}: is the input itself; write to another file")
    if out != "-" and not Path(out).absolute().parent.is_dir():
        raise DataError(f"{out}: there is no folder {Path(out).parent}; make it first")


def _added_fields(cascade: bool) -> tuple[pa.Field, ...]:
    return (*SCORE_FIELDS, SCORED_BY) if cascade else SCORE_FIELDS


def _write(
    table: Table,
    out: str,
    parts: Iterator[Scores],
    out_format: str | None,
    safe_cells: bool,
    *,
    cascade: bool = False,
) -> ScoreSummary:
    fields = _added_fields(cascade)
    schema = pa.schema([*table.schema, *fields], metadata=table.schema.metadata)
    n_rows = n_without_text = n_flagged = n_by_full = 0
    with open_writer(out, schema, out_format, safe_cells=safe_cells) as write:
        for batch, scores in zip(table.batches(), parts, strict=True):
            absent = np.isnan(scores.anomaly_score)
            columns = [scores.anomaly_score, scores.p_value, scores.flagged]
            if scores.by_full is not None:
                columns.append(np.where(scores.by_full, "full", "fast").astype(object))
                n_by_full += int(scores.by_full.sum())
            added = [pa.array(c, f.type, mask=absent) for c, f in zip(columns, fields, strict=True)]
            write(pa.record_batch([*batch.columns, *added], schema=schema))
            n_rows += len(batch)
            n_without_text += int(absent.sum())
            n_flagged += int(scores.flagged.sum())
    return ScoreSummary(n_rows, n_without_text, n_flagged, n_by_full if cascade else None)
