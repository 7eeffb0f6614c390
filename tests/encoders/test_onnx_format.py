"""What we write as ONNX is what the package `onnx` writes and reads, and what ONNX Runtime runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from strays.encoders.runtimes import onnx_format

ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3).T,  # not contiguous
    np.array([-(2**63), -1, 0, 127, 128, 2**63 - 1]),
    np.array([[-128, 127]], dtype=np.int8),
    np.uint8(16),
    np.float32(-1e9),
    np.zeros((0, 4), dtype=np.float32),
]
ATTRIBUTES: list[dict[str, Any]] = [
    {},
    {"axis": -1, "epsilon": 1e-12},
    {"to": 1, "perm": [0, 2, 3, 1]},
    {"start": 2**40, "alpha": -0.0, "ints": [-1, 300]},
]


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
@pytest.mark.parametrize("domain", ["", "com.microsoft"])
def test_a_node_is_that_of_onnx(domain: str, attributes: dict[str, Any]) -> None:
    onnx = pytest.importorskip("onnx")
    expected = onnx.helper.make_node("Kind", ["x", "", "ß"], ["y"], domain=domain or None, **attributes)
    assert onnx_format.node("Kind", ["x", "", "ß"], "y", domain, **attributes) == expected.SerializeToString()


@pytest.mark.parametrize("value", ARRAYS, ids=lambda value: f"{value.dtype}{value.shape}")
def test_a_constant_is_that_of_onnx(value: np.ndarray) -> None:
    onnx = pytest.importorskip("onnx")
    value = np.asarray(value)
    expected = onnx.numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), "c")
    assert onnx_format.constant("c", value) == expected.SerializeToString()
    found = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(onnx_format.constant("c", value)))
    np.testing.assert_array_equal(found, value, strict=True)


def test_a_model_is_that_of_onnx() -> None:
    onnx = pytest.importorskip("onnx")
    helper, info = onnx.helper, onnx.helper.make_tensor_value_info
    x, y = info("x", onnx.TensorProto.INT64, ["texts", 300]), info("y", onnx.TensorProto.FLOAT, ["texts", 300])
    nodes, one = [helper.make_node("Cast", ["x"], ["y"], to=1)], onnx.numpy_helper.from_array(np.float32(1), "one")
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "name", [x], [y], [one])
    expected = helper.make_model(graph, opset_imports=opsets, ir_version=onnx_format.IR_VERSION)
    found = onnx_format.model(
        "name",
        [onnx_format.node("Cast", ["x"], "y", to=1)],
        [onnx_format.constant("one", np.float32(1))],
        [onnx_format.tensor_info("x", "int64", ("texts", 300))],
        [onnx_format.tensor_info("y", "float32", ("texts", 300))],
        {"": 19, "com.microsoft": 1},
    )
    assert found == expected.SerializeToString()
    onnx.checker.check_model(onnx.ModelProto.FromString(found), full_check=True)


def test_what_is_written_runs() -> None:
    """Constants of all sizes and types, attributes of all types: X W + b, transposed."""
    rng = np.random.default_rng(0)
    X, W, b = (rng.normal(size=shape).astype(np.float32) for shape in ((5, 40), (40, 7), (7,)))
    graph = onnx_format.model(
        "product",
        [
            onnx_format.node("MatMul", ["x", "W"], "xW"),
            onnx_format.node("Add", ["xW", "b"], "sum"),
            onnx_format.node("LeakyRelu", ["sum"], "kept", alpha=0.5),
            onnx_format.node("Transpose", ["kept"], "y", perm=[1, 0]),
        ],
        [onnx_format.constant("W", W), onnx_format.constant("b", b)],
        [onnx_format.tensor_info("x", "float32", ("rows", 40))],
        [onnx_format.tensor_info("y", "float32", (7, "rows"))],
        {"": 19},
    )
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    total = X @ W + b
    expected = np.where(total > 0, total, 0.5 * total).T
    np.testing.assert_allclose(session.run(None, {"x": X})[0], expected, atol=1e-5)
