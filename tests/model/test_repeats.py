"""Texts that are repeated: they count once in fitting and calibration, whatever the detector."""

from __future__ import annotations

import numpy as np
import pytest

from strays import TextOutlierDetector
from strays.detectors import DETECTORS
from strays.model.distinct_texts import DistinctTexts
from tests.conftest import HashEncoder, farm_texts

NORMAL = farm_texts(300)
STRAY = "win big cash now click here"


def fitted(texts: list[str], labels: list[str | None] | None = None, detector: str = "auto") -> TextOutlierDetector:
    return TextOutlierDetector(HashEncoder(), detector).fit(texts, labels)


@pytest.mark.parametrize("name", list(DETECTORS))
def test_a_model_is_the_same_however_often_a_stray_is_repeated(name: str) -> None:
    once, often = fitted([*NORMAL, STRAY], detector=name), fitted([*NORMAL, *[STRAY] * 10], detector=name)
    fresh = [*NORMAL[:20], STRAY, "a horse of another colour"]
    np.testing.assert_array_equal(often.anomaly_score(fresh), once.anomaly_score(fresh))
    np.testing.assert_array_equal(often.p_value(fresh), once.p_value(fresh))
    assert len(often.training_scores_) == 310
    assert often.summary_.n_texts == 310
    np.testing.assert_array_equal(often.training_scores_[:301], once.training_scores_)


@pytest.mark.parametrize("detector", ["auto", "nearest"])
@pytest.mark.parametrize("copies", [1, 2, 3, 10])
def test_a_repeated_stray_is_flagged(copies: int, detector: str) -> None:
    model = fitted([*NORMAL, *[STRAY] * copies], detector=detector)
    assert model.flag(model.training_scores_).flagged[-copies:].all()
    assert model.p_value([STRAY])[0] < 0.02


def test_a_text_of_a_twentieth_of_the_pile_is_normal() -> None:
    greeting = "thank you and best wishes"
    model = fitted([*NORMAL, *[greeting] * 20])
    assert model.p_value([greeting])[0] > 0.5
    # and is counted as often as it is there, so that the share of false alarms holds for rows
    assert model.summary_.n_held_out == 320


def test_alike_texts_of_a_twentieth_of_the_pile_are_normal_however_few_are_different() -> None:
    greetings = [
        f"thank you and best wishes for a good new year to you {name}" for name in ("all", "ann", "bob", "two")
    ]
    model = fitted([*NORMAL, *greetings * 5])  # 20 of 320, but 4 of 304 different ones
    assert min(model.p_value(greetings)) > 0.5
    assert model.summary_.n_held_out == 320
    assert len(model.training_scores_) == 320
    np.testing.assert_array_equal(model.training_scores_[300:], np.tile(model.training_scores_[300:304], 5))


def test_texts_keep_their_copies_with_their_labels_and_in_order() -> None:
    texts = ["a", "hi", "b", "hi", "hey", "c", "hey", "hi", "hi", "bad", "bad"]
    once = DistinctTexts.of(texts, np.array([0, 0, 0, 1, 0, 0, 0, 0, 0, -1, 0], dtype=np.int8))
    X = np.array([[{"a": 0, "hi": 9, "b": 1, "hey": 9.01, "c": 2, "bad": 9}[text]] for text in once.texts])
    found, Y = once.with_classes(X)
    assert found.texts == texts[:10]
    assert found.y.tolist() == [0, 1, 0, 1, 0, 0, 0, 1, 1, -1]
    assert found.row.tolist() == list(range(10))
    assert found.place.tolist() == [0, 1, 2, 1, 4, 5, 4, 1, 1, 9, 9]
    np.testing.assert_array_equal(Y.ravel(), [0, 9, 1, 9, 9.01, 2, 9.01, 9, 9, 9])


def test_an_unlabelled_copy_takes_the_label_of_its_like() -> None:
    found = DistinctTexts.of(["a", "b", "a", "c", "b", "b"], np.array([0, 1, -1, 0, 0, -1], dtype=np.int8))
    assert found.texts == ["a", "b", "c", "b"]
    # A text with two labels keeps both, and an unlabelled copy takes anomaly.
    assert found.y.tolist() == [-1, 1, 0, -1]
    assert found.row.tolist() == [0, 1, 3, 4]
    assert found.place.tolist() == [0, 1, 0, 2, 3, 3]


@pytest.mark.parametrize("y", [[1, -1, 0], [-1, 1, 0], [0, -1, 1]])
def test_which_label_an_unlabelled_copy_takes_does_not_depend_on_the_order(y: list[int]) -> None:
    found = DistinctTexts.of(["a"] * 3, np.array(y, dtype=np.int8))
    assert found.y[found.place[y.index(0)]] == -1


def test_a_known_anomaly_does_not_look_normal_for_its_unlabelled_copies() -> None:
    model = fitted([*NORMAL, *[STRAY] * 5], [None] * 300 + ["anomaly"] + [None] * 4)
    assert model.p_value([STRAY])[0] < 0.02
    assert model.flag(model.training_scores_).flagged[-5:].all()


def test_equal_texts_are_encoded_once() -> None:
    encoder = HashEncoder()
    TextOutlierDetector(encoder).fit([*NORMAL, *NORMAL, STRAY])
    assert sum(map(len, encoder.seen)) == 301


def test_given_embeddings_are_taken_row_by_row() -> None:
    texts = [*NORMAL[:100], *NORMAL[:30], STRAY, STRAY]
    X = HashEncoder().encode(texts)
    given = TextOutlierDetector(HashEncoder()).fit(texts, embeddings=X)
    np.testing.assert_array_equal(given.training_scores_, fitted(texts).training_scores_)
