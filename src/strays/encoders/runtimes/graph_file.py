"""The graphs of an encoder on disk: int8 in one safetensors file that is mapped, and notes on both beside it.

The full-precision graph is not kept: its constants are the model's weights, which are on the disk already. The table of
words is taken from there too, by either graph, unless the weights are of another type.

What is run is what was written: the file's digest is taken from the mapping that is then used, and strays replaces
files by renaming, so that what is mapped stays. A table that is kept here is not guarded against a program that writes
into the file while it is used; one in the weights' file, where people write, is (tensor_files).
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np

from strays.encoders.identity import warn_of_damage
from strays.encoders.runtimes.onnx_graph import TABLE, BertGraph
from strays.encoders.settings import PRECISIONS
from strays.encoders.tensor_files import stored_tensors
from strays.files import replace_file

FILE, NOTES = "int8.safetensors", "graphs.json"
# What earlier versions kept in the same folder.
EARLIER = ("int8.onnx", "full.onnx", "kept.json")
# The ONNX itself, among the constants by their names.
ONNX = "onnx"


@dataclass(frozen=True)
class GraphNotes:
    """How close int8 is to full precision, and the digests of the graphs by precision.

    That of int8 is of the file. That of full precision is of the ONNX: the weights are in the encoder's fingerprint.
    """

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
            notes = cls(**found)
            if set(notes.sha256) == set(PRECISIONS) and notes._check() == check:
                return notes
        except (AttributeError, KeyError, TypeError, RecursionError) as error:
            raise ValueError("not what was written") from error
        raise ValueError("not what was written")

    def _check(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def packed(graph: BertGraph, table: np.ndarray) -> bytes:
    """A graph as the content of a safetensors file; with the table, unless that is mapped from the model's weights."""
    from safetensors.numpy import save

    tensors = {ONNX: np.frombuffer(graph.onnx, np.uint8), **graph.constants}
    if not isinstance(table, np.memmap):
        tensors[TABLE] = table
    return bytes(save({name: np.ascontiguousarray(value) for name, value in tensors.items()}))


def unpacked(data: np.ndarray) -> tuple[BertGraph, np.ndarray | None]:
    """A graph and, if it is there, the table, from the bytes that `packed` gave; nothing is copied but the ONNX."""
    tensors = {name: tensor.array() for name, tensor in stored_tensors(data).items()}
    onnx, table = tensors.pop(ONNX).tobytes(), tensors.pop(TABLE, None)
    return BertGraph(onnx, tensors), table


def digest(data: memoryview | bytes) -> str:
    """The sha256 of bytes; those of a mapped file are not copied."""
    return hashlib.sha256(data).hexdigest()


def read_notes(folder: Path) -> GraphNotes | None:
    """The notes; None where there are none, or the graph is gone."""
    try:
        return GraphNotes.from_json((folder / NOTES).read_bytes()) if (folder / FILE).is_file() else None
    except OSError:
        return None
    except ValueError:
        warn_of_damage(folder / NOTES)
        return None


def mapped(folder: Path, sha256: str) -> np.ndarray | None:
    """The bytes of the int8 graph, if they have this digest; None, with a warning, if they are others."""
    path = folder / FILE
    try:
        data: np.ndarray = np.memmap(path, np.uint8, mode="r")
    except OSError:
        return None
    except ValueError:  # an empty file cannot be mapped
        data = np.empty(0, np.uint8)
    if digest(data.data) == sha256:
        return data
    warn_of_damage(path)
    return None


def write(folder: Path, data: bytes, notes: GraphNotes) -> None:
    """The graph first: until its digest is there too, it is nobody's. What earlier versions kept goes."""
    folder.mkdir(parents=True, exist_ok=True)
    with replace_file(folder / FILE) as file:
        file.write(data)
    with replace_file(folder / NOTES) as file:
        file.write(notes.to_json().encode())
    for name in EARLIER:
        with suppress(FileNotFoundError):
            (folder / name).unlink()
