"""Files as corpora: labels from words and from categories, and what rows are called."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from strays.errors import DataError, StraysWarning, UsageError
from strays.jobs.columns import NormalValues, shortened, shortened_apart
from strays.jobs.corpus import read_corpus
from strays.tables import Table
from strays.tables.table import JSON_TEXT

ANIMALS = ["a cat", "a dog", "a hen", "a cow"]


def corpus_of(texts: list[str] | None = None, *, asks: dict[str, Any] | None = None, **columns: Any) -> Any:
    texts = texts or [f"text {i}" for i in range(len(next(iter(columns.values()))))]
    return read_corpus(Table.of(pa.table({"text": texts, **columns}), "pile.csv"), **(asks or {}))


# ---- labels ----------------------------------------------------------------------------------------------------------


def test_a_column_without_any_label_is_said() -> None:
    with pytest.warns(StraysWarning, match=r"pile.csv: column 'verdict' \(label_column\) is empty"):
        corpus_of(verdict=[None, "", "NaN"], asks={"label_column": "verdict"})
    assert corpus_of(verdict=[None, "normal"], asks={"label_column": "verdict"}).labels == [None, "normal"]


@pytest.mark.parametrize(
    "column",
    [
        ["normal", "anomaly", None, ""],
        [" Normal", "ANOMALY\t", "  ", "nan"],
        ["normal", "anomaly", "None", "NULL"],
        ["NORMAL ", "Anomaly", "<NA>", "n/a"],
        pa.array(["normal", "anomaly", None, ""]).dictionary_encode(),
    ],
)
def test_labels_are_words_in_any_case_and_what_is_missing_is_no_label(column: Any) -> None:
    assert corpus_of(label=column, asks={"label_column": "label"}).labels == ["normal", "anomaly", None, None]


def test_a_label_that_is_no_word_is_refused_with_its_row_and_categories_with_the_remedy() -> None:
    with pytest.raises(DataError, match=r"pile\.csv, row 3: the label in column 'kind' is 'spam'") as refused:
        corpus_of(kind=["", "normal", "spam", "normal", "ham"], asks={"label_column": "kind"})
    assert "'normal', 'spam', 'ham'" in str(refused.value)
    assert "--normal, such as 'kind=normal'" in refused.value.named(lambda name: f"--{name}")


def test_values_that_are_all_different_are_not_called_categories() -> None:
    with pytest.raises(DataError, match="row 1: the label in column 'kind' is 'x0'") as refused:
        corpus_of(kind=[f"x{i}" for i in range(300)], asks={"label_column": "kind"})
    assert refused.value.params == ()


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (["sports", "news", None, " "], ("sports",), ["normal", "anomaly", None, None]),
        (["Sports ", "chess", "news", "NaN"], ("sports", "CHESS"), ["normal", "normal", "anomaly", None]),
        (["none", "news", "", "null"], ("none",), ["normal", "anomaly", None, None]),
        ([1, 0, None, 2], ("1",), ["normal", "anomaly", None, "anomaly"]),
        ([1.0, 0.5, float("nan"), None], ("1",), ["normal", "anomaly", None, None]),
        ([True, False, None, True], ("true",), ["normal", "anomaly", None, "normal"]),
        (["a=b", "a", "b", "=b"], ("a=b",), ["normal", "anomaly", "anomaly", "anomaly"]),
    ],
)
def test_a_column_of_categories_becomes_labels(column: Any, values: tuple[str, ...], expected: Any) -> None:
    assert corpus_of(kind=column, asks={"normal": NormalValues("kind", values)}).labels == expected


def test_json_values_of_several_kinds_are_categories_too() -> None:
    schema = pa.schema([pa.field("text", pa.string()), pa.field("kind", pa.string(), metadata=JSON_TEXT)])
    rows = pa.table([ANIMALS, ['"ham"', "7", "null", None]], schema=schema)
    corpus = read_corpus(Table.of(rows), normal=NormalValues("kind", ("ham",)))
    assert corpus.labels == ["normal", "anomaly", None, None]


def test_categories_that_nobody_has_are_refused_with_those_that_are_there() -> None:
    kinds = ["news"] * 2 + ["News "] + ["chess"] * 2 + ["go"]
    with pytest.raises(DataError, match=r"no row has 'sport' in column 'kind'.*'news', 'chess', 'go'"):
        corpus_of(kind=kinds, asks={"normal": NormalValues("kind", ("news", "sport"))})
    with pytest.raises(DataError, match="there is no column 'topic'"):
        corpus_of(kind=kinds, asks={"normal": NormalValues("topic", ("news",))})
    with pytest.raises(UsageError, match="got label_column and normal"):
        corpus_of(kind=kinds, asks={"label_column": "kind", "normal": NormalValues("kind", ("news",))})


def test_pairs_of_column_and_value() -> None:
    assert NormalValues.parse(["a b=c=d "]) == NormalValues("a b", ("c=d",))
    for wrong in (["topic"], ["=sports"], ["topic="], ["topic= "], ["a=1", "b"], ["a=1", "b=1"]):
        with pytest.raises(UsageError, match="normal"):
            NormalValues.parse(wrong)


def test_the_column_of_labels_is_not_the_text() -> None:
    rows = pa.table({"body": ANIMALS, "kind": ["x", "y", "x", "y"]})
    assert read_corpus(Table.of(rows), normal=NormalValues("kind", ("x",))).texts == ANIMALS


# ---- ids -------------------------------------------------------------------------------------------------------------


def test_rows_are_called_by_a_column_named_id() -> None:
    corpus = corpus_of(["a", " ", "c"], Id=["k1", "k2", "k3"])
    assert (corpus.id_column, corpus.ids, corpus.rows) == ("Id", ["k1", "k3"], [0, 2])
    assert corpus_of(id=[7, 8, 9]).ids == ["7", "8", "9"]


@pytest.mark.parametrize("ids", [["k1", "k1", "k3"], ["k1", None, "k3"], ["k1", "  ", "k3"]])
def test_a_column_named_id_that_does_not_tell_rows_apart_is_used_only_when_asked_for(ids: list[str | None]) -> None:
    assert corpus_of(id=ids).ids is None
    assert corpus_of(id=ids).id_column is None
    asked = corpus_of(id=ids, asks={"id_column": "id"})
    assert asked.ids == [id_ and (id_.strip() or None) for id_ in ids]


def test_an_id_column_must_be_there_and_is_not_the_text() -> None:
    with pytest.raises(DataError, match="there is no column 'ref'"):
        corpus_of(id=["a", "b", "c"], asks={"id_column": "ref"})
    rows = pa.table({"ref": ["k1", "k2", "k3", "k4"], "body": ANIMALS})
    corpus = read_corpus(Table.of(rows), id_column="ref")
    assert (corpus.texts, corpus.ids) == (ANIMALS, ["k1", "k2", "k3", "k4"])
    assert read_corpus(Table.of(pa.table({"id": ANIMALS})), "id").ids is None


def test_documents_are_called_by_their_files() -> None:
    rows = pa.table({"file": ["a/1.txt", "a/2.txt"], "text": ["a cat", "a dog"]})
    table = Table("letters", "documents", rows.schema, lambda first_row: iter(rows.slice(first_row).to_batches()))
    assert read_corpus(table).ids == ["a/1.txt", "a/2.txt"]
    assert read_corpus(Table.of(rows)).ids is None


def test_known_texts_beside_the_file_have_no_id() -> None:
    corpus = corpus_of(ANIMALS, id=["1", "2", "3", "4"], asks={"known": ["a dog", "a quark"]})
    assert corpus.texts == [*ANIMALS, "a quark"]
    assert corpus.labels == [None, "anomaly", None, None, "anomaly"]
    assert corpus.ids == ["1", "2", "3", "4"]


@pytest.mark.parametrize("most", [2, 3, 10, 11, 36])
def test_a_long_id_keeps_both_ends(most: int) -> None:
    id_ = "letters/2024/march/0017-complaint.txt"
    short = shortened(id_, most)
    assert len(short) == most
    start, _, end = short.partition("\u2026")
    assert id_.startswith(start)
    assert id_.endswith(end)
    assert shortened(id_, 37) == id_


@pytest.mark.parametrize("most", [12, 20, 40])
def test_short_ids_differ_where_the_ids_do(most: int) -> None:
    ids = [f"letters/2024/number-{i:03}-of-the-year-of-the-dragon.txt" for i in range(20)]
    short = shortened_apart(ids, most)
    assert len(set(short)) == 20
    assert max(map(len, short)) <= most
    assert shortened_apart(["a", "a", "b"], most) == ["a", "a", "b"]
    assert shortened_apart([], most) == []
