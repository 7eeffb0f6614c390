"""Which column holds the texts, and what is said about it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from strays.errors import DataError
from strays.tables import Table

PROSE = [f"My chain slips on hill number {i}, can you look at it?" for i in range(30)]
SHORT = [f"Chain {i}" for i in range(30)]
IDS = [f"T-{i:04}" for i in range(30)]
CATEGORIES = ["phone call", "e-mail", "chat"] * 10
DATES = [f"2024-03-{i + 1:02}" for i in range(30)]
URLS = [f"https://example.org/a/very/long/address/of/a/page/number/{i}/that/is/longer/than/texts" for i in range(30)]
NUMBERS = [f"{i},5" for i in range(30)]
CHINESE = [f"肝硬化是什么病和它的症状第{i}个问题" for i in range(30)]


@pytest.mark.parametrize(
    ("columns", "name", "reason"),
    [
        ({"text": SHORT, "body": PROSE}, "text", None),
        ({"review": PROSE}, "review", None),
        ({"ID": IDS, "Channel": CATEGORIES, "Message": PROSE}, "Message", "by its name, of 3 columns"),
        ({"Channel": CATEGORIES, "message_id": URLS, "MessageBody": PROSE}, "MessageBody", "by its name"),
        ({"title": SHORT, "body": PROSE}, "body", "by its name"),
        ({"title": SHORT, "story": PROSE}, "story", "the longest strings of 2 columns"),
        ({"a": IDS, "b": CATEGORIES, "c": DATES, "d": URLS, "e": PROSE}, "e", "the longest strings of 5 columns"),
        ({"n": NUMBERS, "x": SHORT}, "x", "the only one with texts, of 2 columns"),
        ({"id": IDS, "word": SHORT}, "word", "the only one with texts, of 2 columns"),
        ({"key": IDS, "frage": CHINESE}, "frage", "the longest strings of 2 columns"),
        ({"comment": ["", None, "fine by me"] * 10, "name": IDS}, "comment", "by its name"),
    ],
)
def test_the_column_is_told_by_names_and_contents(columns: dict[str, list], name: str, reason: str | None) -> None:
    chosen = Table.of(pa.table(columns)).choose_text_column()
    assert chosen.name == name
    assert (chosen.reason is None) if reason is None else reason in str(chosen.reason)
    note = chosen.note()
    assert note is None if reason is None else f"column {name!r}" in str(note)


@pytest.mark.parametrize(
    "columns",
    [
        {"question": PROSE, "answer": PROSE},
        {"one": PROSE, "two": [text[::-1] for text in PROSE]},
        {"a": IDS, "b": CATEGORIES},
        {"review": SHORT, "profile": [text * 3 for text in PROSE]},
        {"a": DATES, "b": URLS},
    ],
)
def test_what_is_not_clear_is_refused_with_an_example(columns: dict[str, list]) -> None:
    with pytest.raises(DataError, match=r"could hold the texts; its columns are '.*text_column, for example '"):
        Table.of(pa.table(columns)).text_column()


def test_columns_that_hold_something_else_are_none() -> None:
    table = Table.of(pa.table({"remark": PROSE, "answer": PROSE}))
    assert table.text_column(besides=("answer",)) == "remark"
    assert table.choose_text_column("answer").reason is None
