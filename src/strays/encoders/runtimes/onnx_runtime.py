"""BERT-like encoders on ONNX Runtime: the fastest way on a CPU.

The graphs (onnx_graph) are made from the model's own weights at first use and stored under the cache folder. Every core
works on a batch of its own: small batches stay in its cache, and no core waits for another.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np

from strays.encoders.identity import warn_of_damage
from strays.encoders.library_errors import as_encoder_error
from strays.encoders.runtimes import onnx_graph
from strays.encoders.runtimes.base import usable_cores
from strays.encoders.settings import PRECISIONS, EncoderSettings
from strays.encoders.tokenizer import Batch, ahead
from strays.files import replace_file

PIP = "pip install 'strays[onnx]'"
REMEDY = f"Install a newer one ({PIP} --upgrade), or choose runtime='torch'"
NOTES = "kept.json"
# int8 is the default if its embeddings have at least this mean cosine similarity with the exact ones.
CLOSE_ENOUGH = 0.99


def available() -> bool:
    """Whether ONNX Runtime is installed."""
    return find_spec("onnxruntime") is not None


@dataclass(frozen=True)
class KeptGraphs:
    """What is written beside the graphs: how close int8 is, and the digests of the graphs by precision."""

    int8_cosine: float
    sha256: dict[str, str]

    def to_json(self) -> str:
        """With a digest of its own: a changed cosine would choose another precision."""
        return json.dumps(asdict(self) | {"check": self._check()})

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """What to_json gave; ValueError for anything else."""
        try:
            found = json.loads(text)
            check = found.pop("check")
            kept = cls(**found)
            if set(kept.sha256) == set(PRECISIONS) and kept._check() == check:
                return kept
        except (AttributeError, KeyError, TypeError, RecursionError) as error:
            raise ValueError("not what was written") from error
        raise ValueError("not what was written")

    def _check(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


class OnnxModel:
    """The graphs of one encoder, made when first needed and stored in a folder of their own, if there is one.

    `load` returns the weights by their names; it is not called if the graphs are stored already. What is run is read
    once, and only if its bytes have the digest that was written beside them; else the graphs are made anew. A folder
    that cannot be written to costs time, not results.
    """

    def __init__(self, folder: Path | None, shape: EncoderSettings, config: Any, load: Callable[[], Any]) -> None:
        self.folder, self.shape, self.config, self.load = folder, shape, config, load
        self._graphs: KeptGraphs | None = None
        self._made: dict[str, bytes] = {}

    @property
    def best_precision(self) -> str:
        """'int8' if it is close enough, else 'full'."""
        return "int8" if self.int8_cosine >= CLOSE_ENOUGH else "full"

    @property
    def int8_cosine(self) -> float:
        """How similar embeddings in int8 are to the exact ones, on average; makes the graphs unless they are stored."""
        return self._known.int8_cosine

    def digest(self, precision: str) -> str:
        """The digest of a graph, of which only these bytes are run; makes the graphs unless they are stored."""
        return self._known.sha256[precision]

    def session(self, precision: str) -> Any:
        """An inference session; a damaged graph is made anew."""
        graph = self._made.get(precision) or self._read(precision)
        if graph is None:
            self._make()
            graph = self._made[precision]
        with as_encoder_error("opening the encoder's graph", "ONNX Runtime could not load the encoder's graph", REMEDY):
            session = _session(graph)
        if self._is_stored:
            self._made.clear()  # it can be read from the file again
        return session

    @property
    def _known(self) -> KeptGraphs:
        if self._graphs is None:
            self._graphs = self._look() or self._make()
        return self._graphs

    def _look(self) -> KeptGraphs | None:
        """What is stored; None where there is nothing, or not all of it."""
        if self.folder is None or not self._is_stored:
            return None
        try:
            return KeptGraphs.from_json((self.folder / NOTES).read_bytes())
        except OSError:
            return None
        except ValueError:
            warn_of_damage(self.folder / NOTES)
            return None

    def _read(self, precision: str) -> bytes | None:
        """A stored graph, if it is what was written."""
        expected = self.digest(precision)
        if self.folder is None or precision in self._made:
            return self._made.get(precision)
        path = self.folder / _name(precision)
        try:
            graph = path.read_bytes()
        except OSError:
            return None
        if hashlib.sha256(graph).hexdigest() == expected:
            return graph
        warn_of_damage(path)
        return None

    @property
    def _is_stored(self) -> bool:
        return self.folder is not None and all((self.folder / _name(each)).is_file() for each in PRECISIONS)

    @as_encoder_error(
        "making the encoder ready for ONNX Runtime", "the encoder could not be made ready for ONNX Runtime", REMEDY
    )
    def _make(self) -> KeptGraphs:
        weights = self.load()
        for precision in PRECISIONS:
            self._made[precision] = onnx_graph.bert_graph(weights, self.config, self.shape, int8=precision == "int8")
        exact, rounded = (_probe(_session(self._made[precision]), self.config) for precision in ("full", "int8"))
        lengths = np.linalg.norm(exact, axis=1) * np.linalg.norm(rounded, axis=1)
        cosine = float(((exact * rounded).sum(1) / np.maximum(lengths, 1e-12)).mean())
        digests = {precision: hashlib.sha256(graph).hexdigest() for precision, graph in self._made.items()}
        self._graphs = KeptGraphs(cosine, digests)
        with suppress(OSError):
            self._write(self._graphs)
        return self._graphs

    def _write(self, graphs: KeptGraphs) -> None:
        """The graphs first: until their digests are there too, they are nobody's."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for precision, graph in self._made.items():
            with replace_file(self.folder / _name(precision)) as file:
                file.write(graph)
        with replace_file(self.folder / NOTES) as file:
            file.write(graphs.to_json().encode())


def _name(precision: str) -> str:
    return f"{precision}.onnx"


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
