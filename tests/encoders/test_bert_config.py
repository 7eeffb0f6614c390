from __future__ import annotations

import json
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from strays.encoders import load_encoder
from strays.encoders.bert_config import MODEL_TYPES, BertConfig, read_config
from strays.errors import EncoderError


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_defaults_are_those_of_transformers(model_type: str) -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'strays[torch]'")
    theirs, ours = transformers.AutoConfig.for_model(model_type), BertConfig.from_dict({"model_type": model_type})
    own = {"position_embedding_type": "absolute", "tokenizer_class": None}  # which newer versions do not have
    for each in fields(BertConfig):
        assert getattr(ours, each.name) == getattr(theirs, each.name, own.get(each.name)), each.name


def test_other_kinds_are_left_to_transformers(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "distilbert", "dim": -1}')
    assert read_config(tmp_path) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_size", -3), ("hidden_size", 0), ("hidden_size", 1e30), ("hidden_size", 10**30), ("hidden_size", "32"),
        ("hidden_size", None), ("hidden_size", True), ("hidden_size", [32]), ("hidden_size", 33),
        ("num_hidden_layers", 10**9), ("num_attention_heads", 0), ("num_attention_heads", {}), ("vocab_size", -1),
        ("max_position_embeddings", 2), ("max_position_embeddings", 10**12), ("type_vocab_size", -1),
        ("layer_norm_eps", "small"), ("layer_norm_eps", float("nan")), ("layer_norm_eps", float("inf")),
        ("layer_norm_eps", True), ("pad_token_id", "0"), ("pad_token_id", -2), ("hidden_act", 5), ("hidden_act", None),
        ("is_decoder", "no"), ("position_embedding_type", []), ("tokenizer_class", 7), ("intermediate_size", 2.5),
    ],
)  # fmt: skip
@pytest.mark.parametrize("encoder", ["{}", "fast:{}"])
def test_what_no_model_can_be_is_refused_by_name(
    encoder: str, name: str, value: Any, tiny_bert: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny_bert, tmp_path / "m")
    said = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps(said | {name: value}))
    with pytest.raises(EncoderError, match=rf"in its config.json {name} is .*; expected .*Download the model's files"):
        load_encoder(encoder.format(tmp_path / "m")).encode(["the cat"])


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "[" * 100_000, '{"model_type": ', "\x00", '{"model_type": NaN'])
def test_what_is_no_config_is_refused(text: str, tiny_bert: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bert, tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text(text)
    with pytest.raises(EncoderError, match="download the model's files again"):
        load_encoder(str(tmp_path / "m")).encode(["the cat"])
