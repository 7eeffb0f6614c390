"""Rows and their scores: what a model must offer, how texts become scores, which columns are added and written."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from strays.encoders import Progress
from strays.errors import DataError, UsageError
from strays.files import real_path
from strays.model.calibration import Threshold
from strays.model.scores import RawScores, Scores
from strays.tables import Table, in_order, open_writer, output_format
from strays.tables.values import masked_array

# What is added to a row; null where the row has no text.
SCORE_FIELDS = (
    pa.field("anomaly_score", pa.float64()),
    pa.field("p_value", pa.float64()),
    pa.field("flagged", pa.bool_()),
)
# Added by a cascade: `full` where the score is the model's, `fast` where it is an estimate.
SCORED_BY = pa.field("scored_by", pa.string())


class Scorer(Protocol):
    """What a job needs of a model, such as TextOutlierDetector or CascadeScorer."""

    @property
    def threshold_(self) -> Threshold:
        """What is flagged."""

    @property
    def estimates(self) -> bool:
        """Whether some scores are estimates, so that every row says which model scored it."""

    @property
    def fingerprint(self) -> str:
        """Hash of all that a score depends on; a job resumes only with the same."""

    @property
    def encoder_identity(self) -> dict[str, Any]:
        """The encoder in use, with the digests of its files; a job resumes only with the same."""

    def raw_scores(self, texts: Sequence[str], *, progress: Progress | None = None) -> RawScores:
        """An anomaly score for each text, and, where some are estimates, which are not."""

    def flag(self, scores: np.ndarray) -> Scores:
        """The p-values and flags of texts whose anomaly scores are known."""


@dataclass(frozen=True)
class ScoreSummary:
    """What became of the rows. As many came out as went in, or there would have been an error.

    n_resumed_rows were scored by an earlier run; n_remade parts had been written by one but were gone or cut off;
    rows_per_second counts what this run scored, and is None where that was nothing.
    """

    n_rows: int = 0
    n_without_text: int = 0
    n_flagged: int = 0
    n_files: int = 1
    n_parts: int = 1
    n_resumed_rows: int = 0
    n_remade: int = 0
    rows_per_second: float | None = None
    ignored: tuple[str, ...] = ()
    # How many rows the model itself scored, in a cascade.
    n_by_full: int | None = None

    def plus(self, scores: Scores) -> ScoreSummary:
        """The summary with some more rows, one score each."""
        return replace(
            self,
            n_rows=self.n_rows + len(scores.anomaly_score),
            n_without_text=self.n_without_text + int(np.isnan(scores.anomaly_score).sum()),
            n_flagged=self.n_flagged + int(scores.flagged.sum()),
            n_by_full=None if scores.by_full is None else (self.n_by_full or 0) + int(scores.by_full.sum()),
        )


def score_texts(model: Scorer, texts: list[str | None], progress: Progress | None = None) -> RawScores:
    """One score for each row, NaN where it has no text."""
    there = np.array([text is not None for text in texts], dtype=bool)
    if not there.any():
        return RawScores(np.full(len(texts), np.nan), there if model.estimates else None)
    found = model.raw_scores([text for text in texts if text is not None], progress=progress)
    by_full = None if found.by_full is None else _spread(found.by_full, there, False)
    return RawScores(_spread(found.anomaly_score, there, np.nan), by_full)


def flag_rows(model: Scorer, raw: RawScores) -> Scores:
    """P-values and flags for rows of which some have no score (NaN)."""
    there = ~np.isnan(raw.anomaly_score)
    found = model.flag(raw.anomaly_score[there])
    p_value, flagged = _spread(found.p_value, there, np.nan), _spread(found.flagged, there, False)
    return Scores(raw.anomaly_score, p_value, flagged, raw.by_full)


def _spread(values: np.ndarray, there: np.ndarray, otherwise: float) -> np.ndarray:
    """The values where rows have one, in order, and something else where they have none."""
    spread = np.full(len(there), otherwise, dtype=values.dtype)
    spread[there] = values
    return spread


def scored_schema(schema: pa.Schema, name: str, *, estimates: bool = False) -> pa.Schema:
    """The columns of a table with this name and those that are added; an error where a column is there already."""
    fields = (*SCORE_FIELDS, SCORED_BY) if estimates else SCORE_FIELDS
    require_free(schema.names, name, fields)
    return pa.schema([*schema, *fields], metadata=schema.metadata)


def require_free(columns: list[str], name: str, fields: Sequence[pa.Field]) -> None:
    """Raise if a table with this name has a column already that is to be added."""
    taken = [field.name for field in fields if field.name in columns]
    if taken:
        raise DataError(f"{name}: already has a column {taken[0]!r}; rename or drop it before scoring")


@dataclass(frozen=True)
class OddestFirst:
    """An order for rows: the highest of their `scores` first, ties as they come, and rows without one (NaN) last.

    What does not fit into memory is kept in `folder` meanwhile, or else in one for temporary files.
    """

    scores: np.ndarray
    folder: Path | None = None

    def sort(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of batches in this order."""
        order = np.argsort(-self.scores, kind="stable")  # NaN comes last
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        if self.folder:  # what is in it is of a run that was stopped
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
        with TemporaryDirectory(prefix="strays-", dir=self.folder) as folder:
            yield from in_order(batches, places, Path(folder))


def write_scored_rows(
    out: str,
    schema: pa.Schema,
    format: str | None,
    safe_cells: bool,
    parts: Iterable[tuple[pa.Table, Scores]],
    delimiter: str | None = None,
    *,
    order: OddestFirst | None = None,
) -> ScoreSummary:
    """Write rows with their scores beside them to one file, in their own order or another, and count them."""
    summary = ScoreSummary()

    def scored() -> Iterator[pa.RecordBatch]:
        nonlocal summary
        for rows, scores in parts:
            yield from _scored_batches(rows, scores, schema)
            summary = summary.plus(scores)

    with open_writer(out, schema, format, safe_cells=safe_cells, delimiter=delimiter) as write:
        for batch in order.sort(scored()) if order else scored():
            write(batch)
    return summary


def _scored_batches(rows: pa.Table, scores: Scores, schema: pa.Schema) -> list[pa.RecordBatch]:
    absent = np.isnan(scores.anomaly_score)
    columns = [scores.anomaly_score, scores.p_value, scores.flagged]
    if scores.by_full is not None:
        columns.append(np.where(scores.by_full, "full", "fast").astype(object))
    added = [masked_array(column, absent) for column in columns]
    return pa.Table.from_arrays([*rows.columns, *added], schema=schema).to_batches()


def write_scored(
    table: Table,
    out: str,
    scores: Scores,
    *,
    out_format: str | None = None,
    safe_cells: bool = False,
    sort: bool = False,
) -> ScoreSummary:
    """Write a table's rows with scores that are known already, one for each row, NaN where a row has no text.

    They come in the table's order, or, with `sort`, the oddest first.
    """
    table = table.written_as(output_format(out, out_format))

    def parts() -> Iterator[tuple[pa.Table, Scores]]:
        at = 0
        for batch in table.batches():
            yield pa.Table.from_batches([batch]), scores[at : at + len(batch)]
            at += len(batch)

    schema, order = scored_schema(table.schema, table.name), OddestFirst(scores.anomaly_score) if sort else None
    delimiter = kept_delimiter(table, out, out_format)
    return write_scored_rows(out, schema, out_format, safe_cells, parts(), delimiter, order=order)


def kept_delimiter(table: Table, out: str, out_format: str | None) -> str | None:
    """The table's own delimiter, where the output has its format; else that of the output's format."""
    return table.delimiter if output_format(out, out_format) == table.format else None


def check_output(table: Table, out: str, out_format: str | None = None, *, estimates: bool = False) -> pa.Schema:
    """The columns of the output; raises, before any work is done, if it could not be written as asked."""
    output_format(out, out_format)
    schema = scored_schema(table.schema, table.name, estimates=estimates)
    if out != "-" and Path(out).exists() and Path(table.name).exists() and Path(out).samefile(table.name):
        raise UsageError(f"{out}: is the input itself; write to another file")
    if out != "-" and Path(table.name).is_dir() and real_path(table.name) in real_path(out).parents:
        raise UsageError(f"{out}: is inside the input {table.name} and would become one of its files; write elsewhere")
    if out != "-" and not Path(out).absolute().parent.is_dir():
        raise DataError(f"{out}: there is no folder {Path(out).parent}; create it first")
    return schema


def stream_format(table: Table, out: str, asked: str | None) -> str | None:
    """For stdout the input's own format, if it holds columns; for files the one that their name tells."""
    if asked or out != "-":
        return asked
    return table.format if table.format in ("csv", "tsv", "json", "jsonl") else "jsonl"
