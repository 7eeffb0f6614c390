"""Nothing needs torch, transformers or onnx for a BERT on a CPU; what does says what to install."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from strays import TextOutlierDetector
from strays.encoders import load_encoder
from strays.encoders.runtimes import devices
from strays.encoders.runtimes.devices import find_device, gpu_is_possible
from strays.errors import EncoderError, UsageError
from tests.conftest import farm_texts, save_tiny_roberta

TEXTS = farm_texts(80)
ODD = "win big cash now, click here"
HEAVY = ("torch", "transformers", "onnx")
PROGRAM = """
import json, sys
sys.modules.update(dict.fromkeys(("torch", "transformers", "onnx")))
from strays import TextOutlierDetector
texts = json.load(sys.stdin)
found = {}
for encoder in sys.argv[1:]:
    model = TextOutlierDetector(encoder).fit(texts[:-1])
    why = model.explain(texts[-1])
    found[encoder] = [model.anomaly_score(texts).tolist(), [segment.text for segment in why.segments]]
print(json.dumps(found))
"""


@pytest.mark.process
def test_fit_score_and_explain_where_they_cannot_be_imported(tiny_bert: Path, tmp_path: Path) -> None:
    save_tiny_roberta(tmp_path / "roberta")
    encoders = [str(tiny_bert), f"fast:{tiny_bert}", str(tmp_path / "roberta")]
    environment = {**os.environ, "STRAYS_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    texts = [*TEXTS, ODD]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *encoders],
        input=json.dumps(texts), env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    there = json.loads(done.stdout)
    for encoder in encoders:
        model = TextOutlierDetector(encoder).fit(TEXTS)
        scores, segments = there[encoder]
        np.testing.assert_allclose(scores, model.anomaly_score(texts), rtol=1e-6)
        assert segments == [segment.text for segment in model.explain(ODD).segments]


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in HEAVY:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def folder(tiny_bert: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_bert, tmp_path / "m"))


PIP = r"pip install 'strays\[torch\]'"


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "mps", "toaster"])
def test_a_gpu_needs_it(device: str, tiny_bert: Path, without_torch: None) -> None:
    with pytest.raises(UsageError, match=rf"device is '{device}', which needs PyTorch.*{PIP}"):
        load_encoder(str(tiny_bert), device=device).encode(["a"])


def test_so_does_the_runtime_of_that_name(tiny_bert: Path, without_torch: None) -> None:
    with pytest.raises(EncoderError, match=rf"is to run on PyTorch, and so needs PyTorch.*{PIP}"):
        load_encoder(str(tiny_bert), runtime="torch").encode(["a"])


@pytest.mark.parametrize("name", ["{}", "fast:{}"])
@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({"model_type": "distilbert"}, "is no BERT, RoBERTa or XLM-RoBERTa"),
        ({"hidden_act": "relu"}, "is of a kind that strays runs on PyTorch alone"),
        ({"position_embedding_type": "relative_key"}, "is of a kind that strays runs on PyTorch alone"),
        ({"is_decoder": True}, "is of a kind that strays runs on PyTorch alone"),
    ],
)
def test_so_do_other_kinds_of_models(changes: dict, because: str, name: str, folder: Path, without_torch: None) -> None:
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(EncoderError, match=rf"{because}, and so needs PyTorch.*{PIP}"):
        load_encoder(name.format(folder)).encode(["a"])


def test_so_do_other_tokenizers_and_weights(folder: Path, without_torch: None) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(EncoderError, match=rf"has weights that are no safetensors, and so needs PyTorch.*{PIP}"):
        load_encoder(str(folder)).encode(["a"])
    (folder / "pytorch_model.bin").rename(folder / "model.safetensors")
    (folder / "tokenizer.json").unlink()
    (folder / "sentencepiece.bpe.model").write_bytes(b"pieces")
    with pytest.raises(EncoderError, match=rf"a tokenizer that only transformers can read, and so needs.*{PIP}"):
        load_encoder(str(folder)).encode(["a"])


def test_where_no_graph_can_be_made_the_error_is_that(
    tiny_bert: Path, without_torch: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from strays.encoders.runtimes import onnx_graph

    def fail(*_: object, **__: object) -> bytes:
        raise ValueError("no such graph")

    monkeypatch.setattr(onnx_graph, "bert_graph", fail)
    with pytest.raises(EncoderError, match="no such graph"):
        load_encoder(str(tiny_bert)).encode(["a"])


# ---- is there a GPU? ------------------------------------------------------------------------------------------------


@pytest.fixture
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices.sys, "platform", "linux")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize("name", ["nvidia0", "nvidiactl", "nvidia-uvm", "kfd", "dxg", "nvhost-gpu", "nvmap"])
def test_a_gpu_shows_among_the_devices(name: str, linux: None, tmp_path: Path) -> None:
    (tmp_path / "null").touch()
    assert not gpu_is_possible(tmp_path)
    (tmp_path / name).touch()
    assert gpu_is_possible(tmp_path)


@pytest.mark.parametrize(
    ("visible", "possible"), [("", False), ("-1", False), (" ", False), ("0", True), ("0,1", True)]
)
def test_gpus_can_be_hidden(
    visible: str, possible: bool, linux: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidia0").touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu_is_possible(tmp_path) == possible


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere_pytorch_is_asked(platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(devices.sys, "platform", platform)
    assert gpu_is_possible(tmp_path)


@pytest.mark.parametrize("asked", ["auto", "cpu"])
def test_without_a_gpu_pytorch_is_not_asked(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_is_possible", lambda: False)
    monkeypatch.setitem(sys.modules, "strays.encoders.runtimes.torch_runtime", None)  # an import would fail
    assert find_device(asked) == "cpu"


def test_with_one_it_is_without_pytorch_it_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_is_possible", lambda: True)
    monkeypatch.setattr(devices, "has_torch", lambda: False)
    assert find_device("auto") == "cpu"


def test_a_gpu_that_pytorch_finds_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'strays[torch]'")
    monkeypatch.setattr(devices, "gpu_is_possible", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert find_device("auto") == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert find_device("auto") == "mps"
