from __future__ import annotations

import json
import warnings
from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import false_discovery_control

from strays import TextOutlierDetector, load_encoder
from strays.detectors import AISVDD, DETECTORS, CentroidDistance, Detector
from strays.errors import DataError, EncoderError, ModelError, StraysWarning, UsageError
from strays.jobs.metrics import auc
from strays.model.calibration import Calibration, threshold
from strays.model.folder import load_folder, save_folder, sealed
from tests.conftest import HashEncoder, farm_texts, save_tiny_bert

NORMAL = farm_texts(200)
SPAM = [
    f"win {prize} cash now click {n}" for n in ("here", "there", "fast", "today") for prize in ("big", "free", "hot")
]
TEXTS = NORMAL[:160] + SPAM[:6]
LABELS = [None] * 160 + ["anomaly"] * 6


def fitted(detector: str | Detector = "auto", labels: list | None = None, **options: object) -> TextOutlierDetector:
    """A model of one's own; what many tests begin with is fitted once."""
    if isinstance(detector, str) and not options and labels in (None, LABELS):
        return deepcopy(_fitted_once(detector, labels is LABELS))
    return TextOutlierDetector(HashEncoder(), detector, **options).fit(TEXTS, labels)  # type: ignore[arg-type]


@cache
def _fitted_once(detector: str, labelled: bool) -> TextOutlierDetector:
    return TextOutlierDetector(HashEncoder(), detector).fit(TEXTS, LABELS if labelled else None)


def test_auto_learns_from_anomalies_where_there_are_any() -> None:
    assert fitted(labels=LABELS).detector_.shares_["kernel"] > 0
    assert fitted().detector_.shares_["kernel"] == 0
    assert fitted(labels=["normal"] * 100 + [None] * 66).detector_.shares_["kernel"] == 0


@pytest.mark.parametrize("name", DETECTORS)
def test_every_detector_finds_spam_among_animals(name: str) -> None:
    model = fitted(name, LABELS)
    scores = model.anomaly_score(NORMAL[160:] + SPAM[6:])
    assert auc(np.r_[np.ones(40), -np.ones(6)].astype(int), scores) > 0.9


@pytest.mark.parametrize("name", DETECTORS)
def test_save_and_load_give_the_same_answers(name: str, tmp_path: Path) -> None:
    model = fitted(name, LABELS).set_threshold(flag_rate=0.1)
    new = NORMAL[150:] + SPAM
    model.save(tmp_path / "m")
    loaded = TextOutlierDetector.load(tmp_path / "m", encoder=HashEncoder())
    before, after = model.score(new), loaded.score(new)
    assert np.array_equal(before.anomaly_score, after.anomaly_score)
    assert np.array_equal(before.p_value, after.p_value)
    assert np.array_equal(before.flagged, after.flagged)
    assert before.flagged.any()
    assert loaded.info() == model.info()
    assert {path.suffix for path in (tmp_path / "m").iterdir()} == {".json", ".safetensors"}


def test_a_transformer_encoder_is_found_again_on_loading(tiny_bert: Path, tmp_path: Path) -> None:
    model = TextOutlierDetector(str(tiny_bert), "centroid").fit(NORMAL[:50])
    model.save(tmp_path / "m")
    loaded = TextOutlierDetector.load(tmp_path / "m")
    np.testing.assert_allclose(loaded.anomaly_score(SPAM), model.anomaly_score(SPAM), atol=1e-6)


def test_a_loaded_model_can_be_fitted_again_with_its_own_settings(tiny_bert: Path, tmp_path: Path) -> None:
    model = TextOutlierDetector(load_encoder(str(tiny_bert), pooling="cls"), "centroid").fit(NORMAL[:50])
    model.save(tmp_path / "m")
    again = TextOutlierDetector.load(tmp_path / "m").fit(NORMAL[:50])
    np.testing.assert_allclose(again.anomaly_score(SPAM), model.anomaly_score(SPAM), atol=1e-6)


def test_another_encoder_in_the_same_place_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    folder.mkdir()
    save_tiny_bert(folder)
    TextOutlierDetector(str(folder), "centroid").fit(NORMAL[:50]).save(tmp_path / "m")
    save_tiny_bert(folder, seed=1)
    with pytest.raises(ModelError, match="not the one this model was fitted with"):
        TextOutlierDetector.load(tmp_path / "m").anomaly_score(SPAM)


def test_an_encoder_object_must_be_given_again(tmp_path: Path) -> None:
    fitted().save(tmp_path / "m")
    with pytest.raises(ModelError, match=r"load\(\.\.\., encoder=\.\.\.\)"):
        TextOutlierDetector.load(tmp_path / "m")


def test_the_same_seed_gives_the_same_scores() -> None:
    first, second, other = (
        fitted("ai-svdd", LABELS, held_out=0.2, random_state=seed).anomaly_score(NORMAL) for seed in (3, 3, 4)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_a_score_does_not_depend_on_its_batch(tiny_bert: Path) -> None:
    model = TextOutlierDetector(str(tiny_bert)).fit(TEXTS, LABELS)
    together = model.anomaly_score(NORMAL[:60])
    np.testing.assert_allclose(model.anomaly_score(NORMAL[:60][::-1])[::-1], together, rtol=1e-5)
    np.testing.assert_allclose([model.anomaly_score([text])[0] for text in NORMAL[:10]], together[:10], rtol=1e-5)


def test_training_scores_are_those_of_the_fitted_model() -> None:
    model = fitted(labels=LABELS)
    np.testing.assert_allclose(model.training_scores_, model.anomaly_score(TEXTS))


def test_held_out_texts_are_not_seen_by_the_detector() -> None:
    seen = []

    class Watching(CentroidDistance):
        def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
            seen.append((len(X), int((y < 0).sum())))
            super()._fit(X, y)

    model = fitted(Watching(), LABELS, held_out=0.25)
    assert model.summary_.n_held_out == 40
    assert seen == [(126, 6)]  # all but the 40; no known anomaly is spent on calibration

    seen.clear()
    model = fitted(Watching(), LABELS)
    assert (model.summary_.n_held_out, model.summary_.n_folds) == (160, 10)
    assert seen == [(150, 6)] * 10 + [(166, 6)]  # each sixteen in turn, then all


def test_cross_fitted_scores_are_those_of_detectors_that_did_not_see_the_text() -> None:
    """With the folds' detectors known, every calibration score can be found again."""
    detectors = []

    class Kept(CentroidDistance):
        def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
            super()._fit(X, y)
            detectors.append((self, X))

    model = TextOutlierDetector(HashEncoder(), Kept()).fit(NORMAL[:50])
    *folds, whole = detectors
    X = HashEncoder().encode(NORMAL[:50])
    expected = []
    for detector, seen in folds:
        unseen = [row for row in X if not (seen == row).all(axis=1).any()]
        expected += [float(np.linalg.norm(row - detector.center_)) for row in unseen]
    assert len(expected) == 50
    np.testing.assert_allclose(model.calibration_.normal_scores, np.sort(expected), rtol=1e-5)
    assert len(whole[1]) == 50


@pytest.mark.parametrize("texts", [["a a", "a a", "b"], ["same"] * 98 + ["other", "third"], ["x", "y", "z"]])
def test_texts_with_little_variety_can_be_fitted(texts: list[str]) -> None:
    for seed in range(5):
        model = TextOutlierDetector(HashEncoder(), random_state=seed).fit(
            [*texts, "same b"], threshold=threshold(top=1)
        )
        assert np.isfinite(model.training_scores_).all()


def test_networks_are_not_cross_fitted() -> None:
    """Their scores do not compare from fit to fit."""
    assert fitted("deep-svdd").summary_.n_folds == 0
    assert fitted("ai-svdd", LABELS).summary_.n_held_out == 32


def test_many_texts_are_held_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strays.model.fitting.MOST_IN_FOLDS", 100)
    summary = fitted(CentroidDistance(), LABELS).summary_
    assert (summary.n_held_out, summary.n_folds) == (32, 0)


def test_p_values_of_fresh_normals_are_honest() -> None:
    """Over many splits, a share of at most a (up to chance) of fresh normal texts has p <= a."""
    rng = np.random.default_rng(0)
    low = []
    for seed in range(40):
        order = rng.permutation(200)
        model = TextOutlierDetector(HashEncoder(), "centroid", random_state=seed).fit([NORMAL[i] for i in order[:150]])
        low.append((model.p_value([NORMAL[i] for i in order[150:]]) <= 0.1).mean())
    assert np.mean(low) <= 0.1 + 3 * np.std(low) / np.sqrt(len(low))
    assert np.mean(low) > 0.03


def test_thresholds_change_without_refitting() -> None:
    model = fitted(labels=LABELS)
    new = NORMAL[160:] + SPAM[6:]
    scores = model.anomaly_score(new)
    assert (model.set_threshold(top=3).predict(new) == -1).sum() == 3
    assert set(np.flatnonzero(model.predict(new) == -1)) == set(np.argsort(-scores)[:3])
    by_p = model.set_threshold(max_false_alarms=0.1).predict(new)
    assert np.array_equal(by_p == -1, model.p_value(new) <= 0.1)
    together = model.set_threshold(max_false_share=0.5).predict(new)
    assert np.array_equal(together == -1, false_discovery_control(model.p_value(new)) <= 0.5)
    assert np.array_equal(model.decision_function(new) < 0, together == -1)
    assert (model.set_threshold(flag_rate=0.25).predict(TEXTS) == -1).sum() == int(0.25 * len(TEXTS))
    assert np.array_equal(model.decision_function(new) < 0, model.predict(new) == -1)
    assert np.array_equal(model.score_samples(new), -model.anomaly_score(new))
    assert np.array_equal(scores, model.anomaly_score(new))


def test_a_rate_finer_than_the_data_can_tell_draws_a_warning() -> None:
    model = fitted()
    with pytest.warns(StraysWarning, match="nothing will be flagged"):
        model.set_threshold(max_false_alarms=0.001)
    assert (model.predict(SPAM) == 1).all()
    for none in (0.001, 0):
        with pytest.warns(StraysWarning, match=f"max_false_share={none} is finer than"):
            model.set_threshold(max_false_share=none)
    assert (model.predict(SPAM) == 1).all()


def test_a_share_that_flags_nothing_says_what_it_would_take() -> None:
    model = fitted().set_threshold(max_false_share=0.1)
    m = model.summary_.n_held_out
    with pytest.warns(
        StraysWarning, match=rf"with {m} held-out .* at least {-(-60 * 10 // (m + 1))} of these 60 texts"
    ):
        model.predict(NORMAL[:60])


def test_a_share_that_flags_nothing_as_the_held_out_texts_are_as_odd_does_not_ask_for_more_texts() -> None:
    rng = np.random.default_rng(0)
    normal, odd = rng.normal(size=900), rng.normal(size=100) + 6
    wanted = threshold(max_false_share=0.1)
    clean = Calibration.from_scores(rng.normal(size=1000), normal)
    assert clean.flagged(wanted, np.r_[normal, odd])[900:].mean() > 0.9
    itself = Calibration.from_scores(np.r_[normal, odd], normal)
    with pytest.warns(StraysWarning, match="unlabelled strays among the held-out texts.* more texts would not help"):
        itself.warn_if_none_flagged(wanted, np.r_[normal, odd])
    coarse = Calibration.from_scores(rng.normal(size=99), normal)
    with pytest.warns(StraysWarning, match=r"at least 95 of these 950 texts .* Fit on more texts"):
        coarse.warn_if_none_flagged(wanted, np.r_[np.minimum(normal, 1), odd[:50]])
    few_above = Calibration.from_scores(rng.normal(size=400), normal)  # 25 are needed and 15 there: more than chance
    with pytest.warns(StraysWarning, match="at least 25 of these 1000 texts .* 15 are. Fit on more texts"):
        few_above.warn_if_none_flagged(wanted, np.r_[np.minimum(normal, 1), np.zeros(85), odd[:15]])


def test_texts_are_encoded_once() -> None:
    model = fitted()
    model.encoder_.seen.clear()
    model.score(SPAM)
    assert model.encoder_.seen == [SPAM]


def test_no_texts_no_scores() -> None:
    assert fitted().anomaly_score([]).shape == (0,)
    assert fitted().predict([]).shape == (0,)


def test_a_detector_object_is_cloned_and_keeps_its_settings() -> None:
    detector = AISVDD(hidden_size=8, epochs=1)
    model = fitted(detector, LABELS)
    assert not hasattr(detector, "weights_")
    assert (model.detector_.hidden_size, model.detector_.random_state) == (8, 0)
    assert fitted(AISVDD(random_state=7), LABELS).detector_.random_state == 7


def test_info_is_plain_data() -> None:
    info = fitted(labels=LABELS).info()
    assert json.loads(json.dumps(info)) == info
    assert info["detector"]["name"] == "auto"
    assert "6 known anomalies" in info["detector"]["says"]
    assert info["fitted_on"]["n_anomaly"] == 6


# ---- what bad input gets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ([], None, "got 0 texts"),
        (["one"], None, "got 1 texts"),
        (["one", "two"], None, "got 2 texts, 2 of them"),
        (["same"] * 50, None, "1 of them normal or unlabelled and different"),
        (NORMAL[:5], ["anomaly"] * 5, "all 5 texts are labelled anomaly"),
        (NORMAL[:5], ["normal"] * 2 + ["anomaly"] * 3, "2 of them normal"),
        (NORMAL[:5], ["normal"] * 4, "got 4 labels for 5 texts"),
        (NORMAL[:5], ["normal"] * 4 + ["spam"], r"labels\[4\] is 'spam'; expected 'normal', 'anomaly'"),
        (NORMAL[:5], [1, 1, 1, 1, -1], r"labels\[0\] is 1"),
        ([*NORMAL[:5], None], None, r"texts\[5\] is None"),
        ("one text", None, r"Pass \[text\]"),
    ],
)
def test_bad_texts_and_labels_are_refused(texts: list, labels: list | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TextOutlierDetector(HashEncoder()).fit(texts, labels)


def test_an_encoder_that_cannot_tell_texts_apart() -> None:
    with pytest.raises(DataError, match=r"cannot tell these texts apart: all 5 get one embedding"):
        TextOutlierDetector(BadEncoder(np.ones((5, 3)))).fit(NORMAL[:5])


@pytest.mark.parametrize(("n", "needed"), [(3, 19), (18, 19)])
def test_three_texts_are_enough_to_rank_but_not_to_flag(n: int, needed: int) -> None:
    message = f"^{n} texts are too few to flag any text at 5 % false alarms: {needed} are needed for new texts, 39 for"
    with pytest.warns(StraysWarning, match=message) as told:
        model = TextOutlierDetector(HashEncoder()).fit(NORMAL[:n])
    assert len(told) == 1
    assert told[0].message.params == ("flag_rate",)  # type: ignore[union-attr]
    scored = model.score([*NORMAL[:n], *SPAM])
    assert np.isfinite(scored.p_value).all()
    assert not scored.flagged.any()
    assert model.set_threshold(top=2).score([*NORMAL[:n], *SPAM]).flagged.sum() == 2


def test_a_network_needs_more_texts_as_it_holds_out_a_fifth() -> None:
    with pytest.warns(StraysWarning, match="^60 texts are too few .* 95 are needed for new texts, 195 for these"):
        TextOutlierDetector(HashEncoder(), "deep-svdd").fit(NORMAL[:60])


def test_whoever_chose_a_threshold_is_not_told_of_the_default_one() -> None:
    model = TextOutlierDetector(HashEncoder()).fit(NORMAL[:5], threshold=threshold(top=1))
    assert model.threshold_ == threshold(top=1)


# ---- fit_predict -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [None, LABELS])
def test_fit_predict_flags_the_texts_it_is_given(labels: list | None) -> None:
    model = TextOutlierDetector(HashEncoder())
    flags = model.fit_predict(TEXTS, labels)
    assert set(flags) == {1, -1}
    assert np.array_equal(flags == -1, model.flag(model.training_scores_).flagged)
    assert (flags[160:] == -1).sum() >= 4
    assert TextOutlierDetector(HashEncoder()).fit_predict(TEXTS, threshold=threshold(top=3)).tolist().count(-1) == 3


def test_fit_predict_says_when_none_of_its_texts_can_be_flagged() -> None:
    texts = [*NORMAL[:24], SPAM[0]]
    with pytest.warns(StraysWarning, match="^25 texts are too few to flag any of them .* 39 for these") as told:
        flags = TextOutlierDetector(HashEncoder()).fit_predict(texts)
    assert (len(told), set(flags)) == (1, {1})
    with pytest.warns(StraysWarning, match=r"^24 texts are too few .* 19 are needed for new texts, 39 for these"):
        TextOutlierDetector(HashEncoder()).fit_predict([*NORMAL[:24], *NORMAL[:12]])  # equal texts count once
    model = TextOutlierDetector(HashEncoder()).fit(NORMAL[:24])  # enough for new ones
    assert (model.predict(SPAM) == -1).any()


# ---- what is given ---------------------------------------------------------------------------------------------------


METHODS = ["fit", "fit_predict", "anomaly_score", "p_value", "predict", "score_samples", "decision_function", "score"]


@pytest.mark.parametrize("method", [*METHODS, "explain_many"])
def test_a_table_is_refused_by_every_method(method: str) -> None:
    table = pa.table({"id": range(166), "text": TEXTS})
    with pytest.raises(DataError, match=r"texts is a Table with the columns 'id', 'text'; .*Pass table\[\"text\"\]"):
        getattr(fitted(), method)(table)


def test_explain_takes_one_text() -> None:
    with pytest.raises(DataError, match=r"text is of type list; expected a string.*explain_many\(texts\)"):
        fitted().explain(["a cat"])  # type: ignore[arg-type]


def test_columns_of_other_libraries_give_the_same_scores() -> None:
    expected = fitted("centroid", LABELS).anomaly_score(SPAM)
    for texts, labels in [
        (np.array(TEXTS), np.array(LABELS, dtype=object)),
        (pa.array(TEXTS), pa.array(LABELS)),
        (iter(TEXTS), iter(LABELS)),
    ]:
        model = TextOutlierDetector(HashEncoder(), "centroid").fit(texts, labels)  # type: ignore[arg-type]
        np.testing.assert_allclose(model.anomaly_score(pa.array(SPAM)), expected)


def test_indexes_of_pandas_must_agree() -> None:
    pd = pytest.importorskip("pandas", reason="needs pandas")
    texts, labels = pd.Series(TEXTS, index=range(5, 171)), pd.Series(LABELS, index=range(5, 171))
    reversed_ = TextOutlierDetector(HashEncoder(), "centroid").fit(texts[::-1], labels[::-1])
    assert reversed_.summary_.n_anomaly == 6
    with pytest.raises(DataError, match=r"different indexes \(at position 0: 5 and 170\).*labels.loc\[texts.index\]"):
        TextOutlierDetector(HashEncoder(), "centroid").fit(texts, labels[::-1])
    TextOutlierDetector(HashEncoder(), "centroid").fit(texts, LABELS)  # a list has no index


def test_blank_texts_are_texts_and_it_is_said() -> None:
    with pytest.warns(StraysWarning, match="^2 of the 162 texts are blank"):
        model = TextOutlierDetector(HashEncoder(), "centroid").fit([*NORMAL[:160], "", " \n"])
    assert np.isfinite(model.anomaly_score(["", "a cat"])).all()


def test_labels_may_be_written_loosely() -> None:
    model = fitted(labels=["Normal ", "", None, " "] * 40 + ["ANOMALY"] * 6)
    assert (model.summary_.n_normal, model.summary_.n_unlabelled, model.summary_.n_anomaly) == (40, 120, 6)


class BadEncoder:
    def __init__(self, embeddings: np.ndarray) -> None:
        self.embeddings = embeddings

    def encode(self, texts: list[str]) -> np.ndarray:
        return self.embeddings


@pytest.mark.parametrize(
    ("embeddings", "message"),
    [
        (np.full((5, 3), np.nan), "NaN or infinity for text 0"),
        (np.ones((4, 3)), "one row for each"),
        (np.ones(5), "one row for each"),
    ],
)
def test_an_encoder_that_breaks_its_promise(embeddings: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TextOutlierDetector(BadEncoder(embeddings)).fit(NORMAL[:5])


def test_unknown_detectors_and_objects_that_are_none() -> None:
    with pytest.raises(UsageError, match="no detector is called 'svdd'"):
        fitted("svdd")
    with pytest.raises(UsageError, match="an object from strays"):
        fitted(object())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="held_out"):
        fitted(held_out=1.5)


def test_an_unfitted_model_says_so(tmp_path: Path) -> None:
    model = TextOutlierDetector(HashEncoder())
    for call in (lambda: model.predict(SPAM), lambda: model.save(tmp_path / "m"), lambda: model.set_threshold(top=1)):
        with pytest.raises(UsageError, match="not fitted yet"):
            call()


@pytest.mark.parametrize(
    "change",
    [
        {"detector": {"name": "os.system", "params": {}}},
        {"detector": {"name": "ai-svdd", "params": {"no_such": 1}}},
        {"detector": {"name": "lof", "params": {}}},
        {"threshold": {"rule": "sometimes", "value": 1}},
        {"threshold": {"rule": "top", "value": -1}},
        {"threshold": {"rule": "top", "value": "abc"}},
        {"threshold": {"rule": "top", "value": 1e999}},
        {"summary": {}},
        {"encoder": None},
    ],
)
def test_a_config_that_does_not_fit_its_arrays(tmp_path: Path, change: dict) -> None:
    fitted(labels=LABELS).save(tmp_path / "m")
    path = tmp_path / "m" / "config.json"
    path.write_text(json.dumps(sealed(json.loads(path.read_text()) | change)))
    with pytest.raises(ModelError, match=r"fit (it|the model) again"):
        TextOutlierDetector.load(tmp_path / "m", encoder=HashEncoder())


def test_repr_and_clone() -> None:
    from sklearn.base import clone

    model = TextOutlierDetector("default", "lof", random_state=4)
    assert "lof" in repr(model)
    assert clone(model).random_state == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model)


def test_the_fingerprint_is_that_of_the_scores(tmp_path: Path) -> None:
    model = fitted("centroid", LABELS)
    before = model.fingerprint
    model.save(tmp_path / "m")
    assert TextOutlierDetector.load(tmp_path / "m", encoder=HashEncoder()).fingerprint == before
    assert model.set_threshold(top=3).fingerprint == before
    assert fitted("centroid").fingerprint != before
    assert fitted("nearest", LABELS).fingerprint != before


# ---- saved models that somebody changed on purpose -------------------------------------------------------------------


def changed(folder: Path, arrays: dict[str, np.ndarray] | None = None, **config: object) -> Path:
    """A saved model with other arrays and config, and the right hash."""
    old_config, old_arrays = load_folder(folder)
    del old_config["arrays_sha256"]
    save_folder(folder, old_config | config, old_arrays | (arrays or {}))
    return folder


@pytest.mark.parametrize(
    ("detector", "array", "value"),
    [
        ("centroid", "detector/center_", np.zeros(17)),
        ("centroid", "detector/center_", np.full(16, 1e300)),
        ("nearest", "detector/rows_", np.zeros((1, 16), np.float32)),
        ("isolation-forest", "detector/feature_", None),
        ("auto", "detector/n_normals_", np.array(10**6)),
        ("auto", "detector/field_", np.zeros(3)),
        ("auto", "calibration/normal_scores", np.array([2.0, 1.0])),
        ("auto", "calibration/corpus_scores", np.empty(0)),
        ("auto", "examples/end", np.array([10**9])),
        ("auto", "examples/embedding", np.zeros((2, 3), np.float32)),
    ],
)
def test_arrays_that_do_not_fit_together(detector: str, array: str, value: np.ndarray | None, tmp_path: Path) -> None:
    fitted(detector).save(tmp_path / "m")
    if value is None:
        value = load_folder(tmp_path / "m")[1][array] + 16
    changed(tmp_path / "m", {array: value})
    with pytest.raises(ModelError, match=r"m: (the (array|kept|saved|trees)|an array).*fit (it|the model) again"):
        TextOutlierDetector.load(tmp_path / "m", encoder=HashEncoder())


def test_trees_that_lead_round_in_circles(tmp_path: Path) -> None:
    fitted("isolation-forest").save(tmp_path / "m")
    arrays = load_folder(tmp_path / "m")[1]
    back = np.zeros_like(arrays["detector/left_"])
    changed(tmp_path / "m", {"detector/left_": back, "detector/right_": back})
    with pytest.raises(ModelError, match="lead nowhere"):
        TextOutlierDetector.load(tmp_path / "m", encoder=HashEncoder())


@pytest.mark.parametrize(
    "config",
    [
        {"held_out": "a"},
        {"keep_examples": -1},
        {"random_state": 1e300},
        {"summary": {"n_texts": None}},
        {"detector": {"name": "nearest", "params": {"n_neighbors": "many"}}},
        {"detector": {"name": "x" * 10**5, "params": {}}},
        {"threshold": {"rule": "top", "value": 10**400}},
        {"encoder": {"settings": {"name": "default", "device": "cpu"}, "fingerprint": "0" * 64}},
        {"encoder": {"settings": {"name": "default"}, "fingerprint": None}},
        {"encoder": {"settings": {"name": "default", "revision": "../../.."}, "fingerprint": "0" * 64}},
        {"encoder": {"settings": {"name": "a\0b"}, "fingerprint": "0" * 64}},
        {"encoder": {"settings": {"name": "fast", "max_length": 2**63}, "fingerprint": "0" * 64}},
    ],
)
def test_a_config_that_no_model_has(config: dict[str, object], tmp_path: Path) -> None:
    fitted("nearest").save(tmp_path / "m")
    with pytest.raises(ModelError, match="m: ") as error:
        TextOutlierDetector.load(
            changed(tmp_path / "m", None, **config), encoder=None if "encoder" in config else HashEncoder()
        )
    assert len(str(error.value)) < 1000


def test_an_encoder_of_another_dimension(tmp_path: Path) -> None:
    fitted("isolation-forest").save(tmp_path / "m")
    loaded = TextOutlierDetector.load(tmp_path / "m", encoder=HashEncoder(9))
    for use in (loaded.anomaly_score, loaded.explain_many):
        with pytest.raises(ModelError, match="embeddings of 9 numbers, but this model was fitted on 16"):
            use(["the cat sleeps"])


def test_loading_reads_no_encoder(tmp_path: Path) -> None:
    settings = {"name": str(tmp_path / "nowhere")}
    fitted("centroid").save(tmp_path / "m")
    changed(tmp_path / "m", None, encoder={"settings": settings, "fingerprint": "0" * 64})
    loaded = TextOutlierDetector.load(tmp_path / "m")
    with pytest.raises(EncoderError, match="no folder"):
        loaded.anomaly_score(["the cat sleeps"])


@pytest.mark.parametrize(("held_out", "steps"), [(None, 11), (0.2, 1)])
def test_progress_is_told_while_fitting(held_out: float | None, steps: int) -> None:
    """Before every fit, the first too; after those that hold texts out in turn comes one on all."""
    told: list[tuple[int, int]] = []
    model = TextOutlierDetector(HashEncoder(), "centroid", held_out=held_out)
    model.fit(farm_texts(120), fit_progress=lambda done, total: told.append((done, total)))
    assert told == [(i, steps) for i in range(steps)]
