"""Rows and their scores: what a model must offer, how texts become scores, and which columns are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from strays.encoders import Progress
from strays.errors import DataError
from strays.model import Scores
from strays.model.calibration import Threshold

# What is added to a row; null where the row has no text.
SCORE_FIELDS = (
    pa.field("anomaly_score", pa.float64()),
    pa.field("p_value", pa.float64()),
    pa.field("flagged", pa.bool_()),
)
# Added by a cascade: `full` where the score is the model's, `fast` where it is an estimate.
SCORED_BY = pa.field("scored_by", pa.string())


class Scorer(Protocol):
    """What a job needs of a model; TextOutlierDetector and CascadeScorer are such."""

    @property
    def threshold_(self) -> Threshold:
        """What is flagged."""

    @property
    def estimates(self) -> bool:
        """Whether some scores are estimates, so that every row says which way it was scored."""

    @property
    def fingerprint(self) -> str:
        """Hash of all that a score depends on; a job goes on only with the same."""

    def anomaly_score(self, texts: Sequence[str], *, progress: Progress | None = None) -> np.ndarray:
        """One float for each text; higher is odder. `progress` is called with (texts done, texts in all)."""

    def flag(self, scores: np.ndarray) -> Scores:
        """The p-values and flags of texts whose anomaly scores are known."""


@dataclass(frozen=True)
class ScoreSummary:
    """What became of the rows. As many came out as went in, or there would have been an error.

    n_resumed_rows were scored by an earlier run; n_remade parts had been written by one but were gone or cut off;
    rows_per_second counts what this run scored, and is None where that was nothing.
    """

    n_rows: int
    n_without_text: int
    n_flagged: int
    n_files: int = 1
    n_parts: int = 1
    n_resumed_rows: int = 0
    n_remade: int = 0
    rows_per_second: float | None = None
    ignored: tuple[str, ...] = ()
    # How many rows the model itself scored, in a cascade.
    n_by_full: int | None = None


@dataclass
class Tally:
    """Counts rows as they are written."""

    n_rows: int = 0
    n_without_text: int = 0
    n_flagged: int = 0
    n_by_full: int = 0

    def add(self, scores: Scores) -> None:
        """Count some rows, one score each."""
        self.n_rows += len(scores.anomaly_score)
        self.n_without_text += int(np.isnan(scores.anomaly_score).sum())
        self.n_flagged += int(scores.flagged.sum())
        self.n_by_full += 0 if scores.by_full is None else int(scores.by_full.sum())

    def summary(self, *, estimates: bool, n_files: int = 1, ignored: tuple[str, ...] = ()) -> ScoreSummary:
        """What became of all rows."""
        return ScoreSummary(
            self.n_rows,
            self.n_without_text,
            self.n_flagged,
            n_files=n_files,
            ignored=ignored,
            n_by_full=self.n_by_full if estimates else None,
        )


def score_texts(model: Scorer, texts: list[str | None], progress: Progress | None = None) -> np.ndarray:
    """One score for each row, NaN where it has no text; equal texts are scored once."""
    distinct = list(dict.fromkeys(text for text in texts if text is not None))
    scores = model.anomaly_score(distinct, progress=progress).tolist() if distinct else []
    found = dict(zip(distinct, scores, strict=True))
    return np.array([np.nan if text is None else found[text] for text in texts], dtype=np.float64)


def flag_rows(model: Scorer, anomaly_score: np.ndarray) -> Scores:
    """P-values and flags for rows of which some have no score (NaN)."""
    there = ~np.isnan(anomaly_score)
    judged = model.flag(anomaly_score[there])
    p_value, flagged = np.full(len(there), np.nan), np.zeros(len(there), dtype=bool)
    p_value[there], flagged[there] = judged.p_value, judged.flagged
    if judged.by_full is None:
        return Scores(anomaly_score, p_value, flagged)
    by_full = np.zeros(len(there), dtype=bool)
    by_full[there] = judged.by_full
    return Scores(anomaly_score, p_value, flagged, by_full)


def encoders_in(model: Scorer) -> list[Any]:
    """The encoders of a model, also of one that a cascade is made of."""
    inner = getattr(model, "model", model)
    found = [getattr(inner, "encoder_", None), getattr(getattr(inner, "cascade_", None), "encoder", None)]
    return [encoder for encoder in found if encoder is not None]


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


def scored_rows(rows: pa.Table, scores: Scores, schema: pa.Schema) -> list[pa.RecordBatch]:
    """The rows with their scores beside them."""
    absent = np.isnan(scores.anomaly_score)
    columns = [scores.anomaly_score, scores.p_value, scores.flagged]
    if scores.by_full is not None:
        columns.append(np.where(scores.by_full, "full", "fast").astype(object))
    fields = [schema.field(i) for i in range(len(rows.columns), len(schema))]
    added = [pa.array(c, f.type, mask=absent) for c, f in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays([*rows.columns, *added], schema=schema).to_batches()
