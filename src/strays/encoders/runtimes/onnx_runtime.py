"""BERT-like encoders on ONNX Runtime: the fastest way on a CPU.

The int8 graph (onnx_graph) is made from the model's own weights at first use and stored under the cache folder. Every
core works on a batch of its own: small batches stay in its cache, and no core waits for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from strays.encoders.bert_weights import Weights
from strays.encoders.library_errors import as_encoder_error
from strays.encoders.runtimes import graph_file, onnx_graph
from strays.encoders.runtimes.base import usable_cores
from strays.encoders.runtimes.graph_file import GraphNotes
from strays.encoders.runtimes.onnx_graph import TABLE
from strays.encoders.runtimes.onnx_session import OnnxSession
from strays.encoders.settings import EncoderSettings
from strays.encoders.tokenizer import Batch, ahead

PIP = "pip install onnxruntime"
REMEDY = f"Install a newer one ({PIP} --upgrade), or choose runtime='torch'"
# int8 is the default if its embeddings have at least this mean cosine similarity with the exact ones.
CLOSE_ENOUGH = 0.99


def available() -> bool:
    """Whether ONNX Runtime is installed."""
    return find_spec("onnxruntime") is not None


class OnnxModel:
    """The graphs of one encoder. That of int8 is made when first needed and stored in a folder, if there is one.

    `load` returns the weights by name. From there comes the table of words, and in full precision everything else. A
    stored graph is used only if its bytes have the digest that was noted; else it is made again. A folder that cannot
    be written to costs time, not results.
    """

    def __init__(self, folder: Path | None, shape: EncoderSettings, config: Any, load: Callable[[], Weights]) -> None:
        self.folder, self.shape, self.config, self.load = folder, shape, config, load
        self._noted: GraphNotes | None = None
        self._made: np.ndarray | None = None  # the bytes of the int8 graph, until a session is opened

    @property
    def best_precision(self) -> str:
        """'int8' if it is close enough, else 'full'."""
        return "int8" if self.int8_cosine >= CLOSE_ENOUGH else "full"

    @property
    def int8_cosine(self) -> float:
        """How similar embeddings in int8 are to the exact ones, on average; makes the graph unless it is stored."""
        return self._notes.int8_cosine

    def digest(self, precision: str) -> str:
        """The digest of a graph, of which only these bytes are run; makes the int8 graph unless it is stored."""
        return self._notes.sha256[precision]

    def session(self, precision: str) -> OnnxSession:
        """An inference session; a damaged graph is made again."""
        data = self._int8_bytes() if precision == "int8" else None
        with as_encoder_error("opening the encoder's graph", "ONNX Runtime could not load the encoder's graph", REMEDY):
            if data is None:
                weights = self.load()
                graph = onnx_graph.bert_graph(weights, self.config, self.shape)
            else:
                graph, table = graph_file.unpacked(data)
                if table is not None:
                    return OnnxSession(graph, table)
                weights = self.load()
            return OnnxSession(graph, weights[TABLE], weights.require_unchanged)

    @property
    def _notes(self) -> GraphNotes:
        if self._noted is None and self.folder is not None:
            self._noted = graph_file.read_notes(self.folder)
        if self._noted is None:
            self._noted, self._made = self._make()
        return self._noted

    def _int8_bytes(self) -> np.ndarray:
        expected = self.digest("int8")
        data, self._made = self._made, None
        if data is None and self.folder is not None:
            data = graph_file.mapped(self.folder, expected)
        if data is None:
            self._noted, data = self._make()
        return data

    @as_encoder_error(
        "making the encoder ready for ONNX Runtime", "the encoder could not be made ready for ONNX Runtime", REMEDY
    )
    def _make(self) -> tuple[GraphNotes, np.ndarray]:
        """The notes and the bytes of the int8 graph, which are written if there is a folder."""
        weights = self.load()
        full, int8 = (onnx_graph.bert_graph(weights, self.config, self.shape, int8=int8) for int8 in (False, True))
        exact, rounded = (_probe(OnnxSession(graph, weights[TABLE]), self.config) for graph in (full, int8))
        lengths = np.linalg.norm(exact, axis=1) * np.linalg.norm(rounded, axis=1)
        cosine = float(((exact * rounded).sum(1) / np.maximum(lengths, 1e-12)).mean())
        data = graph_file.packed(int8, weights[TABLE])
        weights.require_unchanged()  # or the graph is of nobody's weights
        digests = {"full": graph_file.digest(full.onnx), "int8": graph_file.digest(data)}
        notes = GraphNotes(cosine, digests)
        if self.folder is not None:
            with suppress(OSError):
                graph_file.write(self.folder, data, notes)
        return notes, np.frombuffer(data, np.uint8)


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
        return batch.rows, self._session.run(batch.ids, batch.mask)


def _probe(session: OnnxSession, config: Any) -> np.ndarray:
    """Embeddings of random token ids, which make a test for an encoder of any language."""
    rng = np.random.default_rng(0)
    ids = rng.integers(config.vocab_size, size=(64, min(16, config.max_position_embeddings // 2)))
    return session.run(ids, np.ones_like(ids))
