"""Embeddings in an LMDB file that several processes share and that never outgrows its bound.

Three tables in one file, changed together or not at all:

    chunks     number -> some dozens of records; numbers rise, so that the first chunk is the oldest
    index      hash of a text -> number of its chunk, and row
    encoders   hash of a fingerprint -> how many embeddings are kept, and the fingerprint itself

A record is a row of uint64: a check sum, the text's hash (two words), the embedding's float32 values, two to a word.
Where there is no room, the oldest chunks go. Chunks, and not single embeddings, because LMDB fills its pages badly with
values of near half a page: the file would be twice as large as what is in it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import lmdb
import numpy as np

FORMAT = b"strays embeddings 1"
HASH = slice(1, 3)  # the words of a record that hold the text's hash
FIRST_VALUE = 3  # the word its embedding starts at
HEADER = struct.Struct("=8sQ")  # of a chunk: the encoder, the dimension
NUMBER = struct.Struct("=Q")
ROW_BITS = 16  # a place is a chunk's number and these bits for the row
NOWHERE = b"\xff" * NUMBER.size
INDEX_BYTES = 128  # of one text in the index, at most: LMDB leaves pages half empty
MOST_ROWS = 2048
CHUNK_BYTES = 2**17 - 64  # whole pages, less what LMDB and the header take
ATTEMPTS = 4
# LMDB writes a changed page to a new place, and frees the old one two transactions later: it needs room to turn in.
FILLED = 0.85

DAMAGE = (
    lmdb.CorruptedError,
    lmdb.IncompatibleError,
    lmdb.InvalidError,
    lmdb.PageNotFoundError,
    lmdb.PanicError,
    lmdb.VersionMismatchError,
)


class DamageError(Exception):
    """The file is not what strays wrote."""


class Store:
    """One open file. Never for a forked child, and for one thread at a time."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        folder.mkdir(parents=True, exist_ok=True)
        # The map is the bound: LMDB lets no file grow past it, and takes only the pages it uses.
        # Synced without metasync: a power cut may take the last embeddings, and leaves a whole file; never synced, it
        # could leave a torn one, and reading that may crash. No writemap: on a full disk, writing into a mapped file
        # kills the process, where a failing write is an error to go on from. Embeddings tell of texts: 0o600.
        with _telling_damage():
            self._env = lmdb.open(
                str(folder), map_size=max_bytes, max_dbs=3, max_readers=1024, metasync=False, mode=0o600
            )
        try:
            with _telling_damage():
                self._env.reader_check()  # a reader that was killed would keep free pages from being used again
                self._fill_up()
                self._open_tables()
            self._identity = self._file_now()
        except BaseException:
            self._env.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._env.close()

    def is_current(self) -> bool:
        """False where another process has removed or replaced the file."""
        return self._identity == self._file_now()

    def read(self, keys: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """Which of the texts' hashes are here, and the embeddings of those."""
        with self._transaction() as txn:
            get, index = txn.get, self._index
            joined = b"".join([get(key, NOWHERE, index) for key in keys])
            if len(joined) != NUMBER.size * len(keys):
                raise DamageError("a place has another length than it should")
            places = np.frombuffer(joined, np.uint64)
            found = places != np.frombuffer(NOWHERE, np.uint64)
            records, dimension = self._gather(txn, places[found])
        hashes = np.frombuffer(b"".join([keys[i] for i in np.flatnonzero(found).tolist()]), np.uint64).reshape(-1, 2)
        if not np.array_equal(records[:, HASH], hashes) or np.any(records[:, 0] != _check_sums(records, dimension)):
            raise DamageError("an embedding is not what was written")
        return found, records[:, FIRST_VALUE:].view(np.float32)[:, :dimension]

    def write(self, encoder: bytes, fingerprint: str, keys: Sequence[bytes], embeddings: np.ndarray) -> None:
        """Keep the embeddings of texts that are not here yet."""
        dimension = embeddings.shape[1]
        records = np.zeros((len(keys), FIRST_VALUE + (dimension + 1) // 2), np.uint64)
        records[:, HASH] = np.frombuffer(b"".join(keys), np.uint64).reshape(-1, 2)
        records[:, FIRST_VALUE:].view(np.float32)[:, :dimension] = embeddings
        records[:, 0] = _check_sums(records, dimension)
        rows = self._rows_at_once(records)
        for start in range(0, len(keys), rows):
            part = slice(start, start + rows)
            self._write_part(encoder, fingerprint, keys[part], records[part], dimension)

    def counts(self) -> dict[str, int]:
        """How many embeddings of each encoder there are, by its fingerprint."""
        with self._transaction() as txn:
            rows = [bytes(value) for _, value in txn.cursor(self._encoders)]
        return {row[NUMBER.size :].decode(errors="replace"): NUMBER.unpack_from(row)[0] for row in rows}

    @contextmanager
    def _transaction(self, write: bool = False) -> Iterator[lmdb.Transaction]:
        with _telling_damage():
            try:
                txn = self._env.begin(write=write, buffers=True)
            except lmdb.MapResizedError:  # a process with a larger bound has made the file larger than our map
                self._env.set_mapsize(0)
                txn = self._env.begin(write=write, buffers=True)
            with txn:
                yield txn

    def _file_now(self) -> tuple[int, int] | None:
        try:
            file = (self.folder / "data.mdb").stat()
        except FileNotFoundError:
            return None
        return file.st_dev, file.st_ino

    def _fill_up(self) -> None:
        """Give a file that was cut off its length again: reading past the end of a mapped file kills the process.

        What is missing then reads as zeros, which are no valid page, record or hash.
        """
        file = self.folder / "data.mdb"
        page = self._env.stat()["psize"]
        if file.stat().st_size < (self._env.info()["last_pgno"] + 1) * page:
            with self._env.begin(write=True):  # nobody else changes the length meanwhile
                length = (self._env.info()["last_pgno"] + 1) * page
                if file.stat().st_size < length:
                    os.truncate(file, length)

    def _open_tables(self) -> None:
        with self._env.begin(write=True) as txn:
            found = txn.get(b"format")
            if found != FORMAT and (found or txn.stat()["entries"]):
                raise DamageError("it holds something else")
            if found is None:
                txn.put(b"format", FORMAT)
            self._index, self._chunks, self._encoders = (
                self._env.open_db(name, txn) for name in (b"index", b"chunks", b"encoders")
            )

    def _gather(self, txn: lmdb.Transaction, places: np.ndarray) -> tuple[np.ndarray, int]:
        """The records at some places, and the dimension of their embeddings."""
        order = np.argsort(places, kind="stable")
        numbers, rows = places[order] >> ROW_BITS, places[order] & (2**ROW_BITS - 1)
        starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(order)]
        records, dimension = np.empty((0, FIRST_VALUE), np.uint64), 0
        for start, end in pairwise(starts if len(order) else []):
            value = txn.get(int(numbers[start]).to_bytes(8, "big"), db=self._chunks)
            if value is None:
                raise DamageError("a chunk is missing")
            _, d, chunk = _parse(value)
            if start == 0:
                records, dimension = np.empty((len(order), chunk.shape[1]), np.uint64), d
            if d != dimension or rows[end - 1] >= len(chunk):
                raise DamageError("a chunk is not the one it should be")
            records[order[start:end]] = chunk[rows[start:end]]
        return records, dimension

    def _write_part(
        self, encoder: bytes, fingerprint: str, keys: Sequence[bytes], records: np.ndarray, dimension: int
    ) -> None:
        need = records.nbytes + INDEX_BYTES * len(keys)
        if need > FILLED * self.max_bytes:
            return
        for attempt in range(ATTEMPTS):
            try:
                self._make_room(need, attempt * self.max_bytes // 64)
                with self._transaction(write=True) as txn:
                    self._append(txn, encoder, fingerprint, keys, records, dimension)
                return
            except lmdb.MapFullError:
                # Readers hold the free pages, or these are nowhere side by side: again with more room, or not at all.
                self._env.reader_check()

    def _append(
        self,
        txn: lmdb.Transaction,
        encoder: bytes,
        fingerprint: str,
        keys: Sequence[bytes],
        records: np.ndarray,
        dimension: int,
    ) -> None:
        new = [i for i, key in enumerate(keys) if txn.get(key, db=self._index) is None]
        if not new:
            return
        cursor = txn.cursor(self._chunks)
        number = int.from_bytes(cursor.key(), "big") + 1 if cursor.last() else 1
        rows = max(1, min(2**ROW_BITS, CHUNK_BYTES // (records.itemsize * records.shape[1])))
        kept = 0
        for start in range(0, len(new), rows):
            part = new[start : start + rows]
            value = HEADER.pack(encoder, dimension) + records[part].tobytes()
            txn.put(number.to_bytes(8, "big"), value, append=True, db=self._chunks)
            for row, i in enumerate(part):  # a text that comes twice is kept once
                kept += txn.put(keys[i], NUMBER.pack((number << ROW_BITS) + row), overwrite=False, db=self._index)
            number += 1
        self._count(txn, encoder, kept, fingerprint)

    def _make_room(self, need: int, more: int = 0) -> None:
        """Remove the oldest chunks where what is needed does not fit beside the others, or `more` is asked for.

        Some at a time, in transactions of their own: what one frees is there for the next but one.
        """
        with self._transaction() as txn:
            used = self._used(txn)
        lacking = used + need - FILLED * self.max_bytes
        goal = used - more - (lacking + need if lacking > 0 else 0)  # as much again, so that not every writer must
        while used > max(goal, 0):
            with self._transaction(write=True) as txn:
                self._remove_oldest(txn)
                used = self._used(txn) if txn.stat(self._chunks)["entries"] else 0

    def _remove_oldest(self, txn: lmdb.Transaction) -> None:
        """Remove the oldest chunk, and further ones while they are small."""
        cursor = txn.cursor(self._chunks)
        seen, most = 0, 1
        while seen < most and cursor.first():
            number = int.from_bytes(cursor.key(), "big")
            encoder, _, records = _parse(cursor.value())
            seen, most = seen + len(records), self._rows_at_once(records)
            removed = 0
            for key in [record.tobytes() for record in records[:, HASH]]:
                place = txn.get(key, db=self._index)
                if place is not None and NUMBER.unpack(place)[0] >> ROW_BITS == number:
                    removed += txn.delete(key, db=self._index)
            cursor.delete()
            self._count(txn, encoder, -removed)

    def _rows_at_once(self, records: np.ndarray) -> int:
        """How many records one transaction may add or remove: what it changes must find room beside what is there.

        That is the records, and for each one a page of the index.
        """
        room = self.max_bytes // 64
        return max(1, min(MOST_ROWS, room // (records.itemsize * records.shape[1]), room // 4096))

    def _used(self, txn: lmdb.Transaction) -> int:
        tables = [txn.stat(table) for table in (self._index, self._chunks)]
        return sum(t["psize"] * (t["branch_pages"] + t["leaf_pages"] + t["overflow_pages"]) for t in tables)

    def _count(self, txn: lmdb.Transaction, encoder: bytes, change: int, fingerprint: str = "") -> None:
        kept = bytes(txn.get(encoder, NUMBER.pack(0) + fingerprint.encode(errors="replace"), self._encoders))
        count = NUMBER.unpack_from(kept)[0] + change
        if count > 0:
            txn.put(encoder, NUMBER.pack(count) + kept[NUMBER.size :], db=self._encoders)
        else:
            txn.delete(encoder, db=self._encoders)


@contextmanager
def _telling_damage() -> Iterator[None]:
    """LMDB's words for a file that is none of its own, or is broken, as one error."""
    try:
        yield
    except (*DAMAGE, struct.error) as error:
        raise DamageError(str(error)) from error


def _parse(value: bytes | memoryview) -> tuple[bytes, int, np.ndarray]:
    """Of a chunk: the encoder, the dimension, and its records, still in the file's memory."""
    if len(value) < HEADER.size:
        raise DamageError("a chunk is cut off")
    encoder, dimension = HEADER.unpack_from(value)
    width = FIRST_VALUE + (dimension + 1) // 2
    words, rest = divmod(len(value) - HEADER.size, 8)
    if rest or words % width:
        raise DamageError("a chunk has another length than it should")
    return encoder, dimension, np.frombuffer(value, np.uint64, offset=HEADER.size).reshape(-1, width)


def _check_sums(records: np.ndarray, dimension: int) -> np.ndarray:
    """One number for each record that changes with any word of it, its own place apart."""
    return records[:, 1:] @ _weights(records.shape[1] - 1) + np.uint64(dimension)


@lru_cache(maxsize=16)
def _weights(n: int) -> np.ndarray:
    """Odd numbers, the same for ever: NumPy keeps what its bit generators yield."""
    return np.random.PCG64(7).random_raw(n) | np.uint64(1)
