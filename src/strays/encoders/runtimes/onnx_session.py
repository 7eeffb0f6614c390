"""A graph that is open in ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from strays.encoders.runtimes.onnx_graph import TABLE, BertGraph


class OnnxSession:
    """Token ids to embeddings by a graph and the model's table of words; a batch takes one thread, unless told else.

    The table is not copied: where it is mapped from a file, only rows of words that occur are ever read. `check` is
    called before and after each batch, and raises if the table is no longer what it was. Other constants are read while
    the session is opened; ONNX Runtime then has most of them in a layout of its own.
    """

    def __init__(
        self, graph: BertGraph, table: np.ndarray, check: Callable[[], None] | None = None, threads: int = 1
    ) -> None:
        # By default it writes an identifier of the machine to the home folder and reports usage over the network.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime

        self._table, self._check = _plain(table), check or (lambda: None)
        # ONNX Runtime copies what it goes on using, but does not promise to: what it was given lives as long.
        self._constants = [
            onnxruntime.OrtValue.ortvalue_from_numpy(_plain(value)) for value in graph.constants.values()
        ]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = threads
        options.enable_mem_pattern = False  # shapes differ from batch to batch
        options.enable_mem_reuse = False  # planning it takes most of opening, and saves neither time nor memory
        options.log_severity_level = 4  # what goes wrong is raised
        options.add_external_initializers(list(graph.constants), self._constants)
        self._session: Any = onnxruntime.InferenceSession(graph.onnx, options, providers=["CPUExecutionProvider"])

    def run(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """The embeddings (texts, dimension) of token ids (texts, tokens)."""
        feed = {"input_ids": ids, "attention_mask": mask, TABLE: self._table}
        self._check()
        embeddings = np.asarray(self._session.run(None, feed)[0])
        self._check()
        return embeddings


def _plain(value: np.ndarray) -> np.ndarray:
    """As ONNX Runtime can use it where it is; a copy only of what is transposed or not aligned."""
    return np.require(np.asarray(value), requirements=["C", "A"])
