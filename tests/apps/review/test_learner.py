"""Refits on one corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from strays import TextOutlierDetector
from strays.apps.review.learner import MEMORY, Learner
from strays.detectors import AutoDetector
from strays.detectors.base import FOUND
from strays.encoders.low_rank import LowRankUpdates
from strays.model.form import text_hashes
from tests.apps.review.conftest import make_desk, queue
from tests.conftest import HashEncoder, farm_texts

STRAYS = [f"{thing} prices rise in {town}" for thing in ("oil", "gold", "wheat") for town in ("Rome", "Oslo", "Lima")]


@pytest.fixture
def corpus() -> list[str]:
    return [*farm_texts(60), *STRAYS]


def learner(texts: list[str], **options: object) -> Learner:
    encoder = HashEncoder()
    return Learner(texts, encoder.encode(texts), encoder, **options)


def test_what_was_judged_changes_the_ranking_of_its_like() -> None:
    texts = farm_texts(128)  # 64 in the garden, 64 on the roof
    labels: list[str | None] = [None] * 128
    labels[:8], labels[64:72] = ["normal"] * 8, ["anomaly"] * 8
    before, after = (learner(texts).learn(known) for known in ([None] * 128, labels))
    assert (before.n_labels, after.n_labels) == (0, 16)

    def roofs_above_gardens(scores: np.ndarray) -> float:
        return float((scores[72:, None] > scores[8:64]).mean())

    assert roofs_above_gardens(after.anomaly_score) > roofs_above_gardens(before.anomaly_score) + 0.15
    for ranking in (before, after):
        assert len(ranking.anomaly_score) == len(ranking.p_value) == len(ranking.flagged) == len(texts)


def test_how_unusual_the_form_of_each_text_is(corpus: list[str]) -> None:
    texts, none = [*corpus, "$$$ 999 !!! $$$ 777 !!!"], [None] * (len(corpus) + 1)
    form = learner(texts).learn(none).unusual_form
    assert form is not None
    assert (len(form), form.argmax()) == (len(texts), len(texts) - 1)
    assert learner(texts, detector="centroid").learn(none).unusual_form is None


def test_questions_know_the_form(corpus: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strays.apps.review.questions.PRIOR", {"odd": (1, 999), "group": (999, 1)})
    monkeypatch.setattr("strays.apps.review.questions.POOL_SHARE", 1)
    texts = [*corpus, *(f"!!! $$$ {i}{i} $$$ !!!" for i in range(30))]
    desk = make_desk(tmp_path / "forms.strays", texts, quick=False)
    assert queue(desk, "a", 1)["items"][0]["why"]["kind"] == "group"


def test_verdicts_move_their_like_with_an_encoder_that_was_tuned_on_the_base_s_texts() -> None:
    """P-values rest on texts that are new to the encoder; these are learnt from all the same."""
    texts, others = farm_texts(128), farm_texts(384)[128:]
    encoder = HashEncoder()
    encoder.updates = LowRankUpdates({}, text_hashes(others[:200]))  # type: ignore[attr-defined]
    base = TextOutlierDetector(encoder).fit(others, ["anomaly"] * 5 + [None] * 251)
    labels = ["normal"] * 40 + [None] * 88
    model = Learner(texts, encoder.encode(texts), encoder, base=base).learn(labels).model
    rows = model.detector_.rows_  # type: ignore[attr-defined]
    assert all((rows == encoder.encode([text])).all(axis=1).any() for text in texts[:40])
    assert model.summary_.n_held_out == 128 + 56
    assert model.summary_.n_folds


def test_no_text_is_encoded_again(corpus: list[str]) -> None:
    fresh = learner(corpus)
    fresh.encoder.seen.clear()
    fresh.learn(["anomaly", *[None] * (len(corpus) - 1)])
    assert fresh.encoder.seen == []


def test_a_base_model_ranks_first_and_its_examples_teach(corpus: list[str]) -> None:
    encoder = HashEncoder()
    known = [None] * 40 + ["anomaly"] * 5
    base = TextOutlierDetector(encoder).fit([*farm_texts(40), *STRAYS[:5]], known)
    texts = [*farm_texts(200)[100:], *STRAYS[5:]]
    fresh = Learner(texts, encoder.encode(texts), encoder, base=base)
    none = [None] * len(texts)
    first = fresh.learn(none)
    assert np.array_equal(first.anomaly_score, base.anomaly_score(texts))
    later = fresh.learn(["normal", *none[1:]])
    assert len(later.anomaly_score) == len(texts)
    assert later.model.summary_.n_anomaly == 5
    assert later.model.summary_.n_texts == len(texts) + 45


def test_people_here_have_the_say_of_texts_that_the_base_knows_otherwise() -> None:
    encoder, texts = HashEncoder(), farm_texts(60)
    base = TextOutlierDetector(encoder).fit([*texts[:30], *STRAYS], ["normal"] * 5 + [None] * 25 + ["anomaly"] * 9)
    fresh = Learner([*texts, STRAYS[0]], encoder.encode([*texts, STRAYS[0]]), encoder, base=base)
    later = fresh.learn(["anomaly"] + [None] * 59 + ["normal"])
    summary = later.model.summary_
    # Of the base's texts only the eight strays that are not in this corpus come along.
    assert (summary.n_texts, summary.n_anomaly, summary.n_normal) == (61 + 8, 1 + 8, 1)
    other = [*farm_texts(120)[60:], STRAYS[0]]
    brought = Learner(other, encoder.encode(other), encoder, base=base).learn(["normal"] + [None] * 60).model.summary_
    assert (brought.n_normal, brought.n_anomaly) == (1 + 5, 8)


def test_a_refit_on_top_of_a_model_is_as_quick_as_any(corpus: list[str]) -> None:
    encoder = HashEncoder()
    base = TextOutlierDetector(encoder).fit(farm_texts(40))
    fresh = Learner(corpus, encoder.encode(corpus), encoder, base=base)
    labels = ["anomaly", *[None] * (len(corpus) - 1)]
    assert fresh.learn(labels).model.info()["detector"]["params"]["memory"] == MEMORY
    assert fresh.model_to_save(labels).info()["detector"]["params"]["memory"] == 4096


def test_anomalies_found_at_the_desk_are_told_from_those_the_texts_came_with(
    corpus: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    fit = AutoDetector.fit

    def spy(self: AutoDetector, X: np.ndarray, y: np.ndarray) -> AutoDetector:
        seen.append(sorted(y[y != 0].tolist()))
        return fit(self, X, y)

    monkeypatch.setattr(AutoDetector, "fit", spy)
    labels: list[str | None] = ["normal", *[None] * (len(corpus) - 3), "anomaly", "anomaly"]
    searched = np.zeros(len(corpus), dtype=bool)
    searched[[0, -1]] = True
    base = learner(corpus).model_to_save(labels, searched)
    assert seen[-1] == [FOUND, -1, 1]
    base.save(tmp_path / "model")
    base = TextOutlierDetector.load(tmp_path / "model", encoder=HashEncoder())
    learner(farm_texts(70)[60:], base=base).learn(["normal"] + [None] * 9)  # a model of a desk, at another desk
    assert seen[-1] == [FOUND, -1, 1, 1]


def test_the_model_to_save_is_of_full_size_and_keeps_no_more_texts_than_others(corpus: list[str]) -> None:
    labels: list[str | None] = [None] * len(corpus)
    labels[-1] = "anomaly"
    kept = learner(corpus).model_to_save(labels)
    assert kept.info()["detector"]["params"]["memory"] == 4096
    assert kept.keep_examples == 1000
    assert learner(corpus, detector="nearest").model_to_save(labels).info()["detector"]["name"] == "nearest"
