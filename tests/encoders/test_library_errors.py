from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from strays.encoders import load_encoder
from strays.encoders.library_errors import ran_out_of_memory
from strays.encoders.runtimes import onnx_format, onnx_runtime
from strays.errors import EncoderError
from tests.conftest import add_token, needs_torch

# More than any machine has, and than an address can point to.
HUGE = 1 << 50


def by_numpy(*_: object, **__: object) -> None:
    np.empty(HUGE)


def by_torch(*_: object, **__: object) -> None:
    import torch

    torch.empty(HUGE)


def by_a_gpu(*_: object, **__: object) -> None:
    import torch

    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8 GiB")


def by_onnx_runtime(*_: object, **__: object) -> None:
    import onnxruntime

    size = onnx_format.tensor_info("size", "int64", [1])
    zeros = onnx_format.tensor_info("zeros", "float32", ["many"])
    fill = onnx_format.node("ConstantOfShape", ["size"], "zeros")
    graph = onnx_format.model("huge", [fill], [], [size], [zeros], {"": 17})
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    session.run(None, {"size": np.array([HUGE >> 2])})


ALL = [by_numpy, *(pytest.param(each, marks=needs_torch) for each in (by_torch, by_a_gpu)), by_onnx_runtime]
RUNTIMES = ["onnx", pytest.param("torch", marks=needs_torch)]


@pytest.mark.parametrize("raising", ALL)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_too_little_memory_while_running(
    runtime: str, raising: Callable[..., None], tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {"torch": "torch_runtime.TorchRuntime", "onnx": "onnx_runtime.OnnxRuntime"}[runtime]
    monkeypatch.setattr(f"strays.encoders.runtimes.{runs}._embed", raising)
    encoder = load_encoder(str(tiny_bert), runtime=runtime, precision="full")
    with pytest.raises(EncoderError, match=r"memory ran out while running.*tokens_per_batch=.*max_length") as caught:
        encoder.encode(["the cat", "a dog"])
    assert "files again" not in str(caught.value)
    assert caught.value.__cause__ is not None
    monkeypatch.undo()
    assert encoder.encode(["the cat"]).shape == (1, 32)  # the next, smaller batch may do


@pytest.mark.parametrize("raising", ALL)
@pytest.mark.parametrize("name", ["{}", "fast:{}"])
def test_too_little_memory_while_loading(
    name: str, raising: Callable[..., None], tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strays.encoders.pretrained.BertWeights", raising)
    with pytest.raises(EncoderError, match=r"memory ran out while loading.*a smaller encoder") as caught:
        load_encoder(name.format(tiny_bert)).encode(["the cat"])
    assert "files again" not in str(caught.value)


def test_too_little_memory_while_distilling(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_runtime.OnnxRuntime, "_embed", by_numpy)
    with pytest.raises(EncoderError, match=r"memory ran out while running.*a smaller encoder"):
        load_encoder(f"fast:{tiny_bert}").encode(["the cat"])


@pytest.mark.parametrize("step", ["OnnxSession", "_probe"])
def test_too_little_memory_for_a_graph(step: str, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_runtime, step, by_numpy)
    with pytest.raises(EncoderError, match=r"memory ran out while making the encoder ready"):
        load_encoder(str(tiny_bert), precision="int8").encode(["the cat"])


def test_a_kept_graph_is_not_made_again_for_want_of_memory(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_encoder(str(tiny_bert), precision="int8").encode(["the cat"])
    monkeypatch.setattr(onnx_runtime, "OnnxSession", by_numpy)
    monkeypatch.setattr(onnx_runtime.OnnxModel, "_make", lambda *_: pytest.fail("made again"))
    with pytest.raises(EncoderError, match=r"memory ran out while opening the encoder's graph"):
        load_encoder(str(tiny_bert), precision="int8").encode(["a dog"])


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_run_that_fails_is_told_from_files_that_do(runtime: str, tiny_bert: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bert, tmp_path / "m")
    add_token(tmp_path / "m", "zebra")
    encoder = load_encoder(str(tmp_path / "m"), runtime=runtime, precision="full")
    with pytest.raises(EncoderError, match=r"loaded, but failed when it ran.*tokenizer and weights that belong"):
        encoder.encode(["a zebra"])


@pytest.mark.parametrize("says", ["index out of range in self", "CUDA error: device-side assert triggered", ""])
def test_other_errors_are_not_about_memory(says: str) -> None:
    assert not ran_out_of_memory(RuntimeError(says))


@pytest.mark.parametrize(
    "says",
    [
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "MPS backend out of memory (MPS allocated: 8 GB)",
        "std::bad_alloc",
        "Cannot allocate memory (os error 12)",
    ],
)
def test_other_ways_to_say_that_memory_ran_out(says: str) -> None:
    assert ran_out_of_memory(RuntimeError(says))
