from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from strays import TextOutlierDetector
from strays.apps.cli import main
from strays.encoders import load_encoder
from strays.errors import ModelError, StraysWarning, UsageError
from strays.model.cascade import Cascade, Head, static_encoder_of
from strays.model.cascade_scorer import CascadeScorer
from tests.conftest import HashEncoder, farm_texts

LATIN = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor"


class Noisy(HashEncoder):
    """Sees what HashEncoder sees, less clearly."""

    def _one(self, text: str) -> np.ndarray:
        blur = np.random.default_rng(len(text)).normal(size=self.dimension)
        return super()._one(text) + 0.1 * blur


def corpus(n: int, odd: int, seed: int = 0) -> list[str]:
    """n ordinary texts and some of words that hardly any other has."""
    rng = np.random.default_rng(seed)
    ordinary = [" ".join(rng.choice([*farm_texts(1)[0].split(), "dog", "eats", "barn"], 6)) for _ in range(n)]
    return ordinary + [" ".join(rng.choice(LATIN.split(), 5)) for _ in range(odd)]


@pytest.fixture(scope="module")
def model() -> TextOutlierDetector:
    return TextOutlierDetector(HashEncoder(), cascade=Noisy(), keep_examples=0).fit(corpus(1500, 60))


def pairs(rng: np.random.Generator, n: int, noise: float = 1.0) -> Cascade:
    """A cascade whose held-out pairs are known: a score and the head's blurred sight of it."""
    scores = rng.normal(size=n)
    head = Head(np.zeros((1, 1), np.float32), np.zeros(1), 0.0)
    return Cascade(HashEncoder(), head, scores + noise * rng.normal(size=n), scores)


@pytest.mark.parametrize(("recall", "n"), [(0.98, 5000), (0.9, 2000), (0.8, 300), (0.98, 1000)])
def test_the_promise_holds_on_fresh_texts(recall: float, n: int) -> None:
    """Over many draws the mean recall is at least what was promised; where enough are flagged, hardly more."""
    rng = np.random.default_rng(0)
    reached = []
    for _ in range(200):
        cut = pairs(rng, n).cut(offset=2.0, recall=recall)
        fresh = pairs(rng, 20_000)
        reached.append((fresh.values[fresh.scores > 2.0] >= cut.value).mean())
    error = np.std(reached) / math.sqrt(len(reached))
    assert np.mean(reached) >= recall - 2 * error
    if n * 0.0228 > 2 / (1 - recall):
        assert np.mean(reached) < recall + 0.5 * (1 - recall)


def test_a_cut_is_the_order_statistic_of_the_formula() -> None:
    values = np.arange(100.0)
    cascade = Cascade(HashEncoder(), pairs(np.random.default_rng(0), 1).head, values, values)
    # 39 texts are past 60; floor(0.1 * 40) = 4, and the fourth lowest is 64.
    cut = cascade.cut(60.0, 0.9)
    assert (cut.value, cut.n_held_out, cut.share, cut.recall) == (64.0, 39, 0.36, 0.9)
    # 9 past 90 would make k = 1; 14 past 85 make it 1.5, so that the next five take part and k is 2.
    assert (cascade.cut(85.0, 0.9).value, cascade.cut(85.0, 0.9).n_held_out) == (82.0, 19)
    # Nothing is past 200; a recall of 0.9 needs nine texts: the nine highest, and the lowest of those.
    assert (cascade.cut(200.0, 0.9).value, cascade.cut(200.0, 0.9).n_held_out) == (91.0, 9)


def test_a_cut_falls_as_more_recall_is_asked_for() -> None:
    cascade = pairs(np.random.default_rng(1), 3000)
    cuts = [cascade.cut(1.5, recall) for recall in (0.5, 0.8, 0.9, 0.95, 0.98, 0.99)]
    assert all(a.value > b.value and a.share < b.share for a, b in pairwise(cuts))


def test_too_few_texts_for_a_promise_send_all() -> None:
    cut = pairs(np.random.default_rng(0), 40).cut(1.0, 0.98)
    assert cut.value == -math.inf
    assert cut.share == 1.0


@pytest.mark.parametrize("recall", [0.0, 1.0, -0.1, 98.0, float("nan")])
def test_recalls_that_cannot_be(recall: float) -> None:
    with pytest.raises(UsageError, match="must be strictly between 0 and 1"):
        pairs(np.random.default_rng(0), 200).cut(1.0, recall)


def test_the_head_is_kernel_ridge_regression() -> None:
    """With every row a landmark, the head is the textbook's; out of fold, that of the other rows."""
    rng = np.random.default_rng(0)
    Z, scores = rng.normal(size=(60, 3)).astype(np.float32), rng.normal(size=60)
    head, out_of_fold = Head.fit(Z, scores)
    fresh = rng.normal(size=(5, 3)).astype(np.float32)

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-((A[:, None].astype(float) - B[None]) ** 2).sum(2))

    def textbook(seen: np.ndarray, at: np.ndarray) -> np.ndarray:
        K, b = kernel(Z[seen], Z), scores.mean()
        c = np.linalg.solve(K.T @ K + 0.3 * kernel(Z, Z) + 60e-4 * np.eye(60), K.T @ (scores[seen] - b))
        return kernel(at, Z) @ c + b

    np.testing.assert_allclose(head.values(fresh), textbook(np.arange(60), fresh), atol=1e-3)
    first = np.arange(60) % 5 == 0
    np.testing.assert_allclose(out_of_fold[first], textbook(np.flatnonzero(~first), Z[first]), atol=1e-3)


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_the_head_says_the_same_of_a_row_in_any_batch(size: int) -> None:
    rng = np.random.default_rng(0)
    Z, fresh = rng.normal(size=(300, 33)).astype(np.float32) / 4, rng.normal(size=(1100, 33)).astype(np.float32) / 4
    head, _ = Head.fit(Z, rng.normal(size=300))
    parts = [head.values(fresh[start : start + size]) for start in range(0, len(fresh), size)]
    np.testing.assert_array_equal(np.concatenate(parts), head.values(fresh))


def test_the_head_learns_the_score_and_not_a_shuffled_one() -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(1000, 4)).astype(np.float32)
    scores = np.sin(Z[:, 0]) + Z[:, 1] ** 2
    assert np.corrcoef(Head.fit(Z, scores)[1], scores)[0, 1] > 0.9
    assert abs(np.corrcoef(Head.fit(Z, rng.permutation(scores))[1], scores)[0, 1]) < 0.2


def test_sent_rows_get_the_full_score_and_the_rest_an_estimate_that_is_not_flagged(model: TextOutlierDetector) -> None:
    model.set_threshold(max_false_alarms=0.05)
    texts = corpus(800, 40, seed=1)
    scorer = CascadeScorer(model, 0.9)
    found, full = scorer.score(texts), model.score(texts)
    assert found.by_full is not None
    assert 0.02 < found.by_full.mean() < 0.6
    np.testing.assert_allclose(found.anomaly_score[found.by_full], full.anomaly_score[found.by_full], atol=1e-9)
    assert not found.flagged[~found.by_full].any()
    assert np.array_equal(found.flagged, full.flagged & found.by_full)
    assert found.flagged.sum() >= 0.85 * full.flagged.sum() > 0
    offset = model.calibration_.offset(model.threshold_, np.empty(0))
    assert (found.anomaly_score[~found.by_full] <= offset).all()
    assert ((found.p_value > 0) & (found.p_value <= 1)).all()
    # Ordinary texts' p-values are spread as p-values are, whoever gave them.
    assert abs(found.p_value[:800].mean() - 0.5) < 0.1


def test_an_estimate_ranks_among_normals_as_the_head_ranks_the_text() -> None:
    values = np.arange(101.0)
    cascade = Cascade(HashEncoder(), pairs(np.random.default_rng(0), 1).head, values, 7 - values)
    normal_scores = np.linspace(-1, 1, 501)
    np.testing.assert_allclose(
        cascade.estimate(np.array([-5.0, 0.0, 25.0, 50.0, 99.9, 200.0]), normal_scores), [-1, -1, -0.5, 0, 0.998, 1]
    )


def test_scores_tell_where_they_came_from(model: TextOutlierDetector, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the full model's scores are whole numbers, which float32 holds exactly."""
    model.set_threshold(max_false_alarms=0.05)
    scorer, texts = CascadeScorer(model), corpus(300, 20, seed=2)
    values = model.cascade_.value(texts)
    monkeypatch.setattr(model, "anomaly_score", lambda sent, **_: np.full(len(sent), 7.0))
    found = scorer.score(texts)
    assert np.array_equal(found.by_full, values >= scorer.cut.value)
    assert found.flagged.sum() == found.by_full.sum() > 0


def test_the_full_encoder_sees_only_what_is_sent(model: TextOutlierDetector) -> None:
    model.set_threshold(max_false_alarms=0.05)
    model.encoder_.seen.clear()
    found = CascadeScorer(model, 0.8).score(corpus(500, 20, seed=3))
    assert sum(map(len, model.encoder_.seen)) == found.by_full.sum() < 300


def test_no_texts(model: TextOutlierDetector) -> None:
    model.set_threshold(max_false_alarms=0.05)
    assert len(CascadeScorer(model).score([]).flagged) == 0


def test_rules_that_need_all_scores_are_refused(model: TextOutlierDetector) -> None:
    for rule in ({"top": 5}, {"max_false_share": 0.2}):
        model.set_threshold(**rule)
        with pytest.raises(UsageError, match="looks at the scores of all texts"):
            CascadeScorer(model)
        assert model.info()["cascade"] is None
    model.set_threshold(flag_rate=0.02)
    assert CascadeScorer(model).cut.share < 1


def test_a_model_without_a_cascade() -> None:
    plain = TextOutlierDetector(HashEncoder(), keep_examples=0).fit(corpus(60, 0))
    assert plain.info()["cascade"] is None
    with pytest.raises(ModelError, match="has no cascade; fit it with cascade first"):
        CascadeScorer(plain)


def test_few_texts_draw_a_warning_that_the_cascade_gains_little() -> None:
    small = TextOutlierDetector(HashEncoder(), cascade=Noisy(), keep_examples=0).fit(corpus(40, 0))
    with pytest.warns(StraysWarning, match="would send 100% of the texts to the full model"):
        scorer = CascadeScorer(small)
    texts = corpus(30, 3, seed=5)
    assert scorer.score(texts).by_full.all()
    np.testing.assert_allclose(scorer.anomaly_score(texts), small.anomaly_score(texts), atol=1e-9)


@pytest.mark.parametrize("detector", ["auto", "centroid", "nearest"])
def test_held_out_pairs_are_of_texts_the_model_had_not_seen(detector: str) -> None:
    fitted = TextOutlierDetector(HashEncoder(), detector, cascade=Noisy(), keep_examples=0).fit(corpus(300, 10))
    scores = np.sort(fitted.cascade_.scores)
    honest = fitted.training_scores_ if detector in ("auto", "nearest") else fitted.calibration_.normal_scores
    np.testing.assert_allclose(scores, np.sort(honest))


def test_a_saved_cascade_scores_the_same(model: TextOutlierDetector, tmp_path: Path) -> None:
    model.set_threshold(max_false_alarms=0.05)
    model.save(tmp_path / "m")
    texts = corpus(200, 10, seed=4)
    expected = CascadeScorer(model).score(texts)
    loaded = TextOutlierDetector.load(tmp_path / "m", encoder=HashEncoder(), cascade=Noisy())
    found = CascadeScorer(loaded).score(texts)
    assert np.array_equal(found.by_full, expected.by_full)
    np.testing.assert_allclose(found.anomaly_score, expected.anomaly_score)
    with pytest.raises(ModelError, match=r"its cascade was fitted with an encoder object.*cascade="):
        TextOutlierDetector.load(tmp_path / "m", encoder=HashEncoder())


def test_which_static_encoder_goes_with_an_encoder(tiny_bert: Path) -> None:
    assert static_encoder_of(load_encoder("default")).settings.name == "fast"
    bert = static_encoder_of(load_encoder("bert", pooling="cls", revision="abc")).settings
    assert (bert.name, bert.pooling, bert.revision) == ("fast:bert", "cls", "abc")
    with pytest.raises(UsageError, match="loads by name"):
        static_encoder_of(HashEncoder())
    with pytest.raises(UsageError, match="static already"):
        TextOutlierDetector("fast", cascade=True).fit(corpus(20, 0))


@pytest.fixture
def strays(capsys: pytest.CaptureFixture) -> Callable[..., tuple[int, str, str]]:
    def run(*args: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return int(exit_.value.code or 0), out, err

    return run


def test_from_the_command_line(strays: Callable[..., tuple[int, str, str]], tiny_bert: Path, tmp_path: Path) -> None:
    lines = [*farm_texts(380), *("zzz qqq xxx " + c for c in "abcdefghijklmnopqrst")]
    (tmp_path / "a.txt").write_text("\n".join([lines[0], "", *lines[1:]]) + "\n")
    fit = ("fit", tmp_path / "a.txt", "--model", tmp_path / "m", "--encoder", tiny_bert, "--max-false-alarms", 0.05)
    score = ("score", tmp_path / "a.txt", "--model", tmp_path / "m", "--out", tmp_path / "o.jsonl")
    code, _, err = strays(*fit)
    assert code == 0, err
    code, _, err = strays(*score, "--cascade")
    assert (code, "this model has no cascade; fit it with" in err) == (1, True)
    code, out, err = strays(*fit, "--cascade", "--json")
    assert code == 0, err
    assert json.loads(out)["cascade"]["recall"] == 0.98
    code, _, err = strays(*score, "--cascade", "--recall", "0.9")
    assert code == 0, err
    assert "rows went to the model" in err
    assert "0.9 of those it would flag, as told by" in err
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert {row["scored_by"] for row in rows} == {"full", "fast", None}
    assert all(row["scored_by"] == "full" for row in rows if row["flagged"])
    code, out, _ = strays(*score, "--cascade", "--json")
    summary = json.loads(out)
    assert summary["cascade"]["n_by_full"] <= summary["n_rows"] == 401
    assert summary["cascade"]["n_held_out"] >= 49
    assert strays(*score, "--cascade", "--top", 3)[0] == 2
    assert strays(*score, "--recall", 0.9)[0] == 2
    assert "cascade" in strays("info", tmp_path / "m")[1]


def test_a_column_in_the_way_is_refused_only_with_a_cascade(
    strays: Callable[..., tuple[int, str, str]], tiny_bert: Path, tmp_path: Path
) -> None:
    header = "text,scored_by\n"
    (tmp_path / "a.csv").write_text(header + "".join(f"{text},me\n" for text in farm_texts(100)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StraysWarning)
        code, _, err = strays("fit", tmp_path / "a.csv", "--model", tmp_path / "m", "--encoder", tiny_bert, "--cascade",
                              "--text-column", "text")  # fmt: skip
    assert code == 0, err
    score = ("score", tmp_path / "a.csv", "--model", tmp_path / "m", "--text-column", "text", "--out")
    assert strays(*score, tmp_path / "o.csv")[0] == 0
    code, _, err = strays(*score, tmp_path / "p.csv", "--cascade")
    assert code == 1
    assert "already has a column 'scored_by'" in err


def test_a_threshold_that_changes_under_a_cascade_is_refused(model: TextOutlierDetector) -> None:
    model.set_threshold(max_false_alarms=0.05)
    scorer = CascadeScorer(model)
    model.set_threshold(max_false_alarms=0.01)
    with pytest.raises(UsageError, match="has changed since"):
        scorer.score(corpus(3, 1))


def test_a_rule_that_flags_everything_sends_everything(model: TextOutlierDetector) -> None:
    model.set_threshold(max_false_alarms=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StraysWarning)
        found = CascadeScorer(model).score(corpus(20, 2))
    assert np.isfinite(found.anomaly_score).all()
    assert found.flagged.all()
    assert found.by_full is not None
    assert found.by_full.all()
