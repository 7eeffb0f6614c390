"""Embeddings in an SQLite file that several processes share and that never outgrows its bound.

A row has a text's hash, and a record: a check sum and the embedding's float32 values. The check sum is of the values
and the hash together (keyed BLAKE2), so that no damage gives another embedding or another text's. SQLite reports what
else can be damaged, and reads a file rather than mapping it: a mapped file that is cut off, or whose pages point
outside, ends the process with SIGBUS. There is no write-ahead log either, since its index is mapped.

Rows are numbered as they come. If there is no room, the first ones go.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np

FILE = "embeddings.sqlite"
PAGE = 16384
HEADER = b"SQLite format 3\0" + PAGE.to_bytes(2, "big") + b"\1\1"  # the last two: no write-ahead log
TABLES = (
    "CREATE TABLE encoders (id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL UNIQUE)",
    "CREATE TABLE embeddings (id INTEGER PRIMARY KEY, encoder INTEGER NOT NULL, hash BLOB NOT NULL, record BLOB)",
    "CREATE UNIQUE INDEX by_hash ON embeddings (encoder, hash)",
)
SETTINGS: tuple[str, ...] = (
    f"PRAGMA page_size={PAGE}",
    "PRAGMA mmap_size=0",
    "PRAGMA cache_size=-32768",  # 32 MB
    "PRAGMA synchronous=NORMAL",  # a power cut may cost the file, never an embedding's digits
    "PRAGMA cell_size_check=ON",
    "PRAGMA trusted_schema=OFF",
)
CHECK_BYTES = 8
ROW_BYTES = 32  # of a row besides its record
INDEX_BYTES = 64  # of one text in the index, at most: pages are half full at worst
LARGEST_RECORD = 2**26
ASKED_AT_ONCE = 512
SECONDS_TO_WAIT = 60.0  # for another process that writes
# How full a file may be: estimates of what rows take are not exact.
FILLED = 0.9
# What is no damage of the file: somebody else's lock, memory, rights, the disk.
NO_DAMAGE = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_PROTOCOL,
)


class DamageError(Exception):
    """The file is not what strays wrote."""


class MovedError(Exception):
    """Another process has removed the file while it was open here."""


class Store:
    """One open file. For one thread at a time, and never across a fork."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._file = folder / FILE
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # embeddings tell of texts: 0o600
            os.close(os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with self._file.open("rb") as file:
            if file.read(len(HEADER)) not in (HEADER, b""):
                raise DamageError("it holds something else")
        self._identity = self._file_now()
        with _telling_damage():
            self._db = sqlite3.connect(
                self._file, timeout=SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False
            )
            try:
                self._open_tables()
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def is_current(self) -> bool:
        """False where another process has removed or replaced the file."""
        return self._identity == self._file_now()

    def read(self, fingerprint: str, keys: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """Which of the texts' hashes are here, and the embeddings of those."""
        records: dict[bytes, bytes] = {}
        with _telling_damage():
            encoder = self._encoder(fingerprint)
            for start in range(0, len(keys) if encoder is not None else 0, ASKED_AT_ONCE):
                asked = keys[start : start + ASKED_AT_ONCE]
                marks = ",".join("?" * len(asked))
                query = f"SELECT hash, record FROM embeddings WHERE encoder = ? AND hash IN ({marks})"  # noqa: S608
                records.update((key, record) for key, record in self._db.execute(query, (encoder, *asked)))
        found = np.fromiter((key in records for key in keys), dtype=bool, count=len(keys))
        if not found.any():
            return found, np.empty((0, 0), np.float32)
        chosen = [_checked(key, records[key]) for key, here in zip(keys, found, strict=True) if here]
        if len({len(record) for record in chosen}) != 1:
            raise DamageError("embeddings of one encoder have different lengths")
        words = np.frombuffer(b"".join(chosen), np.float32).reshape(len(chosen), -1)
        return found, np.ascontiguousarray(words[:, CHECK_BYTES // 4 :])

    def write(self, fingerprint: str, keys: Sequence[bytes], embeddings: np.ndarray) -> None:
        """Keep the embeddings of texts that are not here yet."""
        record_bytes = CHECK_BYTES + 4 * embeddings.shape[1]
        rows = int(self.max_bytes // 16 // _room_for(1, record_bytes))
        if record_bytes > LARGEST_RECORD or rows == 0:
            return
        for start in range(0, len(keys), rows):
            part = slice(start, start + rows)
            self._write_part(fingerprint, keys[part], embeddings[part], _room_for(len(keys[part]), record_bytes))

    def counts(self) -> dict[str, int]:
        """How many embeddings of each encoder there are, by its fingerprint."""
        query = "SELECT fingerprint, n FROM encoders, (SELECT encoder, count(*) AS n FROM embeddings GROUP BY encoder)"
        with _telling_damage():
            rows = self._db.execute(f"{query} WHERE encoder = id ORDER BY id").fetchall()
        return {bytes(fingerprint).decode(errors="replace"): n for fingerprint, n in rows}

    def _file_now(self) -> tuple[int, int] | None:
        with suppress(FileNotFoundError):
            file = self._file.stat()
            return file.st_dev, file.st_ino
        return None

    def _open_tables(self) -> None:
        self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * LARGEST_RECORD)
        for setting in SETTINGS:
            self._db.execute(setting)
        self._db.execute(f"PRAGMA max_page_count={self.max_bytes // PAGE}")
        if self._tables() == []:
            with self._transaction():  # another process may be here too
                if self._tables() == []:
                    for table in TABLES:
                        self._db.execute(table)
        if self._tables() != list(TABLES):
            raise DamageError("it holds something else")

    def _tables(self) -> list[str]:
        """What defines the tables, as it is written in the file."""
        return [
            sql for (sql,) in self._db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
        ]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _telling_damage():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # some errors have rolled it back already
                    self._db.execute("ROLLBACK")
                raise

    def _encoder(self, fingerprint: str) -> int | None:
        row = self._db.execute("SELECT id FROM encoders WHERE fingerprint = ?", (_bytes(fingerprint),)).fetchone()
        return row[0] if row else None

    def _write_part(self, fingerprint: str, keys: Sequence[bytes], embeddings: np.ndarray, need: int) -> None:
        for more in (0, self.max_bytes // 8):
            try:
                with self._transaction():
                    self._make_room(need + more)
                    self._insert(fingerprint, keys, embeddings)
                return
            except sqlite3.OperationalError as error:
                # The bound, or the disk? What is not kept for want of room is no failure.
                pages = self._number("PRAGMA page_count")
                if error.sqlite_errorcode != sqlite3.SQLITE_FULL or pages * PAGE + need < FILLED * self.max_bytes:
                    raise

    def _insert(self, fingerprint: str, keys: Sequence[bytes], embeddings: np.ndarray) -> None:
        self._db.execute("INSERT OR IGNORE INTO encoders (fingerprint) VALUES (?)", (_bytes(fingerprint),))
        encoder = self._encoder(fingerprint)
        rows = ((encoder, key, _record(key, values.tobytes())) for key, values in zip(keys, embeddings, strict=True))
        self._db.executemany("INSERT OR IGNORE INTO embeddings (encoder, hash, record) VALUES (?, ?, ?)", rows)

    def _make_room(self, need: int) -> None:
        """Remove the oldest rows where what is needed does not fit beside the others."""
        room = FILLED * self.max_bytes - need
        used = self._used()
        goal = max(0.0, room - need)  # as much again, so that not every writer must
        while used > room:
            first, last = self._db.execute("SELECT min(id), max(id) FROM embeddings").fetchone()
            if first is None:
                return
            share = max(0.02, (used - goal) / used)
            end = first + math.ceil(share * (last - first + 1))
            self._db.execute("DELETE FROM embeddings WHERE id < ?", (end,))
            self._db.execute("DELETE FROM encoders WHERE id NOT IN (SELECT DISTINCT encoder FROM embeddings)")
            used = self._used()

    def _used(self) -> int:
        return PAGE * (self._number("PRAGMA page_count") - self._number("PRAGMA freelist_count"))

    def _number(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])


def _bytes(fingerprint: str) -> bytes:
    return fingerprint.encode("utf-8", "surrogatepass")


def _record(key: bytes, values: bytes) -> bytes:
    return blake2b(values, digest_size=CHECK_BYTES, key=key).digest() + values


def _checked(key: bytes, record: object) -> bytes:
    """The record of a text as it was written."""
    if not isinstance(record, bytes) or (len(record) - CHECK_BYTES) % 4 or record != _record(key, record[CHECK_BYTES:]):
        raise DamageError("an embedding is not what was written")
    return record


def _room_for(n_rows: int, record_bytes: int) -> int:
    """Bytes that rows take in the file, at most."""
    in_page = (PAGE - 64) // (record_bytes + ROW_BYTES)
    pages = math.ceil(n_rows / in_page) if in_page else n_rows * (1 + math.ceil(record_bytes / (PAGE - 8)))
    return pages * PAGE + INDEX_BYTES * n_rows


@contextmanager
def _telling_damage() -> Iterator[None]:
    """SQLite's words for a file that is none of its own, or is broken, as one error."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_BUSY)
        if code == sqlite3.SQLITE_READONLY_DBMOVED:
            raise MovedError from error
        if code & 0xFF in NO_DAMAGE:
            raise
        raise DamageError(str(error)) from error
