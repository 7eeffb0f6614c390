"""A saved model is used with the encoder it was fitted with, file for file, and with no other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strays import TextOutlierDetector
from strays.encoders import identity, load_encoder, pinned
from strays.encoders.identity import EncoderIdentity
from strays.engines import LocalEngine
from strays.errors import EncoderError, ModelError, UsageError
from strays.jobs.score import score_files
from tests.conftest import farm_texts, save_tiny_bert

TEXTS = farm_texts(60)


@pytest.fixture
def encoder(tiny_bert: Path, tmp_path: Path) -> Path:
    """A copy of the tiny BERT, to be changed."""
    return Path(shutil.copytree(tiny_bert, tmp_path / "encoder"))


def change(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def as_of_0_1(config: dict[str, Any]) -> dict[str, Any]:
    """A model's config without its hash."""
    return {key: value for key, value in config.items() if key != "config_sha256"} | {"format_version": 1}


CHANGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "number of heads": ("config.json", lambda path: change(path, num_attention_heads=4)),
    "layer_norm_eps": ("config.json", lambda path: change(path, layer_norm_eps=0.1)),
    "lower case": ("tokenizer_config.json", lambda path: change(path, do_lower_case=False)),
    "a special token": ("tokenizer_config.json", lambda path: change(path, unk_token="[MASK]")),
    "weights": ("model.safetensors", lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\1")),
    "vocabulary": ("tokenizer.json", lambda path: path.write_text(path.read_text() + " ")),
}


@pytest.mark.parametrize("kind", ["", "fast:"], ids=["transformer", "static"])
@pytest.mark.parametrize("what", CHANGES)
def test_a_model_refuses_an_encoder_that_changed(what: str, kind: str, encoder: Path, tmp_path: Path) -> None:
    TextOutlierDetector(f"{kind}{encoder}", "centroid").fit(TEXTS).save(tmp_path / "model")
    name, harm = CHANGES[what]
    harm(encoder / name)
    with pytest.raises(ModelError, match=f"not the one this model was fitted with: {name} changed"):
        TextOutlierDetector.load(tmp_path / "model").anomaly_score(TEXTS)


def test_what_decides_nothing_may_change(encoder: Path, tmp_path: Path) -> None:
    """The same files, saved again by another version of transformers."""
    model = TextOutlierDetector(str(encoder), "centroid").fit(TEXTS)
    model.save(tmp_path / "model")
    config = json.loads((encoder / "config.json").read_text()) | {"transformers_version": "9.9", "torch_dtype": "x"}
    (encoder / "config.json").write_text(json.dumps(dict(reversed(config.items())), indent=8))
    scores = TextOutlierDetector.load(tmp_path / "model").anomaly_score(TEXTS)
    np.testing.assert_allclose(scores, model.anomaly_score(TEXTS), rtol=1e-9)


@pytest.mark.parametrize("kind", ["", "fast:"], ids=["transformer", "static"])
def test_a_model_of_0_1_is_held_to_what_it_recorded(kind: str, encoder: Path, tmp_path: Path) -> None:
    model = TextOutlierDetector(f"{kind}{encoder}", "centroid").fit(TEXTS)
    model.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    del config["encoder"]["files"]
    config["encoder"]["fingerprint"] = model.encoder_.fingerprint_0_1
    path.write_text(json.dumps(as_of_0_1(config)))
    loaded = TextOutlierDetector.load(tmp_path / "model")
    loaded.anomaly_score(TEXTS)
    loaded.save(tmp_path / "again")
    again = json.loads((tmp_path / "again" / "config.json").read_text())
    assert again["encoder"] == config["encoder"]
    assert TextOutlierDetector.load(tmp_path / "again").fingerprint == loaded.fingerprint
    change(encoder / "config.json", layer_norm_eps=1e-11)
    TextOutlierDetector.load(tmp_path / "model").anomaly_score(TEXTS)
    save_tiny_bert(encoder, seed=1)
    with pytest.raises(ModelError, match="its weights or settings differ"):
        TextOutlierDetector.load(tmp_path / "model").anomaly_score(TEXTS)


def test_a_model_records_every_file(encoder: Path, tmp_path: Path) -> None:
    TextOutlierDetector(str(encoder), "centroid", cascade=True).fit(TEXTS).save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    own = {"config.json", "tokenizer_config.json", "tokenizer.json", "model.safetensors"}
    assert own | {"int8.onnx"} <= set(config["encoder"]["files"])
    assert own | {"table.safetensors"} <= set(config["cascade"]["files"])


@pytest.mark.parametrize("files", [[], "x", {"config.json": 1}, None])
def test_files_that_are_no_digests_are_refused(files: object, encoder: Path, tmp_path: Path) -> None:
    TextOutlierDetector(str(encoder), "centroid").fit(TEXTS).save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    config["encoder"]["files"] = files
    path.write_text(json.dumps(as_of_0_1(config)))
    with pytest.raises(ModelError, match="an encoder's files are"):
        TextOutlierDetector.load(tmp_path / "model")


def test_a_settings_file_that_cannot_be_read_is_an_error(encoder: Path) -> None:
    (encoder / "special_tokens_map.json").write_text("{")
    with pytest.raises(EncoderError, match=r"could not read .*special_tokens_map\.json"):
        identity.digests(encoder)


def test_weights_are_hashed_once_and_again_when_they_change(encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(pinned, "sha256", lambda path: read.append(path.name) or path.name)
    for _ in range(3):
        _ = load_encoder(str(encoder)).fingerprint
    assert sorted(read) == ["model.safetensors", "tokenizer.json"]
    weights = encoder / "model.safetensors"
    weights.write_bytes(weights.read_bytes() + b"\0")
    _ = identity.digests(encoder)
    assert read[2:] == ["model.safetensors"]


def test_a_job_does_not_resume_with_an_encoder_that_changed(encoder: Path, tmp_path: Path) -> None:
    """Whatever the model itself recorded, as one of 0.1 did not record the config."""
    (tmp_path / "in.txt").write_text("\n".join(TEXTS))
    (tmp_path / "out").mkdir()
    source, out = str(tmp_path / "in.txt"), str(tmp_path / "out")
    model = TextOutlierDetector(str(encoder), "centroid").fit(TEXTS)
    model.encoder_identity_ = EncoderIdentity(model.encoder_.fingerprint_0_1)
    score_files(model, source, out, out_format="csv", engine=LocalEngine())
    score_files(model, source, out, out_format="csv", engine=LocalEngine())
    change(encoder / "config.json", layer_norm_eps=0.1)
    with pytest.raises(UsageError, match="the earlier run had the encoder "):
        score_files(model.with_encoder(load_encoder(str(encoder))), source, out, out_format="csv", engine=LocalEngine())
