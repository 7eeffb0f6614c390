"""Which runtime runs a model, on which device and in which precision.

PyTorch runs it on a GPU. On a CPU ONNX Runtime does if it can run the model's kind, else PyTorch.
"""

from __future__ import annotations

from functools import cached_property

from strays.encoders.bert_config import MODEL_TYPES
from strays.encoders.cache import models_folder
from strays.encoders.library_errors import without_torch
from strays.encoders.pretrained import Pretrained
from strays.encoders.runtimes import onnx_graph, onnx_runtime
from strays.encoders.runtimes.base import Runtime, usable_cores
from strays.encoders.runtimes.devices import find_device, has_torch
from strays.errors import EncoderError, LoadingError, UsageError


class RuntimeChoice:
    """The choice for one model; `device`, `runtime` and the settings' precision are what the user asked for."""

    def __init__(self, pretrained: Pretrained, device: str, runtime: str) -> None:
        self.pretrained, self.asked_device, self.runtime = pretrained, device, runtime
        self.asked_precision = pretrained.settings.precision

    @cached_property
    def device(self) -> str:
        """Where the model runs: 'cpu', 'cuda', 'cuda:1', 'mps'."""
        device = find_device(self.asked_device)
        if device.startswith("mps") and self.asked_device == "auto" and self._needs_onnx:
            device = "cpu"  # int8 runs nowhere else
        if device != "cpu" and self.runtime == "onnx":
            both = f"{{runtime}} is 'onnx' and {{device}} is {device}; ONNX Runtime needs the device cpu"
            raise UsageError(both, param=("runtime", "device"))
        return device

    @property
    def on_gpu(self) -> bool:
        """Whether an NVIDIA or AMD GPU runs the model."""
        return self.device.startswith("cuda")

    @cached_property
    def precision(self) -> str:
        """'full' or 'int8'; where nobody asked, int8 on ONNX Runtime if it is close to the exact embeddings."""
        if self.asked_precision is not None or not self.on_onnx:
            return self.asked_precision or "full"
        return self.onnx_model.best_precision

    @cached_property
    def on_onnx(self) -> bool:
        """Whether ONNX Runtime runs the model."""
        if self.runtime == "torch" or self.device != "cpu":
            return False
        try:
            self._require_fit()
            _ = self.onnx_model.int8_cosine  # makes the graphs if they are not stored yet
        except LoadingError:
            raise
        except EncoderError:
            if self._needs_onnx or (self._can_be_a_graph and not has_torch()):
                raise
            return False
        return True

    @cached_property
    def onnx_model(self) -> onnx_runtime.OnnxModel:
        """The model's graphs for ONNX Runtime."""
        files, root = self.pretrained, models_folder()
        folder = root and root / f"onnx-{files.shape.graph_version}-{files.fingerprint[:16]}"
        return onnx_runtime.OnnxModel(folder, files.shape, files.config, files.weights)

    @property
    def graph(self) -> dict[str, str]:
        """The digest of the graph that is run, by its name; nothing where PyTorch runs the model."""
        return {f"{self.precision}.onnx": self.onnx_model.digest(self.precision)} if self.on_onnx else {}

    def load(self) -> Runtime:
        """The runtime with the model in it."""
        if self.on_onnx:
            return onnx_runtime.OnnxRuntime(self.onnx_model, self.precision)
        if not has_torch():
            of_a_kind = "is of a kind that strays runs on PyTorch alone"
            because = "is to run on PyTorch" if self.runtime == "torch" else of_a_kind
            raise without_torch(self.pretrained.folder, because)
        from strays.encoders.runtimes.torch_runtime import GpuRuntime, PackedGpuRuntime, TorchRuntime

        gpu_kind = PackedGpuRuntime if self._can_be_a_graph else GpuRuntime
        kind = gpu_kind if self.on_gpu else TorchRuntime
        return kind(self.pretrained.model(), self.pretrained.shape, self.device)

    def __str__(self) -> str:
        if self.on_onnx:
            numbers = "int8" if self.precision == "int8" else "float32"
            return f"ONNX Runtime, {numbers}, {usable_cores()} thread{'s' * (usable_cores() > 1)}"
        if not self.on_gpu:
            return f"PyTorch, float32, {self.device}"
        import torch

        return f"PyTorch, bfloat16, {torch.cuda.get_device_name(self.device)}"

    @property
    def _needs_onnx(self) -> bool:
        return self.runtime == "onnx" or self.asked_precision == "int8"

    @property
    def _can_be_a_graph(self) -> bool:
        return onnx_graph.supports(self.pretrained.config)

    @property
    def fits_onnx(self) -> bool:
        """Whether ONNX Runtime is installed and can run a model of this kind."""
        try:
            self._require_fit()
        except LoadingError:
            raise
        except EncoderError:
            return False
        return True

    def _require_fit(self) -> None:
        """Raise unless ONNX Runtime can run a model of this kind."""
        files = self.pretrained
        name, config = files.settings.name, files.config
        if not onnx_runtime.available():
            needed = "int8 and {runtime}='onnx' need ONNX Runtime, which is not installed; install it: "
            raise EncoderError(needed + onnx_runtime.PIP, param="runtime")
        if not self._can_be_a_graph:
            raise EncoderError(
                f"the encoder {name!r} is a {config.model_type}, which strays cannot run in int8 or on ONNX Runtime; "
                f"expected one of {', '.join(MODEL_TYPES)}. Omit {{precision}} and {{runtime}}",
                param=("precision", "runtime"),
            )
