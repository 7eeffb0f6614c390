from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from strays.encoders.inputs import check_texts
from strays.errors import DataError

TEXTS = ["a cat", "a dog", "größer", ""]


class Frame:
    """What pandas, polars and Spark have in common."""

    columns = ("id", "text", "date")


class Sequence:
    """A column of Hugging Face datasets: neither a list nor registered as anything."""

    def __len__(self) -> int:
        return len(TEXTS)

    def __getitem__(self, i: int) -> str:
        return TEXTS[i]


@pytest.mark.parametrize(
    "given",
    [
        TEXTS,
        tuple(TEXTS),
        (text for text in TEXTS),
        dict.fromkeys(TEXTS).keys(),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS).dictionary_encode(),
        pa.chunked_array([TEXTS[:1], TEXTS[1:]]),
        pa.table({"text": TEXTS})["text"],
        Sequence(),
    ],
    ids=lambda given: type(given).__name__,
)
def test_any_column_of_strings_is_taken(given: object) -> None:
    texts = check_texts(given)  # type: ignore[arg-type]
    assert texts == TEXTS
    assert {type(text) for text in texts} == {str}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("one text", r"texts is a single string; expected a list. Pass \[text\]"),
        (b"one text", "texts is a single bytes"),
        (None, r"texts is None \(NoneType\); expected a list of texts"),
        (5, r"texts is 5 \(int\)"),
        (Path("x.csv"), "Path"),
        ({"text", "set"}, r"a set, which has no order; expected a list. Pass sorted\(texts\)"),
        (
            {"text": TEXTS, "id": [1]},
            r"a dict with the columns 'text', 'id'; expected one column. Pass dict\[\"text\"\]",
        ),
        (Frame(), r"a Frame with the columns 'id', 'text', 'date'; expected one column. Pass frame\[\"text\"\]"),
        (pa.table({"a": TEXTS, "b": TEXTS}), r"a Table with the columns 'a', 'b'; .* Pass table\[\"a\"\]"),
        (pa.table({f"c{i}": TEXTS for i in range(20)}), "'c7' and 12 more;"),
        (np.array([TEXTS, TEXTS]), r"an array of shape \(2, 4\); expected one column. Pass texts\[:, 2\]"),
        (np.zeros((2, 1)), r"an array of shape \(2, 1\); expected one column. Pass texts\[:, 0\]"),
        (np.array([["a1", "one text"], ["a2", "another"]]), r"Pass texts\[:, 1\]"),
        ({}, r"texts is a dict without columns; expected one column of strings$"),
        ({"a": [1, 2], "b": [None]}, r"with the columns 'a', 'b'; expected one column of strings$"),
        (pa.table({"ID": ["a1"], "Message": ["Is it ready?"]}), r'Pass table\["Message"\]'),
        (
            [{"id": 7, "body": "Is it ready?"}, {"id": 8, "body": "b"}],
            r"texts\[0\] is a dict with the columns 'id', 'body' .*; expected a string. "
            r'Pass \[row\["body"\] for row in texts\]',
        ),
        (np.array(3), r"an array of shape \(\)"),
        (["a", 3, None], r"texts\[1\] is 3 \(int\) \(2 entries are no strings\); expected a string"),
        (np.array([1.5, 2]), r"texts\[0\] is 1.5 \(float\)"),
        (["a", None], r"texts\[1\] is None, a missing text; expected a string. Drop such entries, or fill them"),
        (["a", float("nan")], r"texts\[1\] is nan, a missing text"),
        (["a", np.float32("nan")], r"texts\[1\] is .*nan"),
        (pa.array(["a", None]), r"texts\[1\] is None, a missing text"),
        ([["a"], ["b"]], r"texts\[0\] is \['a'\] \(list\)"),
    ],
)
def test_what_is_no_column_of_strings_is_refused_with_a_remedy(given: object, message: str) -> None:
    with pytest.raises(DataError, match=message) as raised:
        check_texts(given)  # type: ignore[arg-type]
    assert raised.value.param == "texts"


@pytest.mark.parametrize("dtype", ["object", "str", "string", "string[pyarrow]", "category"])
def test_series_of_pandas(dtype: str) -> None:
    pd = pytest.importorskip("pandas", reason="needs pandas")
    index = ["columns", "index", "ndim", "tolist"]  # a Series answers for the names in its index
    assert check_texts(pd.Series(TEXTS, dtype=dtype, index=index)) == TEXTS
    with pytest.raises(DataError, match=r"texts\[4\] is .*, a missing text"):
        check_texts(pd.Series([*TEXTS, None], dtype=dtype))


@pytest.mark.parametrize("make", [lambda frame: frame, lambda frame: frame[["text"]]])
def test_tables_of_pandas(make: Callable) -> None:
    pd = pytest.importorskip("pandas", reason="needs pandas")
    with pytest.raises(DataError, match=r'a DataFrame with the columns? .*Pass df\["text"\]'):
        check_texts(make(pd.DataFrame({"id": range(4), "text": TEXTS})))


def test_the_advice_names_the_column_that_holds_texts() -> None:
    pd = pytest.importorskip("pandas", reason="needs pandas")
    messages = ["Is it ready?", None]
    frame = pd.DataFrame({"ID": ["H-1", "H-2"], "Channel": ["web", "email"], "Message": messages, 4: [1, 2]})
    several = r"columns 'ID', 'Channel', 'Message', 4; expected one column. "
    with pytest.raises(DataError, match=several + r'Pass df\["Message"\]'):
        check_texts(frame)
    single = "with the column 'Message'; expected the column itself. "
    with pytest.raises(DataError, match=single + r'Pass df\["Message"\]'):
        check_texts(frame[["Message"]])
    with pytest.raises(DataError, match=r"Pass df\[1\]"):
        check_texts(pd.DataFrame([["a", "a longer text"]]))


def test_polars() -> None:
    pl = pytest.importorskip("polars", reason="needs polars")
    frame = pl.DataFrame({"id": range(4), "text": TEXTS})
    assert check_texts(frame["text"]) == TEXTS
    with pytest.raises(DataError, match=r'a DataFrame with the columns .*Pass df\["text"\]'):
        check_texts(frame)
