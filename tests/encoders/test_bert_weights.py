from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from strays.encoders import load_encoder
from strays.encoders.bert_config import read_config
from strays.encoders.bert_weights import BertWeights
from strays.errors import EncoderError
from tests.conftest import farm_texts

TEXTS = farm_texts(40)


@pytest.fixture
def folder(tiny_bert: Path, tmp_path: Path) -> Path:
    """A copy of the tiny BERT to change."""
    return Path(shutil.copytree(tiny_bert, tmp_path / "m"))


@pytest.fixture
def weights(folder: Path) -> dict[str, np.ndarray]:
    return load_file(folder / "model.safetensors")


def read(folder: Path) -> dict[str, np.ndarray]:
    config = read_config(folder)
    assert config is not None
    return dict(BertWeights(folder, config))


def save_bfloat16(weights: dict[str, np.ndarray], path: Path) -> None:
    """As safetensors would, which NumPy has no type for: the upper halves of the numbers."""
    header, data = {}, b""
    for name, value in weights.items():
        half = (np.ascontiguousarray(value, dtype="<f4").view("<u4") >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": "BF16", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(half)]}
        data += half
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_all_of_them_as_they_are(folder: Path, weights: dict[str, np.ndarray]) -> None:
    found = read(folder)
    assert set(found) == set(weights)
    for name, value in weights.items():
        assert found[name].dtype == np.float32
        assert np.array_equal(found[name], value)


@pytest.mark.parametrize("prefix", ["", "bert.", "roberta."])
def test_a_model_with_a_head_and_the_names_of_the_first_berts(
    prefix: str, folder: Path, weights: dict[str, np.ndarray]
) -> None:
    old = {
        name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): v for name, v in weights.items()
    }
    head = {"cls.predictions.bias": np.ones(5, dtype=np.float32), "pooler.dense.weight": np.ones(3, dtype=np.int8)}
    save_file({prefix + name: value for name, value in old.items()} | head, folder / "model.safetensors")
    found = read(folder)
    assert set(found) == set(weights)
    assert all(np.array_equal(found[name], value) for name, value in weights.items())


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_numbers_become_float32(dtype: type, folder: Path, weights: dict[str, np.ndarray]) -> None:
    save_file({name: value.astype(dtype) for name, value in weights.items()}, folder / "model.safetensors")
    for name, value in read(folder).items():
        assert np.array_equal(value, weights[name].astype(dtype).astype(np.float32))


def test_bfloat16_too(folder: Path, weights: dict[str, np.ndarray]) -> None:
    save_bfloat16(weights, folder / "model.safetensors")
    found = read(folder)
    for name, value in weights.items():
        np.testing.assert_allclose(found[name], value, rtol=2**-7)
        assert not (found[name].view(np.uint32) & 0xFFFF).any()
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'strays[torch]'")
    from safetensors.torch import load_file as load_torch

    for name, value in load_torch(folder / "model.safetensors").items():
        assert np.array_equal(value.to(torch.float32).numpy(), found[name])


@pytest.mark.parametrize("stored", ["half", "bfloat16", "with a head"])
def test_embeddings_are_those_that_transformers_gives(
    stored: str, folder: Path, weights: dict[str, np.ndarray]
) -> None:
    pytest.importorskip("transformers", reason="needs transformers: pip install 'strays[torch]'")
    path = folder / "model.safetensors"
    if stored == "half":
        save_file({name: value.astype(np.float16) for name, value in weights.items()}, path, {"format": "pt"})
    elif stored == "bfloat16":
        save_bfloat16(weights, path)
    else:
        save_file({f"bert.{name}": value for name, value in weights.items()}, path, {"format": "pt"})
    ours, theirs = (load_encoder(str(folder), precision="full", runtime=way, cache=False) for way in ("onnx", "torch"))
    np.testing.assert_allclose(ours.encode(TEXTS), theirs.encode(TEXTS), atol=1e-5)


def shard(folder: Path, weights: dict[str, np.ndarray]) -> dict[str, str]:
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    parts = {"model-00001-of-00002.safetensors": names[:7], "model-00002-of-00002.safetensors": names[7:]}
    for file, own in parts.items():
        save_file({name: weights[name] for name in own}, folder / file)
    return {name: file for file, own in parts.items() for name in own}


def test_weights_in_several_files(folder: Path, tiny_bert: Path, weights: dict[str, np.ndarray]) -> None:
    index = shard(folder, weights)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    found = read(folder)
    assert all(np.array_equal(found[name], value) for name, value in weights.items())
    assert np.array_equal(load_encoder(str(folder)).encode(TEXTS), load_encoder(str(tiny_bert)).encode(TEXTS))


@pytest.mark.parametrize(
    "index",
    [
        "{}", '{"weight_map": 5}', '{"weight_map": {"a": 5}}', '{"weight_map": {"a": "../outside.safetensors"}}',
        '{"weight_map": {"a": "model-00003-of-00002.safetensors"}}', "[]", "{",
    ],
)  # fmt: skip
def test_an_index_that_names_other_files(index: str, folder: Path, weights: dict[str, np.ndarray]) -> None:
    shard(folder, weights)
    save_file(weights, folder.parent / "outside.safetensors")
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(EncoderError, match="ownload the model's files again"):
        load_encoder(str(folder)).encode(["the cat"])


@pytest.mark.parametrize("name", ["{}", "fast:{}"])
@pytest.mark.parametrize("lost", ["embeddings.word_embeddings.weight", "encoder.layer.1.output.LayerNorm.bias"])
def test_a_tensor_that_is_missing_is_not_made_up(
    lost: str, name: str, folder: Path, weights: dict[str, np.ndarray]
) -> None:
    weights.pop(lost)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(EncoderError, match=rf"its weights lack {lost}\. Download the model's files again"):
        load_encoder(name.format(folder)).encode(["the cat"])


def test_many_that_are_missing_are_counted(folder: Path) -> None:
    save_file({"other": np.ones(3, dtype=np.float32)}, folder / "model.safetensors")
    with pytest.raises(EncoderError, match=r"lack .*, .*, .* and 34 more\."):
        load_encoder(str(folder)).encode(["the cat"])


def test_a_tensor_of_another_shape_or_type(folder: Path, weights: dict[str, np.ndarray]) -> None:
    name = "encoder.layer.0.intermediate.dense.weight"
    save_file(weights | {name: weights[name].T.copy()}, folder / "model.safetensors")
    with pytest.raises(EncoderError, match=rf"have {name} in the shape \(32, 64\), but config.json says \(64, 32\)"):
        load_encoder(str(folder)).encode(["the cat"])
    save_file(weights | {name: weights[name].astype(np.int8)}, folder / "model.safetensors")
    with pytest.raises(EncoderError, match=rf"have {name} as I8; expected one of F32, F64, F16, BF16"):
        load_encoder(str(folder)).encode(["the cat"])


def test_files_cut_short_or_with_a_wrong_header(folder: Path) -> None:
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    size = struct.unpack("<Q", whole[:8])[0]
    beyond = json.dumps({"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}).encode()
    for data in (
        whole[:-5],
        whole[: size // 2],
        b"",
        struct.pack("<Q", 1 << 60),
        struct.pack("<Q", len(beyond)) + beyond,
    ):
        path.write_bytes(data)
        with pytest.raises(EncoderError, match="could not load the encoder"):
            load_encoder(str(folder)).encode(["the cat"])
