"""safetensors files, mapped: their tensors are views of the file's bytes, which are read when they are used."""

from __future__ import annotations

import json
import os
import weakref
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from strays.errors import EncoderError

# How numbers are stored -> how NumPy reads them; it has no bfloat16, which is the upper half of a float32.
DTYPES = {"F32": "<f4", "F64": "<f8", "F16": "<f2", "BF16": "<u2", "I8": "i1", "U8": "u1"}


class MappedFile:
    """The bytes of a file where they are. They stay when the file is replaced or removed, but not if it is written to.

    A file that is cut short in the moment in which its end is read ends the process (SIGBUS).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            self._descriptor = os.dup(file.fileno())
            weakref.finalize(self, os.close, self._descriptor)
            self._state = self._now()
            self.data: np.ndarray = np.memmap(file, np.uint8, mode="r")

    def require_unchanged(self) -> None:
        """Raise if the file was written to since it was mapped."""
        if self._now() != self._state:
            raise EncoderError(f"{self._path} was written to while it was in use; start again")

    def _now(self) -> tuple[int, int]:
        state = os.fstat(self._descriptor)
        return state.st_size, state.st_mtime_ns


@dataclass(frozen=True)
class StoredTensor:
    """A tensor among the bytes of a file."""

    dtype: str
    shape: tuple[int, ...]
    data: np.ndarray

    def array(self) -> np.ndarray:
        """As NumPy sees it, without a copy; the numbers of a bfloat16 are its bits."""
        return self.data.view(np.dtype(DTYPES[self.dtype])).reshape(self.shape)

    def float32(self) -> np.ndarray:
        """Its numbers: where they are, if they are stored so, else converted."""
        if self.dtype == "F32":
            return self.array()
        plain = np.asarray(self.array())  # a copy of what is mapped is no np.memmap
        return (plain.astype("<u4") << 16).view("<f4") if self.dtype == "BF16" else plain.astype(np.float32)


def stored_tensors(data: np.ndarray) -> dict[str, StoredTensor]:
    """The tensors by name, from the bytes of a file that is known to be in order."""
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:start].tobytes())
    header.pop("__metadata__", None)
    return {name: _tensor(data[start:], **about) for name, about in header.items()}


def _tensor(data: np.ndarray, dtype: str, shape: list[int], data_offsets: list[int]) -> StoredTensor:
    return StoredTensor(dtype, tuple(shape), data[slice(*data_offsets)])
