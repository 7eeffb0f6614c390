"""Tuning the encoder: what decides, what is left alone, and what a tuned model is afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strays import TextOutlierDetector
from strays.encoders import load_encoder
from strays.encoders.transformer import TransformerEncoder
from strays.errors import ModelError, StraysWarning, UsageError
from strays.jobs.metrics import auc
from strays.model import tuning
from strays.model.fitting import hold_out
from strays.model.folder import load_folder, save_folder
from strays.model.form import text_hashes
from strays.model.tuning import TuningResult, chosen, seconds_to_tune
from tests.conftest import CATS, DEEDS, PLACES, HashEncoder, needs_torch

WHO = ["the baker", "my aunt", "a student", "the driver", "our neighbour", "the nurse", "her brother", "the mayor"]
DOES = ["opens", "sells", "paints", "finds", "moves", "cleans", "buys", "breaks", "brings", "repairs"]
DID = ["opened", "sold", "painted", "found", "moved", "cleaned", "bought", "broke", "brought", "repaired"]
WHAT = ["the old door", "a red car", "two small boats", "some bread", "the fence", "a letter", "new shoes", "a table"]


def sentences(verbs: list[str], n: int, seed: int = 0) -> list[str]:
    """n different short sentences with one of these verbs."""
    every = [f"{who} {verb} {what}" for who in WHO for verb in verbs for what in WHAT]
    return np.random.default_rng(seed).permutation(every)[:n].tolist()


def farm_labels(n_known: int, n: int = 280) -> tuple[list[str], list[str | None]]:
    """Texts in which every animal does everything; those known for anomalies are about hens and goats."""
    texts = [f"the {c} {d} {p}" for c in CATS for d in DEEDS for p in PLACES]
    known = [text for text in texts if "hen" in text or "goat" in text][:n_known]
    normal = [text for text in texts if "hen" not in text and "goat" not in text]
    return [*known, *normal[: n - n_known]], ["anomaly"] * n_known + [None] * (n - n_known)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps, which are learnt from whatever they gain."""
    monkeypatch.setattr(tuning, "MOST_STEPS", 4)
    monkeypatch.setattr(tuning, "chosen", lambda auc: 1.0)


def model_on(folder: Path, **options: Any) -> TextOutlierDetector:
    return TextOutlierDetector(load_encoder(str(folder), cache=False), tune=True, **options)


# ---- what decides ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gains", "share"),
    [
        ((0.05, 0.10), 1.0),
        ((0.08, 0.04), 0.5),
        ((-0.01, -0.02), 0.0),
        ((0.004, 0.008), 0.0),  # too little to be worth it
        ((0.0, 0.0), 0.0),
    ],
)
def test_the_share_is_the_one_that_gains_most(gains: tuple[float, float], share: float) -> None:
    plain = np.linspace(0.2, 0.8, 50)
    assert chosen(np.column_stack([plain, *(plain + gain for gain in gains)])) == share


def test_a_gain_that_may_be_chance_is_none() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=0.3, size=(200, 30))  # thirty known anomalies, of which tuning moves each by chance
    gains = [chosen(np.column_stack([np.zeros(30), moved, moved])) > 0 for moved in noise]
    assert np.mean(gains) < 0.15
    assert chosen(np.column_stack([np.zeros(30), noise[0] + 0.15, noise[0] + 0.2])) == 1.0


@needs_torch
def test_labels_that_tell_nothing_change_nothing(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SURE", 5.0)  # one draw in nine gains something by chance
    texts, labels = farm_labels(40)
    labels = np.random.default_rng(0).permutation(np.array(labels, dtype=object)).tolist()
    plain = TextOutlierDetector(load_encoder(str(tiny_bert), cache=False)).fit(texts, labels)
    model = model_on(tiny_bert).fit(texts, labels)
    assert model.tuning_ is not None
    assert model.tuning_.share == 0
    assert str(model.tuning_).startswith("not tuned: ")
    assert np.array_equal(model.p_value(texts), plain.p_value(texts))
    assert model.fingerprint != plain.fingerprint  # it says that tuning was tried


@needs_torch
def test_it_learns_what_the_encoder_did_not_tell(default_encoder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "MOST_STEPS", 25)
    texts, labels = sentences(DOES[:7], 200) + sentences(DID[:7], 24), [None] * 200 + ["anomaly"] * 24
    fresh, y = sentences(DOES[7:], 100) + sentences(DID[7:], 100), np.r_[np.ones(100), -np.ones(100)]
    plain = TextOutlierDetector(load_encoder("default", cache=False)).fit(texts, labels)
    model = TextOutlierDetector(load_encoder("default", cache=False), tune=True).fit(texts, labels)
    assert model.tuning_ is not None
    assert model.tuning_.auc_tuned > model.tuning_.auc + 3
    assert model.tuning_.share > 0
    assert auc(y, model.anomaly_score(fresh)) > auc(y, plain.anomaly_score(fresh))


# ---- what is left alone ----------------------------------------------------------------------------------------------


@needs_torch
@pytest.mark.usefixtures("quick")
def test_texts_that_p_values_rest_on_are_not_learnt_from(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    monkeypatch.setattr(TransformerEncoder, "token_ids", noting(TransformerEncoder.token_ids, seen))
    texts, labels = farm_labels(30)
    model = model_on(tiny_bert, random_state=3).fit(texts, labels)
    held_out = set(np.array(texts)[hold_out(np.array([-(label is not None) for label in labels]), None, 3)])
    assert not held_out & seen
    assert seen | held_out == set(texts)
    assert model.summary_.n_held_out == len(held_out) == len(model.calibration_.normal_scores)
    for text in held_out:  # and the detector has not seen them
        assert model.anomaly_score([text])[0] in model.calibration_.normal_scores


@needs_torch
@pytest.mark.usefixtures("quick")
def test_a_model_fitted_with_a_tuned_encoder_has_p_values_from_texts_that_it_has_not_seen(
    tiny_bert: Path, tmp_path: Path
) -> None:
    texts, labels = farm_labels(30)
    first = model_on(tiny_bert).fit(texts, labels)
    first.save(tmp_path / "model")
    encoder = TextOutlierDetector.load(tmp_path / "model", cache=False).encoder_
    again = TextOutlierDetector(encoder).fit(texts, labels)
    assert again.summary_.n_held_out == first.summary_.n_held_out
    once = TextOutlierDetector(encoder, held_out=0.2).fit(texts, labels)
    assert once.summary_.n_held_out == first.summary_.n_held_out // 2
    held_out = hold_out(np.array([-(label is not None) for label in labels]), None, 0)
    scores = once.anomaly_score(np.array(texts)[held_out].tolist())
    assert np.isin(once.calibration_.normal_scores, scores).all()
    known = np.isin(text_hashes(texts), encoder.updates.learnt_from)  # type: ignore[attr-defined]
    with pytest.warns(StraysWarning, match="fewer than 20 normal ones are new to it"):
        TextOutlierDetector(encoder).fit(np.array(texts)[known].tolist(), np.array(labels)[known].tolist())
    others = [f"{text} today" for text in texts]
    assert TextOutlierDetector(encoder).fit(others, labels).summary_.n_folds
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the encoder was tuned on these texts")
        assert TextOutlierDetector(encoder).fit(others[-19:]).summary_.n_folds  # few, but all are new to it


def noting(real: Callable[..., Any], seen: set[str]) -> Callable[..., Any]:
    def noted(self: TransformerEncoder, texts: list[str]) -> Any:
        seen.update(texts)
        return real(self, texts)

    return noted


@needs_torch
def test_too_few_known_anomalies_leave_all_as_it_was(tiny_bert: Path) -> None:
    texts, labels = farm_labels(19)
    with pytest.warns(StraysWarning, match="19 known anomalies are too few to tune the encoder on; it stays as it is"):
        model = model_on(tiny_bert).fit(texts, labels)
    assert model.tuning_ is None
    plain = TextOutlierDetector(load_encoder(str(tiny_bert), cache=False)).fit(texts, labels)
    assert np.array_equal(model.anomaly_score(texts), plain.anomaly_score(texts))


@needs_torch
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("first", [True, False])
def test_a_fit_that_is_stopped_leaves_the_model_as_it_was(first: bool, tiny_bert: Path) -> None:
    texts, labels = farm_labels(30)
    encoder = load_encoder(str(tiny_bert), cache=False)

    def stop(done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    model = TextOutlierDetector(encoder, tune=True)
    if not first:
        model.fit(texts, labels)
        scores, fingerprint = model.anomaly_score(texts), model.fingerprint
    with pytest.raises(KeyboardInterrupt):
        model.fit(texts, labels, tune_progress=stop)
    if first:
        with pytest.raises(UsageError, match="not fitted yet"):
            model.anomaly_score(texts)
    else:
        assert model.fingerprint == fingerprint
        assert np.array_equal(model.anomaly_score(texts), scores)
    assert encoder.updates is None  # type: ignore[attr-defined]


@needs_torch
@pytest.mark.parametrize("normalize", [True, False])
def test_tuning_that_learns_nothing_gains_nothing(
    normalize: bool, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from strays.model import tuning_steps

    monkeypatch.setattr(tuning_steps, "tune", lambda bert, *given, seed, **others: bert.begin(seed))
    encoder = load_encoder(str(tiny_bert), normalize=normalize, cache=False)
    for detector in ("auto", "nearest"):
        found = TextOutlierDetector(encoder, detector, tune=True).fit(*farm_labels(40)).tuning_
        assert found is not None
        assert (found.share, found.auc_tuned) == (0, found.auc)


@needs_torch
def test_too_few_normal_texts_leave_all_as_it_was(tiny_bert: Path) -> None:
    texts, labels = farm_labels(30, 75)
    with pytest.warns(StraysWarning, match="36 normal texts besides those held out are too few to tune"):
        assert model_on(tiny_bert).fit(texts, labels).tuning_ is None


@pytest.mark.parametrize(
    ("encoder", "message"),
    [(HashEncoder(), "needs a transformer that strays loads"), ("fast", "needs a transformer that strays loads")],
)
def test_encoders_that_cannot_be_tuned(encoder: Any, message: str, default_folder: Path) -> None:
    texts, labels = farm_labels(30)
    with pytest.raises(UsageError, match=message):
        TextOutlierDetector(encoder, tune=True).fit(texts, labels)


def test_a_missing_extra_is_answered_with_the_command(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strays.encoders.transformer.has_torch", lambda: False)
    with pytest.raises(UsageError, match=r"pip install 'strays\[torch\]'"):
        model_on(tiny_bert).fit(*farm_labels(30))


# ---- a tuned model ---------------------------------------------------------------------------------------------------


@needs_torch
@pytest.mark.usefixtures("quick")
def test_the_same_seed_gives_the_same_model(tiny_bert: Path) -> None:
    texts, labels = farm_labels(30)
    first, again, other = (model_on(tiny_bert, random_state=seed).fit(texts, labels) for seed in (1, 1, 2))
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint != other.fingerprint


@needs_torch
@pytest.mark.usefixtures("quick")
def test_a_tuned_model_is_saved_whole(tiny_bert: Path, tmp_path: Path) -> None:
    texts, labels = farm_labels(30)
    model = model_on(tiny_bert).fit(texts, labels)
    model.save(tmp_path / "model")
    again = TextOutlierDetector.load(tmp_path / "model", cache=False)
    assert again.tuning_ == model.tuning_
    assert again.fingerprint == model.fingerprint
    assert np.array_equal(again.anomaly_score(texts), model.anomaly_score(texts))
    assert again.info()["tuning"]["share"] == 1.0
    plain = load_encoder(str(tiny_bert), cache=False)
    again.save(tmp_path / "twice")
    assert TextOutlierDetector.load(tmp_path / "twice", cache=False).fingerprint == model.fingerprint
    given = TextOutlierDetector.load(tmp_path / "model", encoder=plain)
    assert np.array_equal(given.anomaly_score(texts), model.anomaly_score(texts))


@needs_torch
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_progress_goes_from_nothing_to_all(share: float, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "chosen", lambda above: share)
    told: list[tuple[int, int]] = []
    model_on(tiny_bert).fit(*farm_labels(30), tune_progress=lambda done, total: told.append((done, total)))
    assert len({total for _, total in told}) == 1
    done = [done for done, _ in told]
    assert done == sorted(done)
    assert done[-1] == told[-1][1]


@needs_torch
@pytest.mark.usefixtures("quick")
def test_what_a_model_says_of_its_tuning_is_checked(tiny_bert: Path, tmp_path: Path) -> None:
    model_on(tiny_bert).fit(*farm_labels(30)).save(tmp_path / "model")
    config, arrays = load_folder(tmp_path / "model")
    for hashed in ("arrays_sha256", "config_sha256"):  # which save_folder makes anew
        del config[hashed]
    for wrong in ({"n_known": -1}, {"share": 2.0}, {"auc": "x"}, {"further": 1}):
        save_folder(tmp_path / "damaged", config | {"tuning": config["tuning"] | wrong}, arrays)
        with pytest.raises(ModelError, match=r"tuning|further"):
            TextOutlierDetector.load(tmp_path / "damaged", cache=False)
    save_folder(tmp_path / "damaged", config, {k: a for k, a in arrays.items() if k != "tuning/learnt_from"})
    with pytest.raises(ModelError, match=r"damaged: an update of the encoder.*; fit it again"):
        TextOutlierDetector.load(tmp_path / "damaged", cache=False)
    name = next(name for name in arrays if name.startswith("tuning/down/"))
    save_folder(tmp_path / "damaged", config, arrays | {name: arrays[name][:, :-1]})
    damaged = TextOutlierDetector.load(tmp_path / "damaged", cache=False)
    with pytest.raises(ModelError, match="tuning changed"):
        damaged.anomaly_score(["the cat sleeps"])
    with pytest.raises(ModelError, match="its encoder is tuned"):
        TextOutlierDetector.load(tmp_path / "model", encoder=HashEncoder())


def test_the_time_is_told_by_texts_and_cores(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_encoder(str(tiny_bert), cache=False)
    short, long = (seconds_to_tune(encoder, [text] * 100, 50) for text in ("a few words here", "a few words here" * 9))
    assert 0 < short < long
    assert seconds_to_tune(encoder, ["a few words here"] * 900, 50) > short
    assert seconds_to_tune(encoder, ["a few words here"] * 100, 90) > short


def test_in_words() -> None:
    assert "half as far as it could be" in str(TuningResult(100, 20, 0.5, 80.0, 90.0))
