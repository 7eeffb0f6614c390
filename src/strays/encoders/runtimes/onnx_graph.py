"""A BERT as an ONNX graph, in float32 or in int8. In int8, too, a text's embedding does not depend on its batch.

The usual dynamic quantization takes one scale from all rows of a batch, so that a text's embedding depends on its
neighbours. Here every token has a scale of its own, s = max |x| / 100, and every output channel of a weight matrix
another, t = max |w| / 81:

    x W ~ s t (round(x / s) round(W / t))

The product in the middle is one of integers, and exact on every processor. There are fewer than 256 steps because
processors without VNNI add pairs of products in 16 bits, which must not overflow: 2 * 200 * 81 < 2^15. Softmax,
normalisation and GELU stay in float32.

A few channels of x are much larger than the others (activation_spread.py) and would leave these few steps. So before
rounding channel j is divided by c_j, and row j of W is multiplied by it (Xiao et al., "SmoothQuant", 2023):

    c_j = sqrt(large_j / max |w_j|), rounded to a power of two

which costs nothing where attention mixes, since it moves into the weights before, and a second normalisation elsewhere.

The graph is written by hand rather than exported by torch: it has half the nodes, and its kernels are chosen by
measuring (benchmarks/encoding.py). ONNX Runtime's fused attention and skip normalisation are slower here than their
parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from strays.encoders.bert_config import MODEL_TYPES
from strays.encoders.runtimes import onnx_format
from strays.encoders.runtimes.activation_spread import LEAST, input_spread
from strays.encoders.settings import EncoderSettings, first_position

# Constants of at least so many bytes are no part of the ONNX, which cannot be larger than 2 GB, and is copied.
LARGE = 1024
OPSET = 19
TOKENS = ("input_ids", "attention_mask")
# The rows that words have in the model's own table: an input, since ONNX Runtime would copy a constant.
TABLE = "embeddings.word_embeddings.weight"
MICROSOFT = "com.microsoft"
MASKED = -1e9
# The lowest value of GELU is about -0.17.
GELU_LOWEST = 0.17
# What leaves an array as it is.
UNCHANGED = np.ones(1, dtype=np.float32)


class _Steps(NamedTuple):
    """Codes in 8 bits: of numbers the highest, zero's and zero's after GELU, and of weights the highest."""

    highest: int
    zero: int
    zero_after_gelu: int
    weight: int


# By the graph's version. The first one had no c_j.
STEPS = {1: _Steps(255, 128, 16, 63), 2: _Steps(200, 100, 13, 81)}


def supports(config: Any) -> bool:
    """Whether a model with this config of transformers can be written as such a graph."""
    return (
        config.model_type in MODEL_TYPES
        and config.hidden_act == "gelu"
        and getattr(config, "position_embedding_type", "absolute") in (None, "absolute")
        and not getattr(config, "is_decoder", False)
    )


@dataclass(frozen=True)
class BertGraph:
    """A model as ONNX, and its large constants by name.

    input_ids and attention_mask (texts, tokens) and the table of words go in, embedding (texts, dimension) comes out.
    """

    onnx: bytes
    constants: Mapping[str, np.ndarray]


def bert_graph(
    weights: Mapping[str, np.ndarray], config: Any, shape: EncoderSettings, *, int8: bool = False
) -> BertGraph:
    """The graph of a model; in full precision its large constants are the weights themselves, or views of them."""
    version = shape.graph_version
    spread = input_spread(weights, config) if int8 and version > 1 else {}
    graph = _Graph(weights, config.hidden_size, STEPS[version] if int8 else None, spread)
    x = _embeddings(graph, config)
    mask = graph.op("Cast", "attention_mask", to=1)
    absent = graph.op("Mul", graph.op("Sub", graph.scalar(1.0), mask), graph.scalar(MASKED))
    absent = graph.op("Unsqueeze", absent, graph.ints(1, 2))  # (texts, 1, 1, tokens)
    for i in range(config.num_hidden_layers):
        x = _layer(graph, f"encoder.layer.{i}.", x, absent, config)
    if shape.pooling == "cls":
        pooled = graph.op("Gather", x.value, graph.constant(np.int64(0)), axis=1)
    else:
        rows = graph.op("Unsqueeze", mask, graph.ints(1))
        total = graph.op("Squeeze", graph.op("MatMul", rows, x.value), graph.ints(1))
        count = graph.op("Max", graph.op("ReduceSum", mask, graph.ints(1)), graph.scalar(1.0))
        pooled = graph.op("Div", total, count)
    if shape.normalize:
        length = graph.op("ReduceL2", pooled, graph.ints(1))
        pooled = graph.op("Div", pooled, graph.op("Max", length, graph.scalar(1e-12)))
    return graph.finished(pooled)


def _embeddings(graph: _Graph, config: Any) -> _Normalised:
    """Word, position and type embeddings, added and normalised. Only texts alone are encoded, all of type 0."""
    places = graph["embeddings.position_embeddings.weight"][first_position(config) :]
    if "embeddings.token_type_embeddings.weight" in graph.weights:
        places = places + graph["embeddings.token_type_embeddings.weight"][0]
    n_tokens = graph.op("Shape", "input_ids", start=1, end=2)
    place = graph.op("Slice", graph.constant(places), graph.ints(0), n_tokens, graph.ints(0))
    word = graph.op("Gather", TABLE, "input_ids")
    return graph.normalised(graph.op("Add", word, place), "embeddings.LayerNorm", config.layer_norm_eps)


def _layer(graph: _Graph, name: str, x: _Normalised, absent: str, config: Any) -> _Normalised:
    heads, width = config.num_attention_heads, config.hidden_size // config.num_attention_heads
    of = {role: graph[f"{name}attention.self.{role}.weight"] for role in ("query", "key", "value")}
    mixing, between = graph[f"{name}attention.output.dense.weight"], graph[f"{name}intermediate.dense.weight"]
    before, after = graph.balance(x.name, *of.values()), graph.balance(f"{name}attention.self", mixing)
    factor: dict[str, np.ndarray] = {"query": np.full(1, width**-0.5, np.float32), "key": UNCHANGED, "value": 1 / after}
    seen = graph.normalised_rows(x, before)
    part = {}
    for role, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        W, b = _times(of[role], before, factor[role][:, None]), graph[f"{name}attention.self.{role}.bias"]
        y = graph.op("Add", graph.product(seen, W), graph.constant(_times(b, factor[role])))
        part[role] = graph.op("Transpose", graph.shaped(y, heads, width), perm=order)
    attention = graph.op("MatMul", part["query"], part["key"])  # (texts, heads, tokens, tokens)
    attention = graph.op("Softmax", graph.op("Add", attention, absent), axis=-1)
    mixed = graph.op("Transpose", graph.op("MatMul", attention, part["value"]), perm=[0, 2, 1, 3])
    rows = graph.quantized(graph.shaped(mixed, config.hidden_size))
    mixed = graph.dense(rows, _times(mixing, after), f"{name}attention.output.dense")
    x = graph.normalised(graph.op("Add", mixed, x.value), f"{name}attention.output.LayerNorm", config.layer_norm_eps)
    before = graph.balance(x.name, between)
    inner = graph.product(graph.normalised_rows(x, before), _times(between, before))
    inner = graph.op("BiasGelu", inner, graph.constant(graph[f"{name}intermediate.dense.bias"]), domain=MICROSOFT)
    rows = graph.quantized(inner, after_gelu=True)
    outer = graph.dense(rows, graph[f"{name}output.dense.weight"], f"{name}output.dense")
    return graph.normalised(graph.op("Add", outer, x.value), f"{name}output.LayerNorm", config.layer_norm_eps)


def _times(x: np.ndarray, *factors: np.ndarray) -> np.ndarray:
    """Products; the array itself, which may be mapped from a file, where they change nothing."""
    for factor in factors:
        x = x if factor is UNCHANGED else x * factor
    return x


class _Rows(NamedTuple):
    """A matrix about to be multiplied: itself, or its 8-bit form with a scale for each row and the zero's code."""

    values: str
    scale: str = ""
    zero: str = ""


class _Normalised(NamedTuple):
    """A sum, what normalises it, by the name of its weights, and the outcome."""

    total: str
    name: str
    epsilon: float
    value: str


class _Graph:
    """Nodes and constants of a graph as they are added; every operation returns the name of what it makes."""

    def __init__(
        self,
        weights: Mapping[str, np.ndarray],
        dimension: int,
        steps: _Steps | None,
        spread: Mapping[str, np.ndarray],
    ) -> None:
        self.weights, self.dimension, self.steps, self.spread = weights, dimension, steps, spread
        self.nodes: list[bytes] = []
        self.constants: list[bytes] = []
        self.large: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        return np.asarray(self.weights[name], dtype=np.float32)

    def op(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(onnx_format.node(kind, inputs, name, domain, **attributes))
        return name

    def constant(self, value: np.ndarray | np.generic) -> str:
        name, value = f"c{len(self.constants)}", np.asarray(value)
        if value.nbytes >= LARGE:
            self.large[name] = value
            self.constants.append(onnx_format.outside_constant(name, value))
        else:
            self.constants.append(onnx_format.constant(name, value))
        return name

    def scalar(self, value: float) -> str:
        return self.constant(np.float32(value))

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def shaped(self, x: str, *last: int) -> str:
        """(texts, tokens, *last)."""
        shape = self.op("Concat", self.op("Shape", "input_ids"), self.ints(*last), axis=0)
        return self.op("Reshape", x, shape)

    def normalised(self, x: str, name: str, epsilon: float) -> _Normalised:
        return _Normalised(x, name, epsilon, self._layer_norm(x, name, epsilon, UNCHANGED))

    def _layer_norm(self, x: str, name: str, epsilon: float, divisor: np.ndarray) -> str:
        gamma, beta = (self.constant(_times(self[f"{name}.{part}"], 1 / divisor)) for part in ("weight", "bias"))
        return self.op("LayerNormalization", x, gamma, beta, epsilon=epsilon, axis=-1)

    def balance(self, name: str, *weights: np.ndarray) -> np.ndarray:
        """c_j for every channel that is multiplied by these matrices."""
        if name not in self.spread:
            return UNCHANGED
        of_weights = np.max([np.abs(W).max(axis=0) for W in weights], axis=0).astype(np.float64)
        ratio = np.log2(self.spread[name] / np.maximum(of_weights, LEAST)) / 2
        return np.exp2(np.round(ratio - ratio.mean())).astype(np.float32)

    def normalised_rows(self, x: _Normalised, divisor: np.ndarray) -> _Rows:
        """A normalised sum, divided, ready for a product."""
        if divisor is UNCHANGED:
            return self.quantized(x.value)
        return self.quantized(self._layer_norm(x.total, x.name, x.epsilon, divisor))

    def dense(self, x: _Rows, W: np.ndarray, name: str) -> str:
        y = self.op("Add", self.product(x, W), self.constant(self[f"{name}.bias"]))
        return self.shaped(y, self.dimension) if self.steps else y

    def quantized(self, x: str, *, after_gelu: bool = False) -> _Rows:
        """Rows ready for a product; in 8 bits all tokens of all texts become the rows of one matrix."""
        if not self.steps:
            return _Rows(x)
        width = self.op("Shape", x, start=-1)
        x = self.op("Reshape", x, self.op("Concat", self.ints(-1), width, axis=0))
        last = self.ints(-1)
        highest = self.op("ReduceMax", x, last)  # (rows, 1)
        zero = self.steps.zero_after_gelu if after_gelu else self.steps.zero
        least = GELU_LOWEST / zero if after_gelu else 1e-6
        if not after_gelu:
            highest = self.op("Max", highest, self.op("Neg", self.op("ReduceMin", x, last)))
        scale = self.op("Max", self.op("Div", highest, self.scalar(self.steps.highest - zero)), self.scalar(least))
        of_row = self.op("Reshape", scale, last)
        code = self.constant(np.uint8(zero))
        zeros = self.op("Expand", code, self.op("Shape", of_row))
        return _Rows(self.op("QuantizeLinear", x, of_row, zeros, axis=0), scale, code)

    def product(self, x: _Rows, W: np.ndarray) -> str:
        """X W' of a weight matrix W (outputs, inputs), as torch keeps it."""
        if not self.steps:
            # ONNX Runtime transposes constants when it opens the graph; W itself may be mapped from the weights' file.
            return self.op("MatMul", x.values, self.op("Transpose", self.constant(W), perm=[1, 0]))
        scale = np.maximum(np.abs(W).max(axis=1), 1e-8) / self.steps.weight  # (outputs,)
        codes = np.round(W / scale[:, None]).astype(np.int8)
        factors = (x.values, self.constant(codes.T), self.scalar(1.0), self.constant(scale.astype(np.float32)), x.zero)
        return self.op("Mul", self.op("MatMulIntegerToFloat", *factors, domain=MICROSOFT), x.scale)

    def finished(self, embedding: str) -> BertGraph:
        ids, mask = (onnx_format.tensor_info(name, "int64", ("texts", "tokens")) for name in TOKENS)
        table = onnx_format.tensor_info(TABLE, "float32", ("words", self.dimension))
        output = onnx_format.tensor_info("embedding", "float32", ("texts", self.dimension))
        nodes = [*self.nodes, onnx_format.node("Identity", [embedding], "embedding")]
        opsets = {"": OPSET, MICROSOFT: 1}
        onnx = onnx_format.model("bert", nodes, self.constants, [ids, mask, table], [output], opsets)
        return BertGraph(onnx, self.large)
