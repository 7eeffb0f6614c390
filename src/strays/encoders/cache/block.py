"""Some embeddings of one encoder as one value in the file, with what tells whether they are still what was written.

A record is a row of uint64 words: a check sum, the text's hash (two words), the embedding's float32 values (two to a
word). The check sum of words w is the sum of a_i w_i modulo 2^64 with fixed odd a_i: no change of one word leaves it as
it was, and other changes do with a chance of about 2^-64.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

HASH = slice(1, 3)
FIRST_VALUE = 3
HEADER = struct.Struct("=8sQ")  # the encoder, the dimension


class DamageError(Exception):
    """The file is not what strays wrote."""


@dataclass(frozen=True)
class Block:
    """Records of embeddings, all of one encoder."""

    encoder: bytes
    dimension: int
    records: np.ndarray

    @classmethod
    def of(cls, encoder: bytes, keys: Sequence[bytes], embeddings: np.ndarray) -> Block:
        """The embeddings of texts with these hashes."""
        n, dimension = embeddings.shape
        records = np.zeros((n, words_of(dimension)), np.uint64)
        records[:, HASH] = np.frombuffer(b"".join(keys), np.uint64).reshape(n, 2)
        records[:, FIRST_VALUE:].view(np.float32)[:, :dimension] = embeddings
        block = cls(encoder, dimension, records)
        records[:, 0] = block._check_sums()
        return block

    @classmethod
    def from_bytes(cls, value: bytes | memoryview) -> Block:
        """What `to_bytes` made; its records stay in the value's memory."""
        if len(value) < HEADER.size:
            raise DamageError("a block is cut off")
        encoder, dimension = HEADER.unpack_from(value)
        words, rest = divmod(len(value) - HEADER.size, 8)
        if rest or words % words_of(dimension):
            raise DamageError("a block has the wrong length")
        records = np.frombuffer(value, np.uint64, offset=HEADER.size).reshape(-1, words_of(dimension))
        return cls(encoder, dimension, records)

    def to_bytes(self) -> bytes:
        """As one value in the file."""
        return HEADER.pack(self.encoder, self.dimension) + self.records.tobytes()

    def __len__(self) -> int:
        return len(self.records)

    def hashes(self) -> list[bytes]:
        """The texts' hashes."""
        return [record.tobytes() for record in self.records[:, HASH]]

    def embeddings(self, keys: Sequence[bytes]) -> np.ndarray:
        """The embeddings, which must be those of texts with these hashes and as they were written."""
        hashes = np.frombuffer(b"".join(keys), np.uint64).reshape(-1, 2)
        if not np.array_equal(self.records[:, HASH], hashes) or np.any(self.records[:, 0] != self._check_sums()):
            raise DamageError("an embedding is not what was written")
        return self.records[:, FIRST_VALUE:].view(np.float32)[:, : self.dimension]

    def _check_sums(self) -> np.ndarray:
        weights = _weights(self.records.shape[1] - 1)
        return self.records[:, 1:] @ weights + np.uint64(self.dimension)


def words_of(dimension: int) -> int:
    """The words of one record."""
    return FIRST_VALUE + (dimension + 1) // 2


@lru_cache(maxsize=16)
def _weights(n: int) -> np.ndarray:
    """Odd numbers, the same for ever: NumPy promises to keep what its bit generators yield."""
    return np.random.PCG64(7).random_raw(n) | np.uint64(1)
