"""Scoring inside Spark: a function for DataFrame.mapInPandas, and the schema of what it gives.

    from strays.engines.spark import score_in_pandas, scored_schema

    scored = frame.mapInPandas(score_in_pandas("model", text_column="title"), scored_schema(frame.schema))

Pandas is all that it needs itself. The model's folder must be on a path that all nodes see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from strays.errors import DataError, ModelError, UsageError, first_line
from strays.files import sha256
from strays.jobs.score.rows import SCORE_FIELDS, flag_rows, require_free, score_texts
from strays.model import TextOutlierDetector
from strays.model.folder import CONFIG
from strays.tables import texts_of

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.types import StructType


def score_in_pandas(
    model: str | Path,
    *,
    text_column: str = "text",
    max_false_alarms: float | None = None,
    flag_rate: float | None = None,
    max_false_share: float | None = None,
    top: int | None = None,
    device: str = "auto",
) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """A function that adds anomaly_score, p_value and flagged to data frames, as they come.

    Every column passes through, and rows keep their order. A row without a text (null, empty or blank) gets nulls. Each
    worker process loads the model once. `max_false_alarms` or `flag_rate` takes the place of the model's threshold;
    `top` and `max_false_share`, which look at all rows together, are refused.
    """
    if find_spec("pandas") is None:
        raise UsageError("this needs pandas, which is not installed; install it with: pip install 'strays[spark]'")
    folder, rule = str(Path(model).absolute()), (max_false_alarms, flag_rate)
    first = _load(folder, rule, device)
    given = "top" if top is not None else "max_false_share" if max_false_share is not None else None
    if given or first.threshold_.together:
        rule_name = given or first.threshold_.rule
        raise UsageError(
            f"{{{rule_name}}} looks at the scores of all rows, of which a worker sees a part; use {{max_false_alarms}} "
            "or {flag_rate}, or `strays score` on files",
            param=(rule_name, "max_false_alarms", "flag_rate"),
        )
    digest = _digest(folder)

    def score(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        scorer = _kept(folder, digest, rule, device)
        for frame in frames:
            yield _scored(scorer, frame, text_column)

    return score


def scored_schema(schema: StructType) -> StructType:
    """The schema of a Spark data frame with the columns that are added."""
    from pyspark.sql.types import BooleanType, DoubleType, StructField, StructType

    types = {pa.float64(): DoubleType(), pa.bool_(): BooleanType()}
    require_free(schema.names, "this frame", SCORE_FIELDS)
    return StructType([*schema.fields, *(StructField(field.name, types[field.type]) for field in SCORE_FIELDS)])


def _scored(model: TextOutlierDetector, frame: pd.DataFrame, text_column: str) -> pd.DataFrame:
    import pandas as pd

    if text_column not in frame.columns:
        listed = ", ".join(map(repr, frame.columns))
        raise DataError(
            f"there is no column {text_column!r} ({{text_column}}); the columns are {listed}", param="text_column"
        )
    require_free(list(frame.columns), "this frame", SCORE_FIELDS)
    try:
        column = pa.array(frame[text_column], pa.string(), from_pandas=True)
    except (pa.ArrowException, TypeError) as error:
        words = f"column {text_column!r} holds more than texts ({first_line(error)}); expected strings"
        raise DataError(words) from error
    scores = flag_rows(model, score_texts(model, texts_of(pa.table({text_column: column}), text_column)))
    return frame.assign(
        anomaly_score=scores.anomaly_score,
        p_value=scores.p_value,
        flagged=pd.arrays.BooleanArray(scores.flagged, np.isnan(scores.anomaly_score)),
    )


def _load(folder: str, rule: tuple[float | None, float | None], device: str) -> TextOutlierDetector:
    model = TextOutlierDetector.load(folder, device=device)
    if rule != (None, None):
        model.set_threshold(max_false_alarms=rule[0], flag_rate=rule[1])
    return model


def _digest(folder: str) -> str:
    """What tells a model from one that is saved over it: its config holds the hash of its arrays."""
    return sha256(Path(folder) / CONFIG)


@lru_cache(maxsize=2)
def _kept(folder: str, digest: str, rule: tuple[float | None, float | None], device: str) -> TextOutlierDetector:
    """The model, loaded once in a worker process, which may live through several jobs."""
    model = _load(folder, rule, device)
    if _digest(folder) != digest:
        raise ModelError(f"{folder}: is not the model that this job began with; call score_in_pandas again")
    return model.without_cache()  # locks do not hold on a disk that nodes share
