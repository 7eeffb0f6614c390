"""Copies on one line of a ranking."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strays.jobs.alike import MOST_ROWS, group_alike
from strays.jobs.scan import Scan, scan_table
from strays.tables import Table
from tests.conftest import HashEncoder, farm_texts

STRAY = "win big cash now click here"


def scanned(texts: list[str | None], detector: str = "auto", **options: object) -> Scan:
    return scan_table(Table.of(pa.table({"text": texts}), "farm.csv"), HashEncoder(), detector, **options)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "A!", "b"]), st.sampled_from([-1, 0, 1]))))
def test_every_row_is_in_one_group_of_its_score_label_and_text(rows: list[tuple[int, str, int]]) -> None:
    score, texts, y = (np.array(column) for column in zip(*rows, strict=True)) if rows else (np.empty(0), [], [])
    groups = list(group_alike(np.argsort(-score, kind="stable"), score, texts, y, copies_tie=False))
    assert sorted(row for group in groups for row in group) == list(range(len(rows)))
    kinds = [{(rows[i][0], rows[i][1].lower().strip("!"), rows[i][2]) for i in group} for group in groups]
    assert all(len(kind) == 1 for kind in kinds)
    assert len(set.union(set(), *kinds)) == len(groups)  # and no kind has two groups
    assert all(group == sorted(group) for group in groups)
    assert [rows[group[0]][0] for group in groups] == sorted((rows[group[0]][0] for group in groups), reverse=True)


def test_rounding_does_not_part_copies() -> None:
    score = np.array([1.0, 1.0 + 2e-16, 1.0 - 1e-15, 1.0 - 1e-9])
    order = np.argsort(-score, kind="stable")
    assert list(group_alike(order, score, ["a"] * 4, np.zeros(4), copies_tie=True)) == [[0, 1, 2], [3]]


def test_no_more_texts_are_looked_at_than_are_shown() -> None:
    class Texts(list):
        def __getitem__(self, row: int) -> str:
            assert row < 4
            return "a text"

    score = np.array([9.0, 9.0, 8.0, 8.0, 7.0, 7.0])
    found = group_alike(np.arange(6), score, Texts(), np.zeros(6), copies_tie=False)
    assert list(islice(found, 2)) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("detector", ["auto", "nearest", "lof", "centroid"])
def test_copies_are_one_line_of_a_scan(detector: str) -> None:
    texts = [*farm_texts(300), None, *[STRAY] * 12]
    found = scanned(texts, detector).to_dict(top=400)
    assert [(row["n_alike"], row["rows_alike"]) for row in found["oddest"] if row["text"] == STRAY] == [
        (11, list(range(303, 314)))
    ]
    assert sum(1 + row["n_alike"] for row in found["oddest"]) == 312
    assert found["n_flagged"] == scanned(texts, detector).scores.flagged.sum()
    [first] = scanned(texts, detector).to_dict(top=1)["oddest"]
    assert first == found["oddest"][0]


def test_a_long_list_of_rows_is_cut() -> None:
    found = scanned([*farm_texts(300), *[STRAY] * 40], "lof").to_dict(top=400)
    [row] = [row for row in found["oddest"] if row["n_alike"]]
    assert (row["n_alike"], len(row["rows_alike"])) == (39, MOST_ROWS)


def test_paraphrases_are_one_group_where_only_copies_tie() -> None:
    alike = [
        STRAY,
        "click here now win big cash",
        "here now click cash big win",
    ]  # this encoder reads words in any order
    texts = [*farm_texts(300), *alike]
    for detector, n_lines in (("auto", 1), ("nearest", 1), ("centroid", 3)):
        oddest = scanned(texts, detector).to_dict(top=400)["oddest"]
        assert len([row for row in oddest if row["text"] in alike]) == n_lines, detector


def test_a_known_anomaly_is_not_alike_to_rows_that_nobody_has_called_one() -> None:
    table = pa.table({"text": [*farm_texts(100), *[STRAY] * 4], "label": [None] * 101 + ["anomaly"] * 2 + [None]})
    scan = scan_table(Table.of(table, "farm.csv"), HashEncoder(), "auto", label_column="label")
    found = [row for row in scan.to_dict(top=200)["oddest"] if row["text"] == STRAY]
    assert [(row["row"], row["label"], row["rows_alike"]) for row in found] == [
        (101, None, [104]),
        (102, "anomaly", [103]),
    ]
    assert all(scan.corpus.labels[group[0]] is None for group in scan.oddest(200, known=False))
