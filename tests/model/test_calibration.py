from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from strays.errors import UsageError
from strays.model import calibration
from strays.model.calibration import DEFAULT_THRESHOLD, Calibration, threshold

HELD_OUT = np.array([3.0, 1.0, 2.0, 4.0])


def test_p_values_by_hand() -> None:
    c = Calibration.from_scores(HELD_OUT, HELD_OUT)
    # above all four: (1 + 0) / 5; at 3, two score at least that: 3 / 5; below all: 5 / 5
    assert c.p_value(np.array([9, 3, 2.5, 0])).tolist() == [0.2, 0.6, 0.6, 1.0]
    assert c.lowest_p_value == 0.2


scores = st.lists(st.integers(0, 20), min_size=1, max_size=60).map(lambda x: np.array(x, dtype=float))


@given(held_out=scores, new=scores, rate=st.integers(0, 100))
def test_flagging_by_false_alarms_is_flagging_by_p_value(held_out, new, rate: int) -> None:
    c = Calibration.from_scores(held_out, new)
    wanted = threshold(max_false_alarms=rate / 100)
    assert np.array_equal(c.flagged(wanted, new), c.p_value(new) <= rate / 100 + 1e-12)
    assert np.array_equal(c.flagged(wanted, new), c.offset(wanted, new) - new < 0)


@given(corpus=scores, rate=st.integers(0, 100))
def test_flag_rate_flags_at_most_that_share_of_the_corpus(corpus, rate: int) -> None:
    flagged = Calibration.from_scores(corpus, corpus).flagged(threshold(flag_rate=rate / 100), corpus)
    assert flagged.sum() <= rate * len(corpus) / 100
    if len(set(corpus)) == len(corpus):
        assert flagged.sum() == rate * len(corpus) // 100


@given(new=scores, k=st.integers(0, 70))
def test_top_flags_exactly_so_many_and_the_highest(new, k: int) -> None:
    flagged = Calibration.from_scores(new, new).flagged(threshold(top=k), new)
    assert flagged.sum() == min(k, len(new))
    if flagged.any() and not flagged.all():
        assert new[flagged].min() >= new[~flagged].max()


@given(held_out=scores, new=scores, percent=st.integers(0, 100))
def test_false_share_is_benjamini_hochberg(held_out, new, percent: int) -> None:
    c = Calibration.from_scores(held_out, new)
    wanted = threshold(max_false_share=percent / 100)
    adjusted = false_discovery_control(c.p_value(new), method="bh")
    assert np.array_equal(c.flagged(wanted, new), adjusted <= percent / 100 + 1e-9)
    assert np.array_equal(c.flagged(wanted, new), c.offset(wanted, new) - new < 0)


def test_false_share_keeps_its_promise() -> None:
    """50 anomalies among 500 texts: of what is flagged, at most the share asked for is normal, on average."""
    rng = np.random.default_rng(0)
    for share in (0.05, 0.2):
        false, found = [], []
        for _ in range(300):
            c = Calibration.from_scores(rng.normal(size=1000), np.zeros(1))
            new = np.r_[rng.normal(size=450), rng.normal(3.5, 1, size=50)]
            flagged = c.flagged(threshold(max_false_share=share), new)
            false.append(flagged[:450].sum() / max(1, flagged.sum()))
            found.append(flagged[450:].mean())
        assert np.mean(false) < share + 2 * np.std(false) / np.sqrt(300)
        assert np.mean(false) > 0.6 * share  # nor is it far more cautious than asked for
        assert np.mean(found) > 0.5


def test_rules_that_look_at_all_texts_say_so() -> None:
    assert [threshold(**{rule: 0.1}).together for rule in ("max_false_alarms", "max_false_share", "flag_rate")] == [
        False,
        True,
        False,
    ]
    assert threshold(top=3).together
    assert Calibration.from_scores(HELD_OUT, HELD_OUT).flagged(threshold(max_false_share=0.1), np.array([])).size == 0


def test_false_alarms_keep_their_promise_on_fresh_normals() -> None:
    rng = np.random.default_rng(0)
    for rate in (0.01, 0.05, 0.1):
        share = [
            Calibration.from_scores(rng.normal(size=199), np.zeros(1))
            .flagged(threshold(max_false_alarms=rate), rng.normal(size=200))
            .mean()
            for _ in range(500)
        ]
        assert np.mean(share) == pytest.approx(rate, abs=4 * np.std(share) / np.sqrt(500))


def test_a_long_corpus_is_thinned_without_moving_its_quantiles(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = np.random.default_rng(0).normal(size=1001)
    whole = Calibration.from_scores(corpus, corpus)
    monkeypatch.setattr(calibration, "MOST_KEPT", 101)
    thinned = Calibration.from_scores(corpus, corpus)
    assert (len(whole.corpus_scores), len(thinned.corpus_scores)) == (1001, 101)
    for rate in (0.05, 0.1, 0.5):
        share = thinned.flagged(threshold(flag_rate=rate), corpus).mean()
        assert share == pytest.approx(rate, abs=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one"),
        ({"flag_rate": 0.1, "top": 3}, "flag_rate and top"),
        ({"max_false_alarms": 1.5}, "between 0 and 1"),
        ({"flag_rate": -0.1}, "between 0 and 1"),
        ({"max_false_share": 2}, "between 0 and 1"),
        ({"flag_rate": float("nan")}, "must be a number"),
        ({"top": "ten"}, "must be a number"),
        ({"top": 2.5}, "whole number"),
        ({"top": -1}, "whole number"),
    ],
)
def test_thresholds_that_cannot_be_are_refused(options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        threshold(**options)


@pytest.mark.parametrize(("n", "can_flag"), [(2, False), (18, False), (19, True), (1000, True)])
def test_by_default_too_few_texts_flag_nothing_and_it_is_said(n: int, can_flag: bool) -> None:
    c = Calibration.from_scores(np.arange(n), np.arange(n))
    assert c.flagged(DEFAULT_THRESHOLD, np.array([n + 1.0])).all() == can_flag
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        c.warn_if_too_few(n)
    assert bool(told) != can_flag


@pytest.mark.parametrize(("n", "can_flag"), [(19, False), (38, False), (39, True), (1000, True)])
def test_a_text_of_the_pile_itself_takes_twice_as_many(n: int, can_flag: bool) -> None:
    c = Calibration.from_scores(np.arange(n), np.arange(n))
    assert c.flagged(DEFAULT_THRESHOLD, np.arange(n)).any() == can_flag
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        c.warn_if_too_few(n, own=True)
    assert bool(told) != can_flag


def test_a_threshold_says_what_it_flags() -> None:
    assert "p-value <= 0.05" in str(threshold(max_false_alarms=0.05))
    assert "the oddest 10 %" in str(threshold(flag_rate=0.1))
    assert "the 100 oddest" in str(threshold(top=100))
    assert "at most 20 % of the flagged texts are normal" in str(threshold(max_false_share=0.2))
