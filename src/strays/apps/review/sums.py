"""Check sums over a project's rows, so that one changed bit, or one lost row, is noticed when the project is opened.

SQLite checks the structure of its file, and not what the rows hold. So the table `sums` has, for each other table, how
many rows there are and the sum of their hashes, which does not depend on their order and grows with every commit, in
the same transaction. It tells of accidents; whoever changes a project on purpose can change the sums too.
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections.abc import Iterable
from typing import Any

SCHEMA = "CREATE TABLE sums (name TEXT PRIMARY KEY, n INTEGER NOT NULL, total INTEGER NOT NULL) WITHOUT ROWID"
COLUMNS = {
    "settings": "name, value",
    "texts": "id, digest, text, n_rows, rows, ids, given, known",
    "events": "id, verdict, who, client, at, undoes",
    "judgements": "event, text, p_value, anomaly_score, why",
}
UNDONE_UNDO = (
    "SELECT 1 FROM events AS undo JOIN events AS undone ON undone.id = undo.undoes WHERE undone.undoes IS NOT NULL"
)
LIMIT = 2**63  # of SQLite's whole numbers


def row_hash(row: Iterable[Any]) -> int:
    """A hash of the values of a row and of their types, the same with every version of Python and SQLite.

    >>> row_hash([1, "a", None]) == row_hash([1, "a", None]), row_hash([1, "a"]) == row_hash(["1", "a"])
    (True, False)
    """
    parts = []
    for value in row:
        if value is None:
            parts.append(b"n")
        elif isinstance(value, int):
            parts.append(b"i%d;" % value)
        elif isinstance(value, float):
            parts.append(b"f" + struct.pack(">d", value))
        else:
            data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
            parts.append(b"%c%d;%b" % (b"s" if isinstance(value, str) else b"b", len(data), data))
    return int.from_bytes(hashlib.blake2b(b"".join(parts), digest_size=8).digest()) % LIMIT


def add(db: sqlite3.Connection, table: str, where: str, *values: Any) -> None:
    """Count the rows that were just inserted, inside their transaction."""
    n, total = _sum(db, table, where, *values)
    before_n, before = db.execute("SELECT n, total FROM sums WHERE name = ?", (table,)).fetchone()
    db.execute("UPDATE sums SET n = ?, total = ? WHERE name = ?", (before_n + n, (before + total) % LIMIT, table))


def renew(db: sqlite3.Connection, *tables: str) -> None:
    """Count all rows of tables that were changed, inside the transaction."""
    db.executemany("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", [(table, *_sum(db, table)) for table in tables])


def damaged(db: sqlite3.Connection) -> str | None:
    """What is wrong with a project, in words; None where all is as it was written."""
    found = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        return str(found)
    if db.execute("PRAGMA foreign_key_check").fetchone() or db.execute(UNDONE_UNDO).fetchone():
        return "a verdict or an undo is of something that is not there"
    for table in COLUMNS:
        stored = db.execute("SELECT n, total FROM sums WHERE name = ?", (table,)).fetchone()
        if stored is None or stored != _sum(db, table):
            return f"the rows of {table!r} are not those that were written"
    return None


def _sum(db: sqlite3.Connection, table: str, where: str = "1", *values: Any) -> tuple[int, int]:
    n = total = 0
    for row in db.execute(f"SELECT {COLUMNS[table]} FROM {table} WHERE {where}", values):  # noqa: S608 - names of ours
        n, total = n + 1, total + row_hash(row)
    return n, total % LIMIT
