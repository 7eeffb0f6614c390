"""BERT-like encoders on ONNX Runtime: the fastest way on a CPU.

The graphs (onnx_graph) are made from the model's own weights at first use and stored under the cache folder. Every core
works on a batch of its own: small batches stay in its cache, and no core waits for another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from strays.encoders.library_errors import as_encoder_error, ran_out_of_memory
from strays.encoders.runtimes import onnx_graph
from strays.encoders.runtimes.base import usable_cores
from strays.encoders.settings import PRECISIONS, EncoderSettings
from strays.encoders.tokenizer import Batch, ahead
from strays.files import replace_file

PIP = "pip install 'strays[onnx]'"
REMEDY = f"Install a newer one ({PIP} --upgrade), or choose runtime='torch'"
QUALITY_FILE = "kept.json"
# int8 is the default if its embeddings have at least this mean cosine similarity with the exact ones.
CLOSE_ENOUGH = 0.99


def available() -> bool:
    """Whether the packages are installed."""
    return all(find_spec(name) is not None for name in ("onnx", "onnxruntime"))


class OnnxModel:
    """The graphs of one encoder, made when first needed and stored in a folder of their own.

    `load` returns the torch model to take the weights from; it is not called if the graphs are stored already. A folder
    that cannot be written to costs time, not results.
    """

    def __init__(self, folder: Path, shape: EncoderSettings, config: Any, load: Callable[[], Any]) -> None:
        self.folder, self.shape, self.config, self.load = folder, shape, config, load
        self._made: dict[str, bytes] = {}

    @property
    def best_precision(self) -> str:
        """'int8' if it is close enough, else 'full'."""
        return "int8" if self.int8_cosine >= CLOSE_ENOUGH else "full"

    @cached_property
    def int8_cosine(self) -> float:
        """How similar embeddings in int8 are to the exact ones, on average; makes the graphs unless they are stored."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            known = json.loads((self.folder / QUALITY_FILE).read_text(encoding="utf-8"))["int8_cosine"]
            if all(self._path(precision).is_file() for precision in PRECISIONS):
                return float(known)
        return self._make()

    def session(self, precision: str) -> Any:
        """An inference session; a damaged graph is made anew, once."""
        _ = self.int8_cosine
        with as_encoder_error("opening the encoder's graph", "ONNX Runtime could not load the encoder's graph", REMEDY):
            try:
                return self._opened(precision)
            except Exception as error:  # ONNX Runtime's errors derive from nothing else
                if ran_out_of_memory(error):
                    raise
                self._make()
            return self._opened(precision)

    def _opened(self, precision: str) -> Any:
        session = _session(self._made.get(precision) or self._path(precision).read_bytes())
        if self._path(precision).is_file():
            self._made.clear()  # it can be read from the file again
        return session

    def _path(self, precision: str) -> Path:
        return self.folder / f"{precision}.onnx"

    @as_encoder_error(
        "making the encoder ready for ONNX Runtime", "the encoder could not be made ready for ONNX Runtime", REMEDY
    )
    def _make(self) -> float:
        weights = {name: value.numpy() for name, value in self.load().state_dict().items()}
        for precision in PRECISIONS:
            self._made[precision] = onnx_graph.bert_graph(weights, self.config, self.shape, int8=precision == "int8")
        exact, rounded = (_probe(_session(self._made[precision]), self.config) for precision in ("full", "int8"))
        lengths = np.linalg.norm(exact, axis=1) * np.linalg.norm(rounded, axis=1)
        cosine = float(((exact * rounded).sum(1) / np.maximum(lengths, 1e-12)).mean())
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            for precision, graph in self._made.items():
                with replace_file(self._path(precision)) as file:
                    file.write(graph)
            with replace_file(self.folder / QUALITY_FILE) as file:
                file.write(json.dumps({"int8_cosine": cosine}).encode())
        return cosine


class OnnxRuntime:
    """Batches of token ids to embeddings, on every core at once."""

    tokens_per_batch = 512

    def __init__(self, model: OnnxModel, precision: str) -> None:
        self.threads = usable_cores()
        self._session = model.session(precision)

    def run(self, batches: Iterable[Batch]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, embeddings) of each batch, in order."""
        return ahead(self._embed, batches, self.threads, 2 * self.threads)

    def _embed(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        feed = {"input_ids": batch.ids, "attention_mask": batch.mask}
        return batch.rows, np.asarray(self._session.run(None, feed)[0])


def _session(graph: bytes) -> Any:
    # By default it writes an identifier of the machine to the home folder and reports usage over the network.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # shapes differ from batch to batch
    options.log_severity_level = 4  # what goes wrong is raised
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _probe(session: Any, config: Any) -> np.ndarray:
    """Embeddings of random token ids, which make a test for an encoder of any language."""
    rng = np.random.default_rng(0)
    ids = rng.integers(config.vocab_size, size=(64, min(16, config.max_position_embeddings // 2)))
    return np.asarray(session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0])
