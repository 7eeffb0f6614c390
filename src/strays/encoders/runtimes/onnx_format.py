"""The ONNX file format, as far as our graphs need it: nodes, constants and a model, as bytes.

An ONNX file is a protobuf message (onnx.proto of the package `onnx`, which is 60 MB and needed for nothing else). A
message is a sequence of fields, each a key, number << 3 | wire type, and a value: an integer as a varint (7 bits a
byte, the lowest first), a float32 as 4 bytes, or text, bytes and inner messages with their length before them. Fields
are in the order of their numbers, as protobuf itself writes them.

>>> node("Neg", ["x"], "y").hex(" ")
'0a 01 78 12 01 79 22 03 4e 65 67'
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import numpy as np

# Codes of onnx.proto: the types of a tensor's elements, by NumPy's name, and the types of an attribute,
# and where a tensor's values are.
ELEMENT_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7}
FLOAT, INT, INTS = 1, 2, 7
OUTSIDE = 1
VARINT, LENGTH_DELIMITED, FOUR_BYTES = 0, 2, 5
# Of the format itself; ONNX Runtime has read it since 1.14.
IR_VERSION = 9

Attribute = float | int | Sequence[int]


def node(kind: str, inputs: Iterable[str], output: str, domain: str = "", **attributes: Attribute) -> bytes:
    """An operation (NodeProto)."""
    return b"".join(
        [
            *(_text(1, name) for name in inputs),
            _text(2, output),
            _text(4, kind),
            *(_message(5, _attribute(name, attributes[name])) for name in sorted(attributes)),
            *([_text(7, domain)] if domain else []),
        ]
    )


def constant(name: str, value: np.ndarray) -> bytes:
    """A tensor with its values (TensorProto)."""
    data = np.ascontiguousarray(value, value.dtype.newbyteorder("<")).tobytes()
    return _tensor(value) + _text(8, name) + _message(9, data)


def outside_constant(name: str, value: np.ndarray) -> bytes:
    """The same tensor without its values, which whoever opens the graph gives for its name."""
    location = _text(1, "location") + _text(2, name)
    return _tensor(value) + _text(8, name) + _message(13, location) + _integer(14, OUTSIDE)


def tensor_info(name: str, dtype: str, shape: Iterable[str | int]) -> bytes:
    """What goes into a graph or comes out of it (ValueInfoProto); sizes that may vary have names."""
    sizes = (_text(2, size) if isinstance(size, str) else _integer(1, size) for size in shape)
    shape_message = b"".join(_message(1, size) for size in sizes)
    tensor_type = _integer(1, ELEMENT_TYPES[dtype]) + _message(2, shape_message)
    return _text(1, name) + _message(2, _message(1, tensor_type))


def model(
    name: str,
    nodes: Iterable[bytes],
    constants: Iterable[bytes],
    inputs: Iterable[bytes],
    outputs: Iterable[bytes],
    opsets: dict[str, int],
) -> bytes:
    """A whole model (ModelProto) of one graph; `opsets` are versions of operators by domain."""
    graph = b"".join(
        [
            *(_message(1, each) for each in nodes),
            _text(2, name),
            *(_message(5, each) for each in constants),
            *(_message(11, each) for each in inputs),
            *(_message(12, each) for each in outputs),
        ]
    )
    versions = [_message(8, _text(1, domain) + _integer(2, version)) for domain, version in opsets.items()]
    return b"".join([_integer(1, IR_VERSION), _message(7, graph), *versions])


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + _key(2, FOUR_BYTES) + struct.pack("<f", value) + _integer(20, FLOAT)
    if isinstance(value, int):
        return _text(1, name) + _integer(3, value) + _integer(20, INT)
    return _text(1, name) + b"".join(_integer(8, each) for each in value) + _integer(20, INTS)


def _tensor(value: np.ndarray) -> bytes:
    """The shape and type of a tensor's elements."""
    return b"".join(_integer(1, size) for size in value.shape) + _integer(2, ELEMENT_TYPES[value.dtype.name])


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode())


def _message(number: int, content: bytes) -> bytes:
    return _key(number, LENGTH_DELIMITED) + _varint(len(content)) + content


def _integer(number: int, value: int) -> bytes:
    return _key(number, VARINT) + _varint(value)


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers are written as their two's complement of 64 bits
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
