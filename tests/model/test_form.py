"""The form of texts: columns against a plain reference, left-out values against refits, and what they do to a model."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strays import TextOutlierDetector
from strays.errors import DataError, ModelError
from strays.jobs.metrics import auc
from strays.model import form
from strays.model.form import COLUMNS, FormReader

TEXTS = [
    "",
    " ",
    "a",
    "The ROAD to Rome, 42 km!!!",
    "the road to rome, 17 km",
    "tab\tand\nnew line  twice  twice",
    "naïve Ångström ΑΒΓ straße İstanbul",
    "\U0001f600\U0001f600 emoji \U0001d400 \U00010400",
    "我们今天去公园。我们明天也去。",
    "\0 zero \0\0\0\0\0 in it",
    "\ud800 half of a pair",
    "aaaaaaaaaaaaaaa",
    "$ + € < >",
]


def sequences(text: str) -> list[str]:
    """What is counted of a text, spelt out."""
    folded = "".join(fold(character) for character in text.replace("\0", " "))
    padded = "\0" * 4 + folded + "\0"
    return [
        padded[i - 1 : i + 1] if ord(padded[i]) >= form.FIRST_SYLLABLE else padded[i - 4 : i + 1]
        for i in range(4, len(padded))
    ]


def fold(character: str) -> str:
    if character.isspace() or unicodedata.category(character)[0] == "Z":
        return " "
    if unicodedata.category(character)[0] == "N":
        return "0"
    return lower if len(lower := character.lower()) == 1 else character


def rarity(text: str, others: Sequence[str]) -> float:
    n_with = [sum(sequence in set(sequences(other)) for other in others) for sequence in sequences(text)]
    return float(np.mean([-math.log((n + 0.5) / (len(others) + 1)) for n in n_with]))


def shape(text: str) -> list[float]:
    text = text.replace("\0", " ")
    kinds = [" " if character.isspace() else unicodedata.category(character) for character in text]
    n = {kind: sum(found.startswith(kind) for found in kinds) for kind in ("N", "P", "S", "Lu", "Lt", "Z", " ")}
    upper, letters = n["Lu"] + n["Lt"], len(text) - n["N"] - n["P"] - n["S"] - n["Z"] - n[" "]
    is_space = [kind[0] in "Z " for kind in kinds]
    begins = [i for i, (before, here) in enumerate(pairwise([True, *is_space])) if before and not here]
    words = text.casefold().split()
    return [
        math.log1p(len(text)),
        n["N"] / max(len(text), 1),
        upper / max(letters, 1),
        n["P"] / max(len(text), 1),
        n["S"] / max(len(text), 1),
        math.log(max((len(list(run)) for _, run in groupby(text)), default=1)),
        sum(word in words[:i] for i, word in enumerate(words)) / max(len(words), 1),
        sum(kinds[i] in ("Lu", "Lt") for i in begins) / max(len(begins), 1),
    ]


def test_columns_are_those_of_the_reference() -> None:
    found = FormReader.of(TEXTS[3:]).columns([*TEXTS, "a fresh text, 99 words"])
    for text, columns in zip([*TEXTS, "a fresh text, 99 words"], found, strict=True):
        others = [other for other in TEXTS[3:] if other != text]
        np.testing.assert_allclose(columns, [rarity(text, others), *shape(text)], atol=1e-5, err_msg=repr(text))


@settings(max_examples=60)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=6), st.lists(st.text(max_size=40), max_size=4))
def test_any_texts_are_read_as_the_reference_reads_them(known: list[str], fresh: list[str]) -> None:
    """But for sequences of one hash, which are taken for the same, and so for more common than they are."""
    known = list(dict.fromkeys(known))
    found = FormReader.of(known).columns([*known, *fresh])
    for text, columns in zip([*known, *fresh], found, strict=True):
        others = [other for other in known if other != text]
        np.testing.assert_allclose(columns[1:], shape(text), atol=1e-9)
        assert columns[0] <= rarity(text, others) + 1e-5


def test_a_counted_text_is_left_out_of_its_own_counts() -> None:
    reader = FormReader.of(TEXTS)
    for i, text in enumerate(TEXTS):
        without = FormReader.of(TEXTS[:i] + TEXTS[i + 1 :])
        np.testing.assert_array_equal(reader.columns([text]), without.columns([text]))


@pytest.mark.parametrize("at_once", [1, 30, 10**6])
def test_a_row_depends_on_its_text_alone(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = FormReader.of(TEXTS[::2])
    alone = np.vstack([reader.columns([text]) for text in TEXTS])
    monkeypatch.setattr(form, "READ_AT_ONCE", at_once)
    np.testing.assert_array_equal(reader.columns(TEXTS), alone)
    again = FormReader.of(TEXTS[::2])
    for name, array in reader.to_arrays().items():
        np.testing.assert_array_equal(again.to_arrays()[name], array)


def test_a_long_text_is_read_to_a_limit_but_has_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "MOST_READ", 12)
    [cut, whole] = FormReader.of(["one two three"]).columns(["four five six 1234", "four five si"])
    length = COLUMNS.index("length")
    assert cut[length] == pytest.approx(math.log1p(18))
    np.testing.assert_array_equal(np.delete(cut, length), np.delete(whole, length))


def test_copies_count_once_and_leave_one_another_out() -> None:
    spam = "win 500 now", "now win 600!", "win, win 700"
    alone, together = (
        FormReader.of([*TEXTS, *of], group) for of, group in ((spam[:1], None), (spam, np.r_[:14, 13, 13]))
    )
    assert together.n_texts == alone.n_texts == 14
    rare = [float(reader.columns([text])[0, 0]) for reader, text in ((alone, spam[0]), (together, spam[0]))]
    assert rare[1] == pytest.approx(rare[0])
    others = FormReader.of(TEXTS).columns(spam)
    np.testing.assert_array_equal(together.columns(spam), others)
    assert (FormReader.of([*TEXTS, *spam]).columns(spam)[:, 0] < others[:, 0] - 0.1).all()


def test_what_was_counted_is_saved_as_arrays() -> None:
    reader = FormReader.of(TEXTS)
    again = FormReader.from_arrays(reader.to_arrays())
    np.testing.assert_array_equal(again.columns([*TEXTS, "new"]), reader.columns([*TEXTS, "new"]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_texts", np.array(2)),
        ("counts", np.array([14], dtype=np.uint32)),
        ("sequences", np.array([2**18], dtype=np.uint32)),
        ("known", np.array([2, 1], dtype=np.uint64)),
    ],
)
def test_arrays_that_could_not_have_been_counted_are_refused(name: str, value: np.ndarray) -> None:
    arrays = FormReader.of(TEXTS).to_arrays()
    if name in ("counts", "sequences"):
        arrays |= {"sequences": arrays["sequences"][:1], "counts": arrays["counts"][:1]}
    with pytest.raises(ModelError):
        FormReader.from_arrays(arrays | {name: value})


# ---- in a model ------------------------------------------------------------------------------------------------------


class Blind:
    """An encoder to which all texts are noise: whatever tells them apart is their form."""

    dimension = 256

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        seeds = [int.from_bytes(text.encode()[:40], "big") for text in texts]
        return np.array([np.random.default_rng(seed).normal(size=256) for seed in seeds], dtype=np.float32)


def chat(n: int, seed: int = 0) -> list[str]:
    """What people write to each other."""
    rng = np.random.default_rng(seed)
    words = ["see you", "at the station", "then ok", "will call later", "mum says hi", "are we on", "for tea", "sorry"]
    return [f"{' '.join(rng.choice(words, rng.integers(2, 6)))} {i % 7}" for i in range(n)]


def spam(n: int) -> list[str]:
    """What nobody asked for."""
    rng = np.random.default_rng(1)
    return [
        f"WINNER!! Claim £{n} NOW on 0{rng.integers(10**9)}, code {i}{i}: T&C"
        for i, n in enumerate(rng.integers(100, 999, n))
    ]


def test_what_only_the_form_tells_is_found() -> None:
    texts = chat(300) + spam(6)
    y = np.r_[np.ones(300, dtype=int), -np.ones(6, dtype=int)]
    blind = TextOutlierDetector(Blind(), form=False).fit(texts)
    reading = TextOutlierDetector(Blind()).fit(texts)
    assert auc(y, reading.training_scores_) > 0.95 > 0.8 > auc(y, blind.training_scores_)
    assert blind.form_ is None
    np.testing.assert_array_equal(reading.anomaly_score(texts), reading.training_scores_)
    fresh = reading.anomaly_score([*chat(40, seed=9), "FREE entry!! Txt 87121 to WIN £500"])
    assert (fresh > fresh[40]).sum() <= 2


def test_the_form_is_explained_in_words() -> None:
    model = TextOutlierDetector(Blind()).fit(chat(300) + spam(6))
    most_usual = chat(300)[int(model.training_scores_[:300].argmin())]
    odd, usual = model.explain_many(["CALL 0800 123456789 NOW", most_usual])
    assert odd.odd_form.startswith(("many digits", "many capitals", "rare sequences of letters"))
    assert {"many digits", "many capitals"} & set(odd.odd_form.split(", "))
    assert f"its form is unusual ({odd.odd_form})" in odd.what_is_odd()
    assert odd.to_dict()["odd_form"] == odd.odd_form
    assert not usual.odd_form
    assert not TextOutlierDetector(Blind(), form=False).fit(chat(60)).explain("CALL 0800 123456789 NOW").odd_form


def test_a_model_keeps_what_it_knows_of_the_form(tmp_path: Path) -> None:
    model = TextOutlierDetector(Blind()).fit(chat(80), [None] * 79 + ["normal"])
    model.save(tmp_path / "m")
    loaded = TextOutlierDetector.load(tmp_path / "m", encoder=Blind())
    texts = [*chat(5), *spam(5)]
    np.testing.assert_array_equal(loaded.anomaly_score(texts), model.anomaly_score(texts))
    assert loaded.fingerprint == model.fingerprint
    assert loaded.form
    assert not TextOutlierDetector(Blind(), form=False).fit(chat(80)).form_


def test_texts_of_one_embedding_cannot_be_told_apart_by_their_form_alone() -> None:
    class Same:
        def encode(self, texts: Sequence[str]) -> np.ndarray:
            return np.ones((len(texts), 3), dtype=np.float32)

    with pytest.raises(DataError, match="cannot tell these texts apart"):
        TextOutlierDetector(Same()).fit(chat(20))
