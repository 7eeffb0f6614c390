from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from strays.errors import DataError
from strays.model.labels import parse_labels


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, np.float32("nan"), "", "  "])
def test_what_is_missing_is_no_label(missing: object) -> None:
    assert parse_labels(["normal", missing, "anomaly"], 3).tolist() == [1, 0, -1]


@pytest.mark.parametrize(
    "labels",
    [
        pa.array(["Normal", None, "anomaly "]),
        pa.chunked_array([["normal"], [None, "anomaly"]]),
        np.array(["normal", "", "anomaly"]),
        ("normal", None, "anomaly"),
        iter(["normal", None, "anomaly"]),
    ],
)
def test_any_column_of_labels_is_taken(labels: object) -> None:
    assert parse_labels(labels, 3).tolist() == [1, 0, -1]  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["object", "str", "string", "string[pyarrow]", "category"])
def test_labels_of_pandas(dtype: str) -> None:
    pd = pytest.importorskip("pandas", reason="needs pandas")
    assert parse_labels(pd.Series(["normal", None, "anomaly"], dtype=dtype), 3).tolist() == [1, 0, -1]
    assert parse_labels([pd.NA, pd.NaT, "anomaly"], 3).tolist() == [0, 0, -1]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["normal"], "got 1 labels for 3 texts; expected one label"),
        ("abc", "labels is a single string"),
        (["normal", "odd", None], r"labels\[1\] is 'odd'; expected 'normal', 'anomaly', or nothing"),
        ([1, -1, 0], r"labels\[0\] is 1; .*Numbers are not taken, since 1 is an anomaly in some files"),
        ([True, False, True], r"labels\[0\] is True; .*Numbers are not taken"),
        (pa.table({"a": [1], "label": [2]}), r"labels is a Table with the columns 'a', 'label'; expected one column"),
        ([["normal"], None, None], r"labels\[0\] is \['normal'\]"),
    ],
)
def test_what_is_no_label_is_refused(labels: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_labels(labels, 3)  # type: ignore[arg-type]
