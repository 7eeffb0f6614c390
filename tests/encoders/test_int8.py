"""Embeddings in 8 bits: codes stay in their range, and channels that are larger than others do not cost precision."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import load_file, save_file

from strays import TextOutlierDetector
from strays.encoders import load_encoder
from strays.encoders.bert_config import read_config
from strays.encoders.runtimes import onnx_format
from strays.encoders.runtimes.activation_spread import input_spread
from strays.encoders.runtimes.onnx_graph import OPSET, STEPS, _Graph
from strays.encoders.settings import GRAPH_VERSION, EncoderSettings
from strays.errors import UsageError
from tests.conftest import farm_texts

TEXTS = farm_texts(60)
LARGE = 5  # a channel


@pytest.mark.parametrize("after_gelu", [False, True])
@pytest.mark.parametrize("version", STEPS)
def test_no_code_is_higher_than_the_highest(version: int, after_gelu: bool) -> None:
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(300, 40)) * np.exp(rng.normal(size=(300, 1), scale=4))).astype(np.float32)
    rows = np.vstack([rows, np.zeros((1, 40), np.float32), np.full((1, 40), -1e-9, np.float32)])
    if after_gelu:
        rows = np.maximum(rows, np.float32(-0.17))
    steps = STEPS[version]
    graph = _Graph({}, 40, steps, {})
    found = graph.quantized("x", after_gelu=after_gelu)
    nodes = [
        *graph.nodes,
        onnx_format.node("Cast", [found.values], "codes", to=1),
        onnx_format.node("Identity", [found.scale], "scale"),
    ]
    into, *out = (
        onnx_format.tensor_info(name, "float32", ("rows", n)) for name, n in (("x", 40), ("codes", 40), ("scale", 1))
    )
    model = onnx_format.model("rows", nodes, graph.constants, [into], out, {"": OPSET})
    code, unit = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": rows})
    assert (code.min() >= 0, code.max()) == (True, steps.highest)
    zero = steps.zero_after_gelu if after_gelu else steps.zero
    assert (np.abs((code.astype(float) - zero) * unit - rows) <= 0.501 * unit).all()


def with_a_large_channel(folder: Path, to: Path) -> Path:
    """The same model but for rounding, in which one channel of what is multiplied is sixty-four times as large."""
    shutil.copytree(folder, to)
    weights = load_file(folder / "model.safetensors")
    factor = np.where(np.arange(32) == LARGE, 64, 1).astype(np.float32)
    for layer in ("encoder.layer.0.", "encoder.layer.1."):
        weights[f"{layer}attention.self.value.weight"] *= factor[:, None]
        weights[f"{layer}attention.self.value.bias"] *= factor
        weights[f"{layer}attention.output.dense.weight"] /= factor
    save_file(weights, to / "model.safetensors", metadata={"format": "pt"})
    return to


def test_a_large_channel_leaves_steps_to_the_others(tiny_bert: Path, tmp_path: Path) -> None:
    folder = with_a_large_channel(tiny_bert, tmp_path / "large")
    exact = load_encoder(str(folder), precision="full", cache=False).encode(TEXTS)
    np.testing.assert_allclose(
        exact, load_encoder(str(tiny_bert), precision="full", cache=False).encode(TEXTS), atol=1e-5
    )
    first, latest = (
        np.abs(load_encoder(str(folder), precision="int8", graph=version, cache=False).encode(TEXTS) - exact).mean()
        for version in STEPS
    )
    assert latest < 0.7 * first


def test_the_spread_follows_the_channels(tiny_bert: Path, tmp_path: Path) -> None:
    config, folder = read_config(tiny_bert), with_a_large_channel(tiny_bert, tmp_path / "large")
    plain, large = (input_spread(load_file(path / "model.safetensors"), config) for path in (tiny_bert, folder))
    assert len(plain) == 1 + 3 * 2
    for name, spread in plain.items():
        factor = np.where(np.arange(32) == LARGE, 64 if "self" in name else 1, 1)
        np.testing.assert_allclose(large[name], factor * spread, rtol=1e-5)


def test_a_model_keeps_the_graph_it_was_fitted_on(tiny_bert: Path, tmp_path: Path) -> None:
    """One that says nothing of it was fitted on the first."""
    scores = {}
    for version in STEPS:
        encoder = load_encoder(str(tiny_bert), precision="int8", graph=version, cache=False)
        model = TextOutlierDetector(encoder).fit(TEXTS)
        model.save(tmp_path / str(version))
        again = TextOutlierDetector.load(tmp_path / str(version), cache=False)
        assert again.fingerprint == model.fingerprint
        assert again.encoder_.pinned.graph == version
        scores[version] = model.anomaly_score(TEXTS)
        assert np.array_equal(again.anomaly_score(TEXTS), scores[version])
        again.save(tmp_path / "copy")
        assert TextOutlierDetector.load(tmp_path / "copy").fingerprint == model.fingerprint
    assert not np.allclose(scores[1], scores[2], rtol=1e-6)
    assert "graph" not in (tmp_path / "1/config.json").read_text()
    assert load_encoder(str(tiny_bert), precision="int8").pinned.graph == GRAPH_VERSION


@pytest.mark.parametrize("graph", [0, 3, 1.5, "2", True])
def test_graphs_that_there_are_none_of(graph: object) -> None:
    with pytest.raises(UsageError, match="a version up to 2 of the graph in 8 bits"):
        EncoderSettings("default", graph=graph).check()  # type: ignore[arg-type]
