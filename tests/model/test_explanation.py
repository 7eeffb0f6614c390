"""Segments, their effects, the texts kept to compare with, and explanations of whole models."""

from __future__ import annotations

import io
import json
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from strays import TextOutlierDetector
from strays.apps.cli.terminal import show_explanation
from strays.errors import DataError, ModelError, UsageError
from strays.model.common_words import FUNCTION_WORDS, common_words
from strays.model.examples import Examples
from strays.model.explanation import Explanation, OddPart, Segment, effects, pieces
from strays.model.folder import load_folder, save_folder
from strays.model.normal_parts import NormalParts
from strays.model.segments import MOST_SEGMENTS, clauses, split
from tests.conftest import HashEncoder, farm_texts


def parts(text: str) -> list[str]:
    return [text[a:b] for a, b in split(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("...", []),
        ("word", []),
        ("word.", []),
        ("Chain slips on gear 3", ["Chain", "slips", "on", "gear", "3"]),
        ("It costs 3.14 euro, or not? Yes; it's so", ["It costs 3.14 euro,", "or not?", "Yes;", "it's so"]),
        ("one\ntwo three\n\nfour", ["one", "two three", "four"]),
        ("first part - second part", ["first part -", "second part"]),
        (
            "孩子发烧三天了\uff0c吃什么药好\uff1f明天股市大跌。",
            ["孩子发烧三天了\uff0c", "吃什么药好\uff1f", "明天股市大跌。"],
        ),
        ("孩子发烧三天", ["孩子", "发烧", "三天"]),
        ("用iPhone拍照", ["用", "iPhone", "拍照"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("يوم جميل\u060c هل أنت هنا\u061f نعم", ["يوم جميل\u060c", "هل أنت هنا\u061f", "نعم"]),
        ("Hello there, 😀😀, bye now", ["Hello there,", "😀😀,", "bye now"]),
    ],
)
def test_segments(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


def test_long_clauses_are_cut_evenly_and_long_texts_into_few_segments() -> None:
    first, *_, last = parts(" ".join(f"w{i}" for i in range(30)) + ", and an end")
    assert first == "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9"
    assert last == "and an end"
    assert len(parts("Some words here. " * 500)) <= MOST_SEGMENTS
    assert len(parts("word " * 5000)) <= MOST_SEGMENTS
    assert len(parts("字" * 5000)) <= MOST_SEGMENTS


def test_runs_of_marks_take_no_time() -> None:
    assert len(split("." * 200_000 + "x y, z" + "!" * 200_000)) == 2
    assert len(parts("!?" * 50_000 + " one, two")) == 2


@given(st.text(alphabet=st.sampled_from("ab 3.,!?\n-'()。\uff0c字漢ไe\u0301\u0939\u093f😀 "), max_size=80))
def test_segments_lie_in_order_and_leave_out_no_word(text: str) -> None:
    spans = split(text)
    covered = set()
    for (_, before), (start, end) in zip([(0, 0), *spans], spans, strict=False):
        assert before <= start < end
        assert text[start:end] == text[start:end].strip()
        covered |= set(range(start, end))
    assert all(i in covered for i, c in enumerate(text) if spans and unicodedata.category(c)[0] in "LMN")


def test_effects_are_by_hand() -> None:
    text = "good day, spam spam spam, bye"
    spans = split(text)
    scored = pieces(text, spans)
    without = ["spam spam spam, bye", "good day, bye", "good day, spam spam spam,"]
    assert scored == [*without, "good day,", "spam spam spam,", "bye"]
    segments = effects(
        text, spans, np.array([10.0 * piece.count("spam") + len(piece) for piece in scored]), frozenset()
    )
    assert segments[0].text == "spam spam spam,"
    rest, own = np.array([30 + 19, 13, 30 + 25]), np.array([9, 30 + 15, 3])
    expected = (2 * (rest.mean() - rest) + own - own.mean()) / 3
    assert [segment.effect for segment in segments] == pytest.approx(sorted(expected, reverse=True))
    assert effects("word", [], np.array([]), frozenset()) == []


@pytest.mark.parametrize("text", ["profits of the casino", "well, is it so, cheap pills"])
def test_common_words_alone_raise_no_score(text: str) -> None:
    """However high they score: what is left of them when other words are common too has no effect."""
    spans = split(text)
    alone = np.array([9.0 if text[a:b].strip(",") in ("of", "the", "is it so") else 1.0 for a, b in spans])
    scores = np.r_[-alone, alone]
    assert effects(text, spans, scores, frozenset())[0].text in ("of", "the", "is it so,")
    marked = [s.text for s in effects(text, spans, scores, FUNCTION_WORDS) if s.effect > 0]
    assert not {"of", "the", "is it so,"} & set(marked)


def test_words_of_many_normal_texts_are_common_in_any_language() -> None:
    texts = [f"ma a {n} kerékpár, és a {n + 1} lánc" for n in range(50)]
    common = common_words(texts)
    assert {"ma", "a", "és", "kerékpár"} <= common
    assert not {"7", "kaszinó"} & common
    assert common_words([]) == FUNCTION_WORDS
    assert "kaszinó" not in common_words(["kaszinó " * 90])  # one text is no custom


def test_clauses_are_cut_as_segments_are() -> None:
    text = "Dear all, " + "w " * 20 + ". Bye"
    assert clauses(text) == split(text)
    assert clauses("one clause only") == [(0, 15)]


def test_clauses_are_compared_with_clauses_of_their_length() -> None:
    pieces = ["two words"] * 50 + ["a clause of six words here"] * 50
    normal = NormalParts.from_scores(frozenset(), pieces, np.r_[np.arange(50) + 100, np.arange(50)])
    short, long = normal.p_value_for_length(["so short", "one that is longer than that"], np.array([120.0, 120.0]))
    assert long == pytest.approx(1 / 101)
    assert short > 0.5
    none = NormalParts.from_scores(frozenset(), [], np.array([]))
    assert none.p_value_for_length(["a"], np.array([9.0])).tolist() == [1.0]


# ---- whole models ----------------------------------------------------------------------------------------------------

NORMAL = farm_texts(120)
ODD = [f"cheap pills {word} casino winner" for word in ("now", "today", "here", "click", "free")]


@pytest.fixture(scope="module")
def model() -> TextOutlierDetector:
    return TextOutlierDetector(HashEncoder(32)).fit(NORMAL + ODD, [None] * 120 + ["anomaly"] * 5)


def test_the_foreign_clause_comes_first(model: TextOutlierDetector) -> None:
    explanation = model.explain("the cat sleeps in the garden, cheap pills casino, the dog eats near the barn")
    assert explanation.segments[0].text == "cheap pills casino,"
    assert explanation.segments[0].effect > 0


def test_the_odd_clause_is_named() -> None:
    clause = "cheap pills casino winner"
    model = TextOutlierDetector(HashEncoder(32)).fit(farm_texts(400))
    explanation = model.explain(f"{NORMAL[0]}, {clause}, {NORMAL[1]}")
    assert [part.text for part in explanation.odd_parts] == [f"{clause},"]
    assert explanation.odd_parts[0].p_value <= 0.02 / 3
    assert f'the odd part is "{clause}": alone, it is odder for its length than about 99' in explanation.what_is_odd()
    marked = [s.text for s in explanation.segments if explanation.strength(s)]
    assert marked == [f"{clause},"]


def test_normal_texts_have_nothing_odd_and_no_marks(model: TextOutlierDetector) -> None:
    found = model.explain_many([f"{a}, {b}" for a, b in zip(NORMAL[:40], NORMAL[40:80], strict=True)])
    ordinary = [e for e in found if e.nothing_odd]
    assert len(ordinary) >= 30
    for explanation in ordinary:
        assert explanation.p_value > 0.2
        assert explanation.what_is_odd() == "nothing in it is odd"
        assert not any(map(explanation.strength, explanation.segments))


@pytest.mark.parametrize("text", ["quark quark quark", "zebra quark, lattice meson, gluon boson", "quark"])
def test_a_text_odd_all_over_is_said_to_be_so(text: str) -> None:
    """Its parts are all as odd, and none is marked."""
    model = TextOutlierDetector(HashEncoder(64), detector="centroid").fit(NORMAL)
    explanation = model.explain(text)
    assert explanation.p_value <= 0.05
    assert explanation.odd_all_over
    assert not explanation.odd_parts
    assert explanation.what_is_odd() == "odd all over: no single part makes it odd"
    assert not any(map(explanation.strength, explanation.segments))


def test_a_model_finds_out_once_what_clauses_of_normal_texts_are_like() -> None:
    model = TextOutlierDetector(HashEncoder(32)).fit(NORMAL)
    model.encoder_.seen.clear()
    model.explain("one clause, another clause")
    assert len(model.encoder_.seen) == 2
    model.explain("one clause, another clause")
    assert len(model.encoder_.seen) == 3
    model.fit(NORMAL[:60]).encoder_.seen.clear()
    model.explain("one clause, another clause")
    assert len(model.encoder_.seen) == 2


def test_a_text_the_model_was_fitted_on_can_be_explained() -> None:
    """Its shortened forms are near to the text itself, which must not make every segment look odd."""
    strange = "the cat sleeps in the garden, cheap pills casino, the dog eats near the barn"
    model = TextOutlierDetector(HashEncoder(32)).fit([*NORMAL, strange])
    segments = model.explain(strange).segments
    assert segments[0].text == "cheap pills casino,"
    assert segments[0].effect > 0 > segments[-1].effect


def test_score_p_value_and_flag_are_those_of_the_model(model: TextOutlierDetector) -> None:
    text = "the cow wins cheap pills by the river"
    explanation, scores = model.explain(text), model.score([text])
    assert explanation.anomaly_score == pytest.approx(scores.anomaly_score[0])
    assert (explanation.p_value, explanation.flagged) == (scores.p_value[0], scores.flagged[0])


@pytest.mark.parametrize("rule", [{"top": 1}, {"max_false_share": 0.1}])
def test_rules_for_texts_scored_together_give_no_verdict_on_one(rule: dict) -> None:
    model = TextOutlierDetector(HashEncoder(32)).fit(NORMAL).set_threshold(**rule)
    assert model.explain(NORMAL[0]).flagged is None


def test_neighbours_are_the_most_similar_kept_texts(model: TextOutlierDetector) -> None:
    explanation = model.explain("the cat sleeps in the orchard", n_neighbours=4)
    assert len(explanation.nearest_normals) == 4
    assert {n.text for n in explanation.nearest_normals} <= set(NORMAL)
    assert {n.text for n in explanation.nearest_anomalies} <= set(ODD)
    x, *X = HashEncoder(32).encode(["the cat sleeps in the orchard", *NORMAL])
    cosine = np.array(X) @ x / np.linalg.norm(X, axis=1) / np.linalg.norm(x)
    nearest = np.sort(cosine)[::-1][:4].tolist()
    assert [n.similarity for n in explanation.nearest_normals] == pytest.approx(nearest, abs=1e-5)
    own = model.explain(NORMAL[0])
    assert NORMAL[0] not in [n.text for n in own.nearest_normals]


def test_copies_are_no_neighbours() -> None:
    """Neither the text's own, which differ in case, spacing and marks, nor several of one neighbour."""
    long = "please send the new chain " * 5 + "to the old shop behind the station before friday"
    copies = ["The  cat sleeps in the GARDEN!", "the cat sleeps, in the garden", long, long.replace("friday", "Sunday")]
    model = TextOutlierDetector(HashEncoder(32)).fit([*NORMAL, *copies, "cheap pills"], [None] * 124 + ["anomaly"])
    found = model.explain("the cat sleeps in the garden", n_neighbours=200)
    assert found.normal_copies >= 2
    assert f"{found.normal_copies} of the texts presumed normal are equal or nearly equal to it" in found.copies()
    shown = [n.text for n in found.nearest_normals]
    assert not set(copies[:2]) & set(shown)
    assert len(set(copies[2:]) & set(shown)) == 1
    assert sum(n.n_copies + 1 for n in found.nearest_normals) + found.normal_copies >= 123
    assert model.explain(long).normal_copies == 1  # itself does not count
    assert model.explain("Cheap pills!").copies() == "1 of the known anomalies is equal or nearly equal to it"
    assert model.explain("Cheap pills!").nearest_anomalies == []


def test_the_text_is_encoded_in_one_go(model: TextOutlierDetector) -> None:
    model.explain("warm up")
    model.encoder_.seen.clear()
    model.explain("one clause, another clause, a third")
    assert [len(texts) for texts in model.encoder_.seen] == [7]


def test_it_is_plain_data_and_words(model: TextOutlierDetector) -> None:
    explanation = model.explain("cheap pills, the cat sleeps")
    assert json.loads(json.dumps(explanation.to_dict())) == explanation.to_dict()
    assert f"p-value {explanation.p_value:.2g}" in explanation.in_words()
    base = {"text": "t", "anomaly_score": 1.0, "flagged": True, "segments": [], "nearest_normals": []}
    assert (
        Explanation(**base | {"flagged": None}, p_value=0.1, nearest_anomalies=[]).in_words().endswith("p-value 0.1)")
    )
    for p, words in (
        (0.0005, "odder than more than 99.9 % of"),
        (0.02, "odder than about 98 % of"),
        (0.7, "as ordinary as most of"),
    ):
        assert Explanation(**base, p_value=p, nearest_anomalies=[]).in_words().startswith(words)


def test_what_is_odd_is_quoted_without_marks_and_cut() -> None:
    segments = [Segment(0, 4, "one,", 2.0), Segment(5, 8, "two", 1.5), Segment(9, 12, "few", 0.2)]
    base = Explanation("one, two few", 1.0, 0.01, True, segments, [], [])
    assert base.what_is_odd() == 'what makes it odd is mostly "one" and "two"'
    assert [base.strength(s) for s in segments] == [1.0, 0.75, 0.0]
    parts = [OddPart(0, 4, "one,", 0.001), OddPart(5, 8, "two " * 30, 0.01)]
    words = replace(base, odd_parts=parts).what_is_odd()
    assert words.startswith('the odd parts are "one" and "two two')
    assert words.endswith('...": alone, each is odder for its length than about 99 % of the clauses of normal texts')
    assert len(words) < 200


def test_many_are_explained_as_one_by_one_with_one_call_of_the_encoder(model: TextOutlierDetector) -> None:
    texts = ["the cat sleeps, cheap pills", "word", "one clause, another clause, a third", "word"]
    alone = [model.explain(text) for text in texts]
    model.encoder_.seen.clear()
    together = model.explain_many(texts)
    assert len(model.encoder_.seen) == 1
    for found, expected in zip(together, alone, strict=True):
        assert _without_scores(found) == _without_scores(expected)
        assert found.anomaly_score == pytest.approx(expected.anomaly_score)
        assert _effects(found) == pytest.approx(_effects(expected), abs=1e-9)
    assert model.explain_many([]) == []
    with pytest.raises(DataError, match="no text to explain"):
        model.explain_many(["a text", "  "])


def _without_scores(explanation: Explanation) -> Explanation:
    return replace(explanation, anomaly_score=0.0, segments=[])


def _effects(explanation: Explanation) -> dict[tuple[int, int], float]:
    return {(segment.start, segment.end): segment.effect for segment in explanation.segments}


def test_a_saved_model_explains_the_same(model: TextOutlierDetector, tmp_path) -> None:
    model.save(tmp_path / "m")
    loaded = TextOutlierDetector.load(tmp_path / "m", encoder=HashEncoder(32))
    text = "the hen hides \ud83d\ude00, cheap pills"
    assert loaded.explain(text) == model.explain(text)


def test_a_model_may_keep_no_texts(tmp_path) -> None:
    model = TextOutlierDetector(HashEncoder(), keep_examples=0).fit(NORMAL)
    assert model.examples_.texts == []
    explanation = model.explain("the cat sleeps, cheap pills")
    assert explanation.segments
    assert explanation.nearest_normals == []
    model.save(tmp_path / "m")
    assert not any(NORMAL[0].encode() in path.read_bytes() for path in (tmp_path / "m").iterdir())
    with pytest.raises(UsageError, match="keep_examples is -1"):
        TextOutlierDetector(HashEncoder(), keep_examples=-1).fit(NORMAL)


@given(st.lists(st.text(max_size=8), max_size=6))
def test_any_texts_can_be_kept(texts: list[str]) -> None:
    kept = Examples(texts, np.zeros((len(texts), 2), dtype=np.float32), np.ones(len(texts), dtype=np.int8))
    assert Examples.from_arrays(kept.to_arrays(), 2).texts == texts


def test_examples_are_spread_over_the_corpus() -> None:
    kept = Examples.choose([str(i) for i in range(100)], np.zeros((100, 1)), np.r_[np.zeros(90), -np.ones(10)], 3)
    assert kept.texts == ["0", "44", "89", "90", "94", "99"]
    assert kept.y.tolist() == [0, 0, 0, -1, -1, -1]


def test_damaged_examples_are_refused(model: TextOutlierDetector, tmp_path) -> None:
    model.save(tmp_path / "m")
    config, arrays = load_folder(tmp_path / "m")
    arrays["examples/y"] = arrays["examples/y"][:-1]
    save_folder(tmp_path / "m", {k: v for k, v in config.items() if k != "arrays_sha256"}, arrays)
    with pytest.raises(ModelError, match="do not fit together"):
        TextOutlierDetector.load(tmp_path / "m", encoder=HashEncoder(32))


def test_bad_input_is_refused(model: TextOutlierDetector) -> None:
    with pytest.raises(DataError, match="expected a string"):
        model.explain(3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no text to explain"):
        model.explain(" \n")
    with pytest.raises(UsageError, match="not fitted"):
        TextOutlierDetector().explain("text")


def test_the_terminal_shows_it_safely(model: TextOutlierDetector) -> None:
    console = Console(width=100, record=True, force_terminal=True, color_system="truecolor", file=io.StringIO())
    hostile = "the cat sleeps, \x1b[31mcheap pills casino, the dog eats"
    show_explanation(model.explain(hostile).to_dict(), console)
    shown = console.export_text(styles=True)
    plain = "".join(c for c in shown if c != "\x1b")
    assert "cheap pills casino" in plain
    assert "presumed normal most like it" in plain
    assert "\x1b[31mcheap" not in shown
