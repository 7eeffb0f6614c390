"""The facts of a report: counted by hand, as JSON can hold them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from strays.jobs.report import points as map_points
from strays.jobs.report.facts import SHOWN, pieces_of
from strays.jobs.report.page import render
from strays.jobs.report.points import on_the_map, shade, short_texts
from strays.jobs.report.scored_texts import ScoredTexts
from strays.jobs.scan import Scan
from tests.conftest import farm_texts
from tests.jobs.report.conftest import SPAM, facts_of, scan_of


@pytest.fixture(scope="module")
def found(scan: Scan) -> dict:
    return facts_of(scan, top=10)


def test_facts_are_plain_data(found: dict) -> None:
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_head_says_what_was_scanned(found: dict, scan: Scan) -> None:
    assert found["title"] == "The strays in texts.csv"
    assert (found["n_rows"], found["n_texts"], found["n_without_text"]) == (125, 124, 1)
    assert found["n_flagged"] == int(np.nansum(scan.scores.flagged))
    assert found["fitted_on"]["n_unlabelled"] == 124
    assert found["detector"]["says"].startswith("distance to the nearest normal texts")
    assert found["flagged_are"].startswith("at most 5 % of normal texts")


def test_histograms_count_every_text_once(found: dict, scan: Scan) -> None:
    scores, p_values = found["scores"], found["p_values"]
    assert sum(scores["counts"]) == sum(p_values["counts"]) == 124
    assert sum(scores["flagged"]) == found["n_flagged"]
    score = scan.scores.anomaly_score[1:]
    assert (scores["edges"][0], scores["edges"][-1]) == pytest.approx((score.min(), score.max()))
    assert (score > scores["threshold"]).sum() == found["n_flagged"]
    assert p_values["expected"] == 124 / 20
    assert p_values["counts"][0] == (scan.scores.p_value[1:] < 0.05).sum()
    [one, five, ten] = p_values["alarms"]
    assert (one["rate"], five["rate"], ten["rate"]) == (0.01, 0.05, 0.1)
    assert five["found"] == (scan.scores.p_value[1:] <= 0.05).sum()
    assert five["expected"] == pytest.approx(6.2)


def test_rates_finer_than_p_values_can_tell_are_left_out() -> None:
    found = facts_of(scan_of(farm_texts(30)), top=0)
    assert [alarm["rate"] for alarm in found["p_values"]["alarms"]] == [0.05, 0.1]
    assert found["oddest"] == []


def test_the_oddest_come_first_with_their_own_scores(found: dict, scan: Scan) -> None:
    order = np.argsort(-scan.scores.anomaly_score[1:], kind="stable")[:10]
    assert [text["row"] for text in found["oddest"]] == (order + 2).tolist()
    for text, i in zip(found["oddest"], order, strict=True):
        assert "".join(piece["text"] for piece in text["pieces"]) == scan.corpus.texts[i]
        assert text["anomaly_score"] == scan.scores.anomaly_score[i + 1]
        assert text["flagged"] == scan.scores.flagged[i + 1]
        assert len(text["nearest_normals"]) == 2
        assert text["nearest_anomalies"] == []
    spam = next(text for text in found["oddest"] if text["row"] > 121)
    assert spam["odd_all_over"]  # such spam has no part that is ordinary
    assert spam["what_is_odd"].startswith("odd all over")
    assert not any(piece["strength"] for piece in spam["pieces"])
    assert spam["in_words"].startswith("odder than about")


def test_copies_are_one_card_and_one_point_each() -> None:
    found = facts_of(scan_of([*farm_texts(120), *[SPAM[0]] * 5], detector="lof"), top=200)
    [card] = [text for text in found["oddest"] if text["n_alike"]]
    assert (card["row"], card["n_alike"], card["rows_alike"]) == (122, 4, [123, 124, 125, 126])
    assert len(found["oddest"]) == 121
    assert len(found["map"]["x"]) == 125
    html = render(found)
    assert html.count("and 4 like it") == 1
    assert 'title="rows 123, 124, 125, 126"' in html
    assert "All texts, the oddest first" in html


def test_flagged_neighbours_are_called_that(found: dict, scan: Scan) -> None:
    flagged = {text for text, is_flagged in zip(scan.corpus.texts, scan.scores.flagged[1:], strict=True) if is_flagged}
    neighbours = [near for text in found["oddest"] for near in text["nearest_normals"]]
    assert {near["flagged"] for near in neighbours} == {True, False}
    assert all(near["flagged"] == (near["text"] in flagged) for near in neighbours)


def test_pieces_are_in_order_with_strengths(scan: Scan) -> None:
    explanation = scan.model.explain("the cat sleeps, cheap pills, the dog eats")
    pieces = pieces_of(explanation)
    assert "".join(piece["text"] for piece in pieces) == explanation.text
    effects = [piece["effect"] for piece in pieces if piece["effect"] is not None]
    assert max(piece["strength"] for piece in pieces) == 1.0
    assert all(piece["strength"] == 0 for piece in pieces if piece["effect"] is None or piece["effect"] <= 0)
    assert len(effects) == len(explanation.segments)


def test_long_texts_are_cut_and_said_to_be() -> None:
    found = facts_of(scan_of([*farm_texts(40), "spam" * 250_000]), top=41)
    [long] = [text for text in found["oddest"] if text["is_cut"]]
    assert long["n_characters"] == 1_000_000
    assert sum(len(piece["text"]) for piece in long["pieces"]) == SHOWN
    assert len(json.dumps(found)) < 200_000


def test_labels_of_both_kinds_make_curves_of_fits_that_have_not_seen_them(labelled: Scan) -> None:
    quality = facts_of(labelled)["quality"]
    assert quality["by"] == "models fitted without the text"
    assert (quality["metrics"]["n"], quality["metrics"]["n_anomalies"]) == (64, 4)
    own = facts_of(labelled, fitted_here=False)["quality"]
    assert own["by"] == "the model"
    assert own["metrics"]["map"] >= quality["metrics"]["map"]


def test_known_anomalies_alone_make_no_curves() -> None:
    scan = scan_of(farm_texts(40) + SPAM, [None] * 40 + ["anomaly"] * 4)
    found = facts_of(scan)
    assert "none is labelled normal" in found["quality"]["why_not"]
    assert len(found["oddest"][0]["nearest_anomalies"]) == 2


def test_what_the_model_was_told_of_is_no_find(labelled: Scan) -> None:
    found = facts_of(labelled, top=200)
    assert found["n_known_left_out"] == 4
    assert len(found["oddest"]) == 120
    assert {text["label"] for text in found["oddest"]} == {None, "normal"}
    judged = facts_of(labelled, top=200, fitted_here=False)
    assert judged["n_known_left_out"] == 0
    assert [text["label"] for text in judged["oddest"]].count("anomaly") == 4
    assert judged["map"]["mark"].count("anomaly") == found["map"]["mark"].count("anomaly") == 4


def test_map_has_a_point_for_each_text(found: dict, scan: Scan) -> None:
    points = found["map"]
    lists = [points[key] for key in ("x", "y", "value", "mark", "score", "p_value", "row", "text")]
    assert {len(values) for values in lists} == {124}
    assert min(points["x"] + points["y"]) >= 0
    assert max(points["x"] + points["y"]) <= points["grid"]
    assert [points["row"][i] for i in points["oddest"]] == [text["row"] for text in found["oddest"]]
    assert points["mark"].count("flagged") == found["n_flagged"]


def test_a_large_map_keeps_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_points, "MOST_POINTS", 100)
    n = 1000
    rng = np.random.default_rng(0)
    score, y = rng.normal(size=n), np.where(np.arange(n) % 50 == 7, 1, 0)
    flagged = score > np.sort(score)[-31]
    scored = ScoredTexts([f"text {i}" for i in range(n)], np.arange(n), y, score, score, flagged)
    oddest = np.argsort(-score)[:10]
    chosen = on_the_map(scored, oddest)
    assert len(chosen) == len(set(chosen.tolist())) == 100
    assert set(oddest) | set(np.flatnonzero(flagged)) | set(np.flatnonzero(y)) <= set(chosen.tolist())


def test_shades_rise_with_the_score_and_one_extreme_does_not_blind() -> None:
    score = np.r_[np.linspace(0, 1, 999), 1000]
    shades = shade(score)
    assert (np.diff(shades) >= 0).all()
    assert 0.45 < shades[500] < 0.55
    assert (shade(np.ones(5)) == 0).all()


def test_texts_on_the_map_stay_within_a_pages_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_points, "MOST_BYTES", 10_000)
    short = short_texts(["中文" * 200] * 100)
    assert sum(len(text.encode()) for text in short) < 12_000
    assert short_texts(["a\u202eb"]) == ["a\u2039U+202E\u203ab"]
