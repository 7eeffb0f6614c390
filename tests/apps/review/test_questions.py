"""What is asked next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strays.apps.review import questions
from strays.apps.review.questions import PRIOR, WHY, Question, choose_questions, near_copies


def ask(
    scores: np.ndarray,
    y: np.ndarray,
    n: int,
    answers: list,
    seed: int = 0,
    X: np.ndarray | None = None,
    form: np.ndarray | None = None,
) -> list[Question]:
    X = np.random.default_rng(5).normal(size=(len(scores), 4)) if X is None else X
    return choose_questions(scores, X, y, y == 0, n, answers=answers, rng=np.random.default_rng(seed), form=form)


def always(kind: str) -> list[tuple[str, bool]]:
    """Answers after which this kind is asked."""
    return [(k, k == kind) for k in PRIOR for _ in range(400)] + [(kind, True)] * 400


def test_where_the_oddest_are_hits_they_are_asked_in_order() -> None:
    scores = np.array([0.1, 5.0, 3.0, 4.0, -1.0, 2.0])
    y = np.array([0, 0, 1, 0, 0, 0])
    assert ask(scores, y, 3, always("odd")) == [Question(1, "odd"), Question(3, "odd"), Question(5, "odd")]


def test_the_unsure_one_lies_midway_between_the_judged() -> None:
    scores = np.array([9.0, 8.0, 1.0, 0.0, 4.6, 4.4, 7.0, 2.0])
    y = np.array([-1, -1, 1, 1, 0, 0, 0, 0])  # medians 8.5 and 0.5
    assert [a.place for a in ask(scores, y, 2, always("unsure"))] == [4, 5]


def test_the_different_one_is_the_farthest_of_the_odd_from_all_judged_and_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions, "POOL_SHARE", 1)
    X = np.array([[0.0, 0], [1, 0], [0, 5], [0, 4.9], [-4, 0], [99, 99]])
    scores = np.array([5.0, 4, 3, 2, 1, 0])
    y = np.array([1, 0, 0, 0, 0, -1])
    found = ask(scores, y, 3, always("different"), X=X)
    # The second is the one away from the first as well, not its neighbour.
    assert found == [Question(2, "different"), Question(4, "different"), Question(1, "different")]


def test_different_looks_among_the_oddest_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "POOL", 2)
    monkeypatch.setattr(questions, "POOL_SHARE", 1)
    X = np.array([[0.0, 0], [1, 0], [2, 0], [50, 0]])
    y = np.array([1, 0, 0, 0])
    found = ask(np.array([4.0, 3, 2, 1]), y, 3, always("different"), X=X)
    assert [a.place for a in found] == [2, 1, 3]
    assert found[2].why == "odd"  # none of the pool was left


def test_a_group_is_a_close_one_of_unusual_form_that_nothing_judged_is_part_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "POOL_SHARE", 1 / 2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 64))
    closest, close, usual, judged = np.arange(12), np.arange(20, 32), np.arange(40, 60), np.arange(400, 500)
    for group, width in ((closest, 0.2), (close, 0.3), (usual, 0.01)):
        X[group] = X[group[0]] + width * rng.normal(size=(len(group), 64))
    form = rng.random(600)
    form[usual] -= 1
    form[np.r_[closest, close]] += 1
    scores, y = rng.normal(size=600), np.zeros(600, dtype=int)
    y[judged] = 1
    found = ask(scores, y, 3, always("group"), X=X, form=form)
    assert [question.why for question in found[:2]] == ["group"] * 2
    assert [found[0].place in closest, found[1].place in close] == [True, True]
    assert found[2].place not in np.r_[closest, close]
    y[closest[3]] = 1  # they are normal
    assert ask(scores, y, 1, always("group"), X=X, form=form)[0].place in close
    assert ask(scores, y, 1, always("group"), X=X)[0].why == "odd"  # no form is known


def test_what_finds_is_asked_more_often() -> None:
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=3000), np.zeros(3000, dtype=int)
    y[:20], y[20:40] = -1, 1

    def share(answers: list, kind: str) -> float:
        return float(np.mean([a.why == kind for seed in range(20) for a in ask(scores, y, 10, answers, seed)]))

    assert share([("odd", True)] * 20, "odd") > 0.95
    misses = [("odd", False)] * 60
    assert share(misses, "odd") < 0.75
    assert share(misses + [("different", True)] * 10, "different") > 0.8
    # What was long ago is all but forgotten.
    assert share([("different", True)] * 10 + misses * 5, "different") < 0.4


def test_texts_in_one_place_are_each_asked_once() -> None:
    y = np.array([1, 0, 0, 0])
    found = ask(np.zeros(4), y, 9, always("different"), X=np.ones((4, 3)))
    assert sorted(a.place for a in found) == [1, 2, 3]


def test_of_near_copies_one_is_asked_and_the_others_come_last() -> None:
    scores, y = np.array([5.0, 9.0, 9.0, 7.0, 9.0, 8.0]), np.zeros(6, dtype=int)
    later = near_copies(scores, y == 0, np.zeros(6, dtype=bool))
    for kind in PRIOR:
        found = choose_questions(
            scores, np.eye(6), y, y == 0, 9, answers=always(kind), rng=np.random.default_rng(0), later=later
        )
        assert {question.place for question in found[:4]} == {0, 1, 3, 5}, kind
        assert found[4:] == [Question(2, "odd"), Question(4, "odd")]


def test_a_near_copy_of_what_is_judged_waits_until_that_is_learnt() -> None:
    scores, open_ = np.array([9.0, 9.0, 9.0, 1.0, 1.0]), np.array([True, False, True, True, True])
    fresh = ~open_
    assert near_copies(scores, open_, fresh).tolist() == [True, False, True, False, True]
    assert near_copies(scores, open_, fresh & False).tolist() == [False, False, True, False, True]


@given(st.integers(0, 60), st.integers(0, 70), st.integers(0, 2**32 - 1))
def test_as_many_different_open_texts_as_there_are(n_texts: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 0, 1], n_texts)
    open_ = (y == 0) & (rng.random(n_texts) < 0.8)
    answers = [
        (str(kind), bool(hit)) for kind, hit in zip(rng.choice(list(PRIOR), n), rng.integers(0, 2, n), strict=True)
    ]
    scores, X = rng.normal(size=n_texts).round(1), rng.normal(size=(n_texts, 3))
    later = near_copies(scores, open_, y < 0) if seed % 2 else None

    def chosen() -> list[Question]:
        rng = np.random.default_rng(seed)
        return choose_questions(scores, X, y, open_, n, answers=answers, rng=rng, later=later)

    found = chosen()
    assert len(found) == len({a.place for a in found}) == min(n, open_.sum())
    assert all(open_[a.place] and a.why in WHY for a in found)
    assert found == chosen()
