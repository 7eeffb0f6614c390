"""Hostile texts look dull."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strays.jobs.report.safe import MOST_MARKS, cut, dull, one_line


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain text, 3.14", "plain text, 3.14"),
        ("größer 中文 नमस्ते ไทย", "größer 中文 नमस्ते ไทย"),
        ("a\u202eb", "a\u2039U+202E\u203ab"),
        ("\u2066x\u2069", "\u2039U+2066\u203ax\u2039U+2069\u203a"),
        ("zero\u200bwidth", "zero\u2039U+200B\u203awidth"),
        ("\x00\x1b[31m\r\x7f", "␀␛[31m␍\u2039U+007F\u203a"),
        ("half \ud800", "half \u2039U+D800\u203a"),
        ("line\u2028end", "line\u2039U+2028\u203aend"),
        ("👩\u200d🔬", "👩\u200d🔬"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
    ],
)
def test_what_is_hidden_is_seen(text: str, seen: str) -> None:
    assert dull(text) == seen


def test_marks_do_not_pile_up() -> None:
    assert dull("a" + "\u0301" * 10_000 + "b") == "a" + "\u0301" * MOST_MARKS + "\u20399,995 more marks\u203ab"
    assert len(dull("\u200d" * 1000)) < 40


@given(st.text(st.characters(), max_size=60))
def test_any_text_can_be_written(text: str) -> None:
    seen = dull(text)
    seen.encode("utf-8")
    kinds = {unicodedata.category(c) for c in seen if c not in "\n\t\u200c\u200d"}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert len(one_line(text, 20)) <= 20
    assert "\n" not in one_line(text, 20)


def test_long_texts_are_cut() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"
    assert one_line("word " * 1_000_000, 10) == "word word…"
