"""Updates of an encoder's matrices: against weights changed by hand, and what is none is refused."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from strays.encoders import load_encoder
from strays.encoders.low_rank import LowRank, LowRankUpdates
from strays.encoders.transformer import TransformerEncoder
from strays.errors import EncoderError
from tests.conftest import farm_texts, needs_torch

TEXTS = farm_texts(40)
QUERY, INNER = "encoder.layer.0.attention.self.query.weight", "encoder.layer.1.intermediate.dense.weight"


@pytest.fixture
def updates(tiny_bert: Path) -> LowRankUpdates:
    rng = np.random.default_rng(3)
    weights = load_file(tiny_bert / "model.safetensors")

    def one(name: str) -> LowRank:
        outputs, inputs = weights[name].shape
        down, up = rng.normal(size=(4, inputs)), rng.normal(size=(outputs, 4))
        return LowRank(down.astype(np.float32), up.astype(np.float32))

    return LowRankUpdates({name: one(name) for name in (INNER, QUERY)}, np.array([2**63, 3, 3], dtype=np.uint64))


def load(folder: Path, **options: object) -> TransformerEncoder:
    encoder = load_encoder(str(folder), cache=False, **options)  # type: ignore[arg-type]
    assert isinstance(encoder, TransformerEncoder)
    return encoder


def changed_by_hand(folder: Path, updates: LowRankUpdates, to: Path) -> Path:
    """A folder whose weights have the updates already."""
    shutil.copytree(folder, to)
    weights = load_file(folder / "model.safetensors")
    for name, update in updates.items():
        weights[name] = (weights[name] + update.up.astype(float) @ update.down.astype(float)).astype(np.float32)
    save_file(weights, to / "model.safetensors", metadata={"format": "pt"})
    return to


@pytest.mark.parametrize("options", [{"precision": "full"}, {"precision": "int8"}])
def test_an_updated_encoder_is_the_one_with_those_weights(
    options: dict[str, str], tiny_bert: Path, updates: LowRankUpdates, tmp_path: Path
) -> None:
    by_hand = load(changed_by_hand(tiny_bert, updates, tmp_path / "by-hand"), **options)
    found = load(tiny_bert, **options).updated(updates).encode(TEXTS)
    assert np.array_equal(found, by_hand.encode(TEXTS))
    assert not np.allclose(found, load(tiny_bert, **options).encode(TEXTS), atol=1e-3)


@needs_torch
def test_on_pytorch_too(tiny_bert: Path, updates: LowRankUpdates) -> None:
    on_onnx = load(tiny_bert, precision="full").updated(updates)
    on_torch = load(tiny_bert, runtime="torch").updated(updates)
    np.testing.assert_allclose(on_torch.encode(TEXTS), on_onnx.encode(TEXTS), atol=1e-5)


def test_the_fingerprint_tells_updates_apart(tiny_bert: Path, updates: LowRankUpdates) -> None:
    plain = load(tiny_bert)
    tuned = plain.updated(updates)
    assert repr(tuned) != repr(plain)
    for name in ("fingerprint", "fingerprint_0_1"):
        prints = {getattr(each, name) for each in (plain, tuned, plain.updated(updates.scaled(0.5)))}
        assert len(prints) == 3
        assert getattr(plain.updated(LowRankUpdates.from_arrays(updates.to_arrays())), name) in prints
    assert set(tuned.files) - set(plain.files) == {"tuning"}


def test_embeddings_of_the_plain_encoder_are_not_looked_up(tiny_bert: Path, updates: LowRankUpdates) -> None:
    plain = load_encoder(str(tiny_bert))
    assert isinstance(plain, TransformerEncoder)
    before = plain.encode(TEXTS)
    tuned = plain.updated(updates)
    assert not np.allclose(tuned.encode(TEXTS), before, atol=1e-3)
    assert np.array_equal(tuned.encode(TEXTS), load(tiny_bert).updated(updates).encode(TEXTS))
    assert np.array_equal(plain.encode(TEXTS), before)


def test_a_copy_in_another_process_has_them(tiny_bert: Path, updates: LowRankUpdates) -> None:
    tuned = load(tiny_bert).updated(updates)
    copy = pickle.loads(pickle.dumps(tuned))
    assert copy.fingerprint == tuned.fingerprint
    assert np.array_equal(copy.encode(TEXTS), tuned.encode(TEXTS))


def test_what_is_saved_comes_back(updates: LowRankUpdates) -> None:
    again = LowRankUpdates.from_arrays(updates.to_arrays())
    assert again.digest == updates.digest
    assert again.scaled(0.5).learnt_from.tolist() == [3, 2**63]
    for name, one in updates.items():
        assert np.array_equal(again[name].down, one.down)
        assert np.array_equal(again[name].up, one.up)


@pytest.mark.parametrize(
    "damage", ["kind", "shape", "number", "rank", "half", "name", "texts", "kind of texts", "texts alone"]
)
def test_what_is_no_update_is_refused(damage: str, updates: LowRankUpdates) -> None:
    arrays = updates.to_arrays()
    name = f"down/{QUERY}"
    if damage == "kind":
        arrays[name] = arrays[name].astype(np.float64)
    elif damage == "shape":
        arrays[name] = arrays[name][0]
    elif damage == "number":
        arrays[name] = np.where(arrays[name] == arrays[name][0, 0], np.nan, arrays[name])
    elif damage == "rank":
        arrays[name] = arrays[name][:-1]
    elif damage == "half":
        del arrays[f"up/{QUERY}"]
    elif damage == "texts":
        del arrays["learnt_from"]
    elif damage == "kind of texts":
        arrays["learnt_from"] = arrays["learnt_from"].astype(np.float64)
    elif damage == "texts alone":
        arrays = {"learnt_from": arrays["learnt_from"]}
    else:
        arrays["elsewhere"] = arrays[name]
    with pytest.raises(EncoderError, match="is not one that strays wrote"):
        LowRankUpdates.from_arrays(arrays)


@pytest.mark.parametrize("damage", ["shape", "name"])
def test_updates_of_another_encoder_are_refused(damage: str, tiny_bert: Path, updates: LowRankUpdates) -> None:
    if damage == "shape":
        other = {QUERY: LowRank(updates[QUERY].down[:, :-1], updates[QUERY].up)}
    else:
        other = {"encoder.layer.9.output.dense.weight": updates[QUERY]}
    with pytest.raises(EncoderError, match=r"does not fit|does not have"):
        load(tiny_bert, precision="full").updated(LowRankUpdates(other)).encode(TEXTS)
