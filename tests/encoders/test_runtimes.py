"""What runs a model: each way agrees with transformers, and the choice among them is made and told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from strays import TextOutlierDetector
from strays.encoders import load_encoder
from strays.encoders.cache import models_folder
from strays.encoders.runtimes import onnx_graph, onnx_runtime
from strays.encoders.runtimes.base import usable_cores
from strays.encoders.runtimes.graph_file import GraphNotes
from strays.encoders.settings import GRAPH_VERSION
from strays.errors import EncoderError, ModelError, StraysWarning, UsageError
from strays.model.folder import sealed
from tests.conftest import farm_texts, needs_torch, save_tiny_roberta

TEXTS = [text + " near the old barn" * (i % 7) for i, text in enumerate(farm_texts(60))]


@pytest.fixture
def tiny_roberta(tmp_path: Path) -> Path:
    """A model whose positions start behind the padding index."""
    folder = tmp_path / "roberta"
    save_tiny_roberta(folder)
    return folder


@needs_torch
@pytest.mark.parametrize("kind", ["tiny_bert", "tiny_roberta"])
@pytest.mark.parametrize("options", [{}, {"pooling": "cls"}, {"normalize": True}], ids=["mean", "cls", "normalized"])
def test_the_graph_is_the_model(kind: str, options: dict[str, object], request: pytest.FixtureRequest) -> None:
    name = str(request.getfixturevalue(kind))
    exact = load_encoder(name, runtime="torch", **options).encode(TEXTS)  # type: ignore[arg-type]
    full = load_encoder(name, precision="full", cache=False, **options)  # type: ignore[arg-type]
    assert "ONNX Runtime, float32" in full.runs_on
    np.testing.assert_allclose(full.encode(TEXTS), exact, atol=1e-5)
    rounded = load_encoder(name, precision="int8", **options).encode(TEXTS)  # type: ignore[arg-type]
    cosine = (rounded * exact).sum(1) / np.linalg.norm(rounded, axis=1) / np.linalg.norm(exact, axis=1)
    assert cosine.mean() > 0.999
    assert not np.array_equal(rounded, exact)


@needs_torch
@pytest.mark.parametrize("kind", ["tiny_bert", "tiny_roberta"])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_packed_texts_give_what_padded_ones_give(kind: str, pooling: str, request: pytest.FixtureRequest) -> None:
    import torch

    from strays.encoders.runtimes.packed_bert import PackedBert

    encoder = load_encoder(str(request.getfixturevalue(kind)), runtime="torch", pooling=pooling)
    exact = encoder.encode(TEXTS)
    model = PackedBert(encoder._pretrained.model())  # type: ignore[attr-defined]
    for batch in encoder._tokenizer.batches(TEXTS, 100):  # type: ignore[attr-defined]
        lengths = torch.from_numpy(batch.lengths)
        with torch.inference_mode():
            hidden = model(torch.from_numpy(batch.packed), lengths, int(batch.lengths.max()))
        firsts = hidden[lengths.cumsum(0) - lengths]
        pooled = firsts if pooling == "cls" else torch.segment_reduce(hidden, "mean", lengths=lengths)
        np.testing.assert_allclose(pooled.numpy(), exact[batch.rows], atol=1e-5)


@needs_torch
def test_the_gpus_kernel_is_the_attention_of_pytorch() -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    from strays.encoders.runtimes.packed_bert import padded_attention, short_attention

    torch.manual_seed(0)
    lengths = torch.tensor([1, 128, 11, 40, 17], device="cuda")
    qkv = torch.randn(int(lengths.sum()), 3 * 64, device="cuda", dtype=torch.bfloat16)
    arguments = (qkv, lengths.cumsum(0) - lengths, lengths, 128, 2)
    torch.testing.assert_close(short_attention(*arguments), padded_attention(*arguments), atol=2e-2, rtol=2e-2)


def test_weights_in_8_bits_overflow_on_no_processor(tiny_bert: Path) -> None:
    """Without VNNI, two products of a code of 8 bits without sign and a weight are added in 16 bits."""
    load_encoder(str(tiny_bert), precision="int8").encode(["the cat"])
    (path,) = models_folder().glob("onnx-*/int8.safetensors")
    weights = [constant for constant in load_file(path).values() if constant.dtype == np.int8]
    assert len(weights) == 2 * 6  # of each layer: query, key, value, their output, intermediate and output
    assert max(int(np.abs(codes.astype(int)).max()) for codes in weights) == onnx_graph.STEPS[GRAPH_VERSION].weight
    assert all(2 * steps.highest * steps.weight < 2**15 for steps in onnx_graph.STEPS.values())


def test_auto_takes_int8_where_it_is_close_enough(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_encoder(str(tiny_bert))
    assert encoder.pinned.precision == "int8"
    assert "int8" in encoder.runs_on
    monkeypatch.setattr(onnx_runtime, "CLOSE_ENOUGH", 1.1)
    encoder = load_encoder(str(tiny_bert))
    assert encoder.pinned.precision == "full"
    assert "float32" in encoder.runs_on
    assert encoder.fingerprint == load_encoder(str(tiny_bert), runtime="torch").fingerprint
    assert encoder.fingerprint != load_encoder(str(tiny_bert), precision="int8").fingerprint


def test_graphs_are_made_once_and_made_again_when_damaged(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    real = onnx_graph.bert_graph
    monkeypatch.setattr(onnx_graph, "bert_graph", lambda *a, **k: made.append(1) or real(*a, **k))
    expected = load_encoder(str(tiny_bert), cache=False).encode(TEXTS)
    assert len(made) == 2  # one of each precision
    assert np.array_equal(load_encoder(str(tiny_bert), cache=False).encode(TEXTS), expected)
    assert len(made) == 2
    (folder,) = models_folder().glob("onnx-*")
    assert json.loads((folder / "graphs.json").read_text())["int8_cosine"] > 0.99
    for name, harm in (
        ("int8.safetensors", lambda path: path.write_bytes(b"no graph")),
        ("int8.safetensors", lambda path: path.write_bytes(b"")),
        ("int8.safetensors", lambda path: os.truncate(path, path.stat().st_size - 1)),
        ("int8.safetensors", lambda path: path.write_bytes(with_one_bit_flipped(path, 0.01))),
        ("int8.safetensors", lambda path: path.write_bytes(with_one_bit_flipped(path, 0.5))),
        ("int8.safetensors", lambda path: path.unlink()),
        ("graphs.json", lambda path: path.write_text("{")),
        ("graphs.json", lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | {"int8_cosine": 0.1}))),
        ("graphs.json", lambda path: path.unlink()),
    ):
        before = len(made)
        harm(folder / name)
        is_gone = not (folder / name).exists()
        with nullcontext() if is_gone else pytest.warns(StraysWarning, match=rf"{name} is damaged.*It is made again"):
            assert np.array_equal(load_encoder(str(tiny_bert), cache=False).encode(TEXTS), expected)
        assert len(made) == before + 2


def test_a_graph_that_was_changed_leaves_nothing_wrong_in_the_cache(tiny_bert: Path) -> None:
    """Neither while it is damaged nor afterwards: what is run has the digest that embeddings are stored under."""
    expected = load_encoder(str(tiny_bert), cache=False).encode(TEXTS)
    (path,) = models_folder().glob("onnx-*/int8.safetensors")
    path.write_bytes(with_zeros_in_the_middle(path))
    with pytest.warns(StraysWarning, match="is damaged"):
        assert np.array_equal(load_encoder(str(tiny_bert)).encode(TEXTS), expected)
    assert np.array_equal(load_encoder(str(tiny_bert)).encode(TEXTS), expected)


def test_embeddings_of_another_graph_are_not_looked_up(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph of the same weights may be written otherwise one day."""
    load_encoder(str(tiny_bert)).encode(TEXTS)
    (folder,) = models_folder().glob("onnx-*")
    notes = GraphNotes.from_json((folder / "graphs.json").read_bytes())
    other = replace(notes, sha256=notes.sha256 | {"int8": "0" * 64})
    (folder / "graphs.json").write_text(other.to_json())
    assert list(load_encoder(str(tiny_bert))._look_up(TEXTS)) == []  # type: ignore[attr-defined]


def with_one_bit_flipped(path: Path, where: float) -> bytes:
    data = bytearray(path.read_bytes())
    data[int(where * len(data))] ^= 16
    return bytes(data)


def with_zeros_in_the_middle(path: Path) -> bytes:
    data = path.read_bytes()
    return data[: len(data) // 4] + bytes(len(data) // 2) + data[len(data) - len(data) // 4 :]


def test_with_the_cache_off_no_folder_is_made(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {name: load_encoder(name).encode(TEXTS) for name in (str(tiny_bert), f"fast:{tiny_bert}")}
    monkeypatch.setenv("STRAYS_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    for name, embeddings in expected.items():
        assert np.array_equal(load_encoder(name).encode(TEXTS), embeddings)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_folder_that_cannot_be_written_costs_no_result(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load_encoder(str(tiny_bert), cache=False).encode(TEXTS)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("STRAYS_CACHE", str(tmp_path / "file"))
    assert np.array_equal(load_encoder(str(tiny_bert), cache=False).encode(TEXTS), expected)


@needs_torch
def test_without_the_extra_torch_runs_the_model(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = load_encoder(str(tiny_bert), precision="full").encode(TEXTS)
    monkeypatch.setattr(onnx_runtime, "available", lambda: False)
    encoder = load_encoder(str(tiny_bert), cache=False)
    assert encoder.runs_on == "PyTorch, float32, cpu"
    np.testing.assert_allclose(encoder.encode(TEXTS), exact, atol=1e-5)
    for options in ({"precision": "int8"}, {"runtime": "onnx"}):
        with pytest.raises(EncoderError, match=r"not installed; install it: pip install onnxruntime"):
            load_encoder(str(tiny_bert), **options).encode(["a"])  # type: ignore[arg-type]


@needs_torch
def test_models_of_other_kinds_run_on_torch(tiny_bert: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer, DistilBertConfig, DistilBertModel

    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    config = DistilBertConfig(vocab_size=len(tokenizer), dim=32, n_layers=1, n_heads=2, hidden_dim=48)
    DistilBertModel(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    encoder = load_encoder(str(tmp_path))
    assert encoder.encode(TEXTS).shape == (60, 32)
    assert encoder.runs_on.startswith("PyTorch")
    with pytest.raises(EncoderError, match="is a distilbert, which strays cannot run in int8"):
        load_encoder(str(tmp_path), precision="int8").encode(["a"])


def test_a_saved_model_keeps_its_precision(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = TextOutlierDetector(str(tiny_bert), "centroid").fit(TEXTS)
    model.save(tmp_path / "m")
    monkeypatch.setattr(onnx_runtime, "CLOSE_ENOUGH", 1.1)  # what auto takes now is another
    loaded = TextOutlierDetector.load(tmp_path / "m")
    assert loaded.info()["encoder"]["precision"] == "int8"
    np.testing.assert_allclose(loaded.anomaly_score(TEXTS), model.anomaly_score(TEXTS), rtol=1e-9)


def test_models_older_than_the_choice_are_of_full_precision(tiny_bert: Path, tmp_path: Path) -> None:
    model = TextOutlierDetector(load_encoder(str(tiny_bert), precision="full"), "centroid").fit(TEXTS)
    model.save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["encoder"]["settings"].pop("precision") == "full"
    (tmp_path / "m" / "config.json").write_text(json.dumps(sealed(config)))
    loaded = TextOutlierDetector.load(tmp_path / "m")
    np.testing.assert_allclose(loaded.anomaly_score(TEXTS), model.anomaly_score(TEXTS), rtol=1e-9)
    config["encoder"]["settings"]["precision"] = "int8"
    (tmp_path / "m" / "config.json").write_text(json.dumps(sealed(config)))
    with pytest.raises(ModelError, match="not the one this model was fitted with"):
        TextOutlierDetector.load(tmp_path / "m").anomaly_score(TEXTS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "int4"}, "precision is 'int4'; expected 'full' or 'int8'"),
        ({"runtime": "tpu"}, "runtime is 'tpu'; expected 'auto', 'onnx' or 'torch'"),
        ({"runtime": "torch", "precision": "int8"}, "expected precision='full', or runtime='onnx'"),
    ],
)
def test_choices_that_cannot_be_made(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_encoder("default", **options)  # type: ignore[arg-type]


def test_kept_embeddings_need_no_model(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_encoder(str(tiny_bert))
    expected = first.encode(TEXTS)
    again = load_encoder(str(tiny_bert))
    monkeypatch.setattr(type(again), "_runtime", property(lambda self: pytest.fail("the model was loaded")))
    told = []
    kept = again.encode(TEXTS[:30], progress=lambda done, total: told.append((done, total)))
    assert np.array_equal(kept, expected[:30])
    assert told == [(30, 30)]


def test_only_what_is_missing_is_encoded(tiny_bert: Path) -> None:
    expected = load_encoder(str(tiny_bert), precision="full", cache=False).encode(TEXTS)
    load_encoder(str(tiny_bert), precision="full").encode(TEXTS[::2])
    again = load_encoder(str(tiny_bert), precision="full")
    told = []
    found = again.encode(TEXTS, progress=lambda done, total: told.append((done, total)))
    assert np.array_equal(found, expected)
    distinct, kept = len(set(TEXTS)), len(set(TEXTS[::2]))
    assert told[0] == (kept, distinct)
    assert told[-1] == (distinct, distinct)


def test_an_encoder_without_cache_keeps_nothing_and_leaves_the_other_as_it_was(tiny_bert: Path) -> None:
    encoder = load_encoder(str(tiny_bert))
    expected = encoder.without_cache().encode(TEXTS)
    assert not list(load_encoder(str(tiny_bert))._look_up(TEXTS))
    assert np.array_equal(encoder.encode(TEXTS), expected)
    assert list(load_encoder(str(tiny_bert))._look_up(TEXTS))


def test_embeddings_of_one_precision_are_not_taken_for_another(tiny_bert: Path) -> None:
    rounded = load_encoder(str(tiny_bert), precision="int8").encode(TEXTS)
    exact = load_encoder(str(tiny_bert), precision="full").encode(TEXTS)
    assert not np.array_equal(rounded, exact)


@pytest.mark.parametrize(("said", "expected"), [("3", 3), ("", None), ("many", None), ("0", None)])
def test_threads_are_those_allowed(said: str, expected: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("OMP_NUM_THREADS", said)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3, 4}, raising=False)
    monkeypatch.setattr(Path, "read_text", lambda self: "250000 100000\n")
    assert usable_cores() == (expected or 2)
    monkeypatch.setattr(Path, "read_text", lambda self: "max 100000\n")
    assert usable_cores() == (expected or 5)


def test_making_a_graph_is_quiet(tiny_bert: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_encoder(str(tiny_bert)).encode(TEXTS)
    shown = capfd.readouterr()
    assert shown.out + shown.err == ""


def test_encoders_in_use_can_be_copied(tiny_bert: Path) -> None:
    import copy
    import pickle

    from sklearn.base import clone

    encoder = load_encoder(str(tiny_bert), precision="full")
    expected = encoder.encode(TEXTS)
    for copied in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert np.array_equal(copied.encode(TEXTS), expected)
    model = TextOutlierDetector(encoder, "centroid").fit(TEXTS)
    np.testing.assert_allclose(clone(model).fit(TEXTS).anomaly_score(TEXTS), model.anomaly_score(TEXTS), rtol=1e-6)


@needs_torch
def test_the_same_weights_used_otherwise_are_not_looked_up(tiny_bert: Path, tmp_path: Path) -> None:
    """Graphs and embeddings are kept by all files that say how to use the weights."""
    import shutil

    shutil.copytree(tiny_bert, tmp_path / "other")
    config = json.loads((tmp_path / "other" / "config.json").read_text())
    (tmp_path / "other" / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 0.5}))
    here = load_encoder(str(tiny_bert), precision="full").encode(TEXTS)
    there = load_encoder(str(tmp_path / "other"), precision="full").encode(TEXTS)
    exact = load_encoder(str(tmp_path / "other"), runtime="torch", cache=False).encode(TEXTS)
    np.testing.assert_allclose(there, exact, atol=1e-5)
    assert not np.allclose(there, here, atol=1e-3)


@needs_torch
def test_where_no_graph_can_be_made_torch_runs_the_model(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> bytes:
        raise ValueError("Failed to serialize proto")

    monkeypatch.setattr(onnx_graph, "bert_graph", fail)
    assert load_encoder(str(tiny_bert)).encode(TEXTS).shape == (60, 32)
    assert load_encoder(str(tiny_bert)).runs_on.startswith("PyTorch")
    with pytest.raises(EncoderError, match=r"Failed to serialize proto.*or choose runtime='torch'"):
        load_encoder(str(tiny_bert), precision="int8").encode(TEXTS)


def test_a_call_that_is_stopped_keeps_nothing(tiny_bert: Path) -> None:
    """So that a job that goes on meets the same texts in the same batches, and gets the same digits on PyTorch too."""

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    encoder = load_encoder(str(tiny_bert), tokens_per_batch=40)
    with pytest.raises(KeyboardInterrupt):
        encoder.encode(TEXTS, progress=stop)
    again = load_encoder(str(tiny_bert))
    assert list(again._look_up(TEXTS)) == []  # type: ignore[attr-defined]


@needs_torch
def test_streaming_leaves_torch_as_it_was(tiny_bert: Path) -> None:
    import torch

    for _ in load_encoder(str(tiny_bert), runtime="torch", cache=False).stream(TEXTS):  # type: ignore[attr-defined]
        assert not torch.is_inference_mode_enabled()


@pytest.mark.process
def test_onnx_runtime_reports_to_nobody(tmp_path: Path) -> None:
    script = """
import numpy as np
from strays.encoders.runtimes.onnx_format import model, node, tensor_info
from strays.encoders.runtimes.onnx_graph import TABLE, TOKENS, BertGraph
from strays.encoders.runtimes.onnx_session import OnnxSession
ends = [tensor_info(name, "int64", [1]) for name in TOKENS] + [tensor_info(TABLE, "float32", [2])]
found = tensor_info("found", "float32", [1])
graph = model("look up", [node("Gather", [TABLE, "input_ids"], "found")], [], ends, [found], {"": 17})
session = OnnxSession(BertGraph(graph, {}), np.array([3, 5], dtype=np.float32))
print(session.run(np.array([1]), np.array([1])))
"""
    left_out = ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME", "CI")
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    env |= {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("[5.]\n", "")
    assert not list(tmp_path.rglob("*onnxruntime*"))  # it would keep a number of this machine there
