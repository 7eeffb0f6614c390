"""Embeddings in an LMDB file that several processes share and that never outgrows its bound.

Three tables in one file, changed together or not at all:

    chunks     number -> a block of some dozens of embeddings; numbers rise, so that the first block is the oldest
    index      hash of a text -> number of its block, and row
    encoders   hash of a fingerprint -> how many embeddings are kept, and the fingerprint itself

If there is no room, the oldest blocks go. Values are blocks, and not single embeddings, because LMDB fills its pages
badly with values of near half a page: the file would be twice as large as what is in it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import lmdb
import numpy as np

from strays.encoders.cache.block import Block, DamageError, words_of

FORMAT = b"strays embeddings 1"
NUMBER = struct.Struct("=Q")
ROW_BITS = 16  # a place is a block's number and these bits for the row
NOWHERE = b"\xff" * NUMBER.size
INDEX_BYTES = 128  # of one text in the index, at most: LMDB leaves pages half empty
MOST_ROWS = 2048  # in one transaction
BLOCK_BYTES = 2**17 - 64  # whole pages, less what LMDB and the header take
# LMDB writes a changed page to a new place, and frees the old one two transactions later: it needs room to turn in.
FILLED = 0.85
ATTEMPTS = 4

DAMAGE = (
    lmdb.CorruptedError,
    lmdb.IncompatibleError,
    lmdb.InvalidError,
    lmdb.PageNotFoundError,
    lmdb.PanicError,
    lmdb.VersionMismatchError,
    struct.error,  # of a value that should be a number
)


class Store:
    """One open file. For one thread at a time, and never across a fork."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._file = folder / "data.mdb"
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
                self._env.reader_check()  # a reader that was killed would keep free pages from being used again
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
            if not found.any():
                return found, np.empty((0, 0), np.float32)
            gathered = self._gather(txn, places[found])
        return found, gathered.embeddings([keys[i] for i in np.flatnonzero(found).tolist()])

    def write(self, encoder: bytes, fingerprint: str, keys: Sequence[bytes], embeddings: np.ndarray) -> None:
        """Keep the embeddings of texts that are not here yet."""
        rows = self._rows_at_once(words_of(embeddings.shape[1]))
        for start in range(0, len(keys), rows):
            part = slice(start, start + rows)
            self._write_part(fingerprint, Block.of(encoder, keys[part], embeddings[part]))

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
        with suppress(FileNotFoundError):
            file = self._file.stat()
            return file.st_dev, file.st_ino
        return None

    def _open_tables(self) -> None:
        with self._env.begin(write=True) as txn:  # nobody else changes the file meanwhile
            # Reading past the end of a mapped file kills the process: one that was cut off gets its length again. What
            # is missing then reads as zeros, which are no valid page, block or record.
            length = (self._env.info()["last_pgno"] + 1) * self._env.stat()["psize"]
            if self._file.stat().st_size < length:
                os.truncate(self._file, length)
            found = txn.get(b"format")
            if found != FORMAT and (found is not None or txn.stat()["entries"]):
                raise DamageError("it holds something else")
            if found is None:
                txn.put(b"format", FORMAT)
            tables = (self._env.open_db(name, txn) for name in (b"index", b"chunks", b"encoders"))
            self._index, self._blocks, self._encoders = tables

    def _gather(self, txn: lmdb.Transaction, places: np.ndarray) -> Block:
        """The records at some places, each block read once."""
        order = np.argsort(places, kind="stable")
        numbers, rows = places[order] >> ROW_BITS, places[order] & (2**ROW_BITS - 1)
        ends = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(order)]
        first = self._block(txn, numbers[0])
        gathered = replace(first, records=np.empty((len(order), first.records.shape[1]), np.uint64))
        for start, end in pairwise(ends):
            block = self._block(txn, numbers[start])
            if block.dimension != first.dimension or rows[end - 1] >= len(block):
                raise DamageError("a block is not the one it should be")
            gathered.records[order[start:end]] = block.records[rows[start:end]]
        return gathered

    def _block(self, txn: lmdb.Transaction, number: np.uint64) -> Block:
        value = txn.get(int(number).to_bytes(8, "big"), db=self._blocks)
        if value is None:
            raise DamageError("a block is missing")
        return Block.from_bytes(value)

    def _write_part(self, fingerprint: str, part: Block) -> None:
        need = part.records.nbytes + INDEX_BYTES * len(part)
        if need > FILLED * self.max_bytes:
            return
        for attempt in range(ATTEMPTS):
            try:
                self._make_room(need, attempt * self.max_bytes // 64)
                with self._transaction(write=True) as txn:
                    self._append(txn, fingerprint, part)
                return
            except lmdb.MapFullError:
                # Readers hold the free pages, or these are nowhere side by side: again with more room, or not at all.
                self._env.reader_check()

    def _append(self, txn: lmdb.Transaction, fingerprint: str, part: Block) -> None:
        keys = part.hashes()
        new = [i for i, key in enumerate(keys) if txn.get(key, db=self._index) is None]
        cursor = txn.cursor(self._blocks)
        number = int.from_bytes(cursor.key(), "big") if cursor.last() else 0
        rows = max(1, min(2**ROW_BITS, BLOCK_BYTES // part.records[0].nbytes))
        kept = 0
        for start in range(0, len(new), rows):
            number += 1
            chosen = new[start : start + rows]
            block = replace(part, records=part.records[chosen])
            txn.put(number.to_bytes(8, "big"), block.to_bytes(), append=True, db=self._blocks)
            for row, i in enumerate(chosen):  # a text that comes twice is kept once
                kept += txn.put(keys[i], NUMBER.pack((number << ROW_BITS) + row), overwrite=False, db=self._index)
        self._count(txn, part.encoder, kept, fingerprint)

    def _make_room(self, need: int, more: int) -> None:
        """Remove the oldest blocks where what is needed does not fit beside the others, or `more` is asked for.

        Some at a time, in transactions of their own: what one frees is there for the next but one.
        """
        with self._transaction() as txn:
            used = self._used(txn)
        lacking = used + need - FILLED * self.max_bytes
        goal = used - more - (lacking + need if lacking > 0 else 0)  # as much again, so that not every writer must
        while used > max(goal, 0):
            with self._transaction(write=True) as txn:
                self._remove_oldest(txn)
                used = self._used(txn) if txn.stat(self._blocks)["entries"] else 0

    def _remove_oldest(self, txn: lmdb.Transaction) -> None:
        """Remove the oldest block, and further ones while these are small."""
        cursor = txn.cursor(self._blocks)
        seen, most = 0, 1
        while seen < most and cursor.first():
            number = int.from_bytes(cursor.key(), "big")
            block = Block.from_bytes(cursor.value())
            seen, most = seen + len(block), self._rows_at_once(words_of(block.dimension))
            removed = 0
            for key in block.hashes():
                place = txn.get(key, db=self._index)
                if place is not None and NUMBER.unpack(place)[0] >> ROW_BITS == number:
                    removed += txn.delete(key, db=self._index)
            self._count(txn, block.encoder, -removed)
            cursor.delete()

    def _rows_at_once(self, words: int) -> int:
        """How many records one transaction may add or remove: they, and an index page for each, need room meanwhile."""
        return max(1, min(MOST_ROWS, self.max_bytes // 64 // max(8 * words, 4096)))

    def _used(self, txn: lmdb.Transaction) -> int:
        tables = [txn.stat(table) for table in (self._index, self._blocks)]
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
    except DAMAGE as error:
        raise DamageError(str(error)) from error
