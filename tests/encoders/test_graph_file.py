"""The int8 graph is one small file that is mapped, and what it leaves out is in the weights' file."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from strays.encoders import load_encoder
from strays.encoders.base import LoadedEncoder
from strays.encoders.bert_weights import BertWeights
from strays.encoders.cache import models_folder
from strays.encoders.pretrained import Pretrained
from strays.encoders.runtimes import graph_file
from strays.encoders.runtimes.onnx_graph import TABLE, BertGraph, bert_graph
from strays.encoders.settings import PRECISIONS
from strays.errors import EncoderError
from tests.conftest import farm_texts, save_tiny_bert

TEXTS = farm_texts(40)


@pytest.fixture
def encoder(tiny_bert: Path, tmp_path: Path) -> Path:
    """A copy of the tiny BERT, to be changed."""
    return Path(shutil.copytree(tiny_bert, tmp_path / "encoder"))


def loaded(folder: Path, precision: str = "int8") -> LoadedEncoder:
    return load_encoder(str(folder), precision=precision, cache=False)


def graph_folder() -> Path:
    (folder,) = models_folder().glob("onnx-*")
    return folder


def in_float16(path: Path) -> None:
    save_file({name: value.astype(np.float16) for name, value in load_file(path).items()}, path)


def test_what_is_packed_is_unpacked_without_a_copy() -> None:
    rng = np.random.default_rng(0)
    constants = {"c1": rng.normal(size=(5, 7)).astype(np.float32), "c2": rng.integers(-63, 64, (3, 9)).astype(np.int8)}
    constants["c3"] = constants["c2"].T  # not contiguous
    table = rng.normal(size=(11, 7)).astype(np.float32)
    data = np.frombuffer(graph_file.packed(BertGraph(b"some onnx", constants), table), np.uint8)
    graph, found = graph_file.unpacked(data)
    assert graph.onnx == b"some onnx"
    assert found is not None
    for name, value in {**constants, TABLE: table}.items():
        again = found if name == TABLE else graph.constants[name]
        np.testing.assert_array_equal(again, value, strict=True)
        assert np.shares_memory(again, data)


def test_little_is_kept_and_nothing_for_full_precision(tiny_bert: Path) -> None:
    for precision in PRECISIONS:
        loaded(tiny_bert, precision).encode(TEXTS)
    assert {path.name for path in graph_folder().iterdir()} == {graph_file.FILE, graph_file.NOTES}
    kept = load_file(graph_folder() / graph_file.FILE)
    assert TABLE not in kept
    matrices = sum(value.size for name, value in load_file(tiny_bert / "model.safetensors").items() if "layer." in name)
    assert sum(value.nbytes for value in kept.values() if value.dtype == np.int8) <= matrices


def test_the_table_is_mapped_from_the_weights(tiny_bert: Path) -> None:
    pretrained = Pretrained(loaded(tiny_bert).settings)
    table = pretrained.weights()[TABLE]
    assert isinstance(table, np.memmap)
    for precision in PRECISIONS:
        session = loaded(tiny_bert, precision)._choice.onnx_model.session(precision)  # type: ignore[attr-defined]
        assert isinstance(session._table.base, np.memmap)


def test_a_table_of_another_type_is_kept_with_the_graph(encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_float16(encoder / "model.safetensors")
    made = loaded(encoder).encode(TEXTS)
    assert load_file(graph_folder() / graph_file.FILE)[TABLE].dtype == np.float32
    monkeypatch.setattr(Pretrained, "weights", lambda _: pytest.fail("the weights were read"))
    assert np.array_equal(loaded(encoder).encode(TEXTS), made)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_weights_of_other_types_are_converted(dtype: str, encoder: Path) -> None:
    exact = loaded(encoder, "full").encode(TEXTS)
    path = encoder / "model.safetensors"
    save_file({name: value.astype(dtype) for name, value in load_file(path).items()}, path)
    np.testing.assert_allclose(loaded(encoder, "full").encode(TEXTS), exact, atol=1e-2 if dtype == "float16" else 1e-7)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_files_may_be_replaced_while_they_are_mapped(precision: str, encoder: Path, tmp_path: Path) -> None:
    """By renaming, as strays, pip and the hub do it: what was opened stays what it was."""
    running = loaded(encoder, precision)
    expected = running.encode(TEXTS)
    loaded(encoder)._choice.onnx_model._make()  # type: ignore[attr-defined]
    save_tiny_bert(tmp_path / "other", seed=1)
    (tmp_path / "other" / "model.safetensors").replace(encoder / "model.safetensors")
    assert np.array_equal(running.encode(TEXTS), expected)
    assert not np.allclose(loaded(encoder, precision).encode(TEXTS), expected, atol=1e-3)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_weights_that_are_written_to_while_they_are_mapped_give_an_error(precision: str, encoder: Path) -> None:
    """Not other embeddings, and none of them go into the cache."""
    running = load_encoder(str(encoder), precision=precision)
    expected = running.encode(TEXTS[:5])
    weights = (encoder / "model.safetensors").read_bytes()
    with (encoder / "model.safetensors").open("r+b") as file:
        file.seek(len(weights) // 2)
        file.write(bytes(len(weights) // 2))
    with pytest.raises(EncoderError, match=r"model\.safetensors was written to while it was in use; start again"):
        running.encode(TEXTS)
    (encoder / "model.safetensors").write_bytes(weights)
    again = load_encoder(str(encoder), precision=precision)
    assert np.array_equal(again.encode(TEXTS)[:5], expected)
    assert np.array_equal(again.encode(TEXTS), again.without_cache().encode(TEXTS))


def test_weights_that_change_after_they_were_hashed_are_refused(encoder: Path, tmp_path: Path) -> None:
    pretrained = Pretrained(loaded(encoder).settings)
    _ = pretrained.fingerprint
    save_tiny_bert(tmp_path / "other", seed=1)
    (tmp_path / "other" / "model.safetensors").replace(encoder / "model.safetensors")
    with pytest.raises(EncoderError, match=r"model\.safetensors changed while it was read; run this again"):
        pretrained.weights()


def test_what_earlier_versions_kept_goes(tiny_bert: Path) -> None:
    loaded(tiny_bert).encode(TEXTS)
    (graph_folder() / graph_file.FILE).unlink()
    for name in (*graph_file.EARLIER, "letter.txt"):
        (graph_folder() / name).write_text("x")
    loaded(tiny_bert).encode(TEXTS)
    assert {path.name for path in graph_folder().iterdir()} == {graph_file.FILE, graph_file.NOTES, "letter.txt"}


@pytest.mark.parametrize("int8", [False, True])
def test_onnx_finds_no_fault_in_a_graph(int8: bool, tiny_bert: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pretrained = Pretrained(loaded(tiny_bert).settings)
    weights = BertWeights(tiny_bert, pretrained.config)
    graph = bert_graph(weights, pretrained.config, pretrained.shape, int8=int8)
    model = onnx.ModelProto.FromString(graph.onnx)
    outside = [each for each in model.graph.initializer if each.data_location == onnx.TensorProto.EXTERNAL]
    assert {each.name for each in outside} == set(graph.constants)
    for each in outside:
        each.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(graph.constants[each.name]), each.name))
    onnx.checker.check_model(model, full_check=True)
