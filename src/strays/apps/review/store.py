"""The project file: texts, the labels they came with, and every verdict and undo ever given. Nothing is deleted.

One SQLite file in write-ahead mode. What `commit_verdict` and `commit_undo` have
returned from is on the disk. Several processes may
use one file at once: each reads the others' events by their rising numbers.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from strays.apps.review.history import Event, Judgement
from strays.errors import DataError, UsageError, first_line

VERDICTS = ("normal", "anomaly", "skip")
FORMAT_VERSION = 1
# Marks a SQLite file as ours ("stry").
APPLICATION_ID = 0x73747279
SQLITE_MAGIC = b"SQLite format 3\x00"
BUSY_SECONDS = 20
# Row numbers kept of a text that many rows have.
MOST_ROWS = 20

SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE texts (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,   -- sha256 of the text
    text BLOB NOT NULL,            -- UTF-8; half characters as they are
    n_rows INTEGER NOT NULL,       -- 0: not in the file as it was last read
    rows TEXT NOT NULL,            -- JSON: the first row numbers, counted from 1
    given TEXT,                    -- normal or anomaly, as the file or --known says
    known INTEGER NOT NULL         -- 1: given by --known, and shown even where no row has it
);
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    verdict TEXT NOT NULL,         -- normal, anomaly, skip, or undo
    who TEXT NOT NULL,
    client TEXT NOT NULL,
    at TEXT NOT NULL,              -- UTC, ISO 8601
    undoes INTEGER UNIQUE REFERENCES events
);
CREATE INDEX events_by_client ON events (client);
CREATE TABLE judgements (
    event INTEGER NOT NULL REFERENCES events,
    text INTEGER NOT NULL REFERENCES texts,
    p_value REAL, anomaly_score REAL, why TEXT,  -- what the text had when it was judged
    PRIMARY KEY (event, text)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Entry:
    """A distinct text, how many rows have it and the first of these, and what it was given as."""

    text: str
    n_rows: int
    rows: tuple[int, ...]
    given: str | None = None
    known: bool = False


class LabelStore:
    """A project file, made where there is none. Safe to use from several threads and processes."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        if self.path.is_dir():
            raise DataError(f"{path}: is a folder; expected the name of a project file")
        if not self.path.parent.is_dir():
            raise DataError(
                f"{path}: there is no folder {self.path.parent}; make it first, or choose another {{project}}",
                param="project",
            )
        if self.path.exists() and self.path.stat().st_size and not is_sqlite(self.path):
            raise DataError(f"{path}: is not a project of strays review; choose another {{project}}", param="project")
        with self._words():
            self._db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        with self._words():
            tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            ours, version = self._format()
            if tables and ours != APPLICATION_ID:
                raise DataError(
                    f"{self.path}: is a database of something else; choose another {{project}}", param="project"
                )
            if version > FORMAT_VERSION:
                raise DataError(
                    f"{self.path}: was written in format {version} by a newer strays; this one reads up to "
                    f"{FORMAT_VERSION}. Update it: pip install --upgrade strays"
                )
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            with self._transaction():
                if self._format() == (0, 0):  # else another process was faster
                    for statement in SCHEMA.split(";\n"):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    self._db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")

    def _format(self) -> tuple[int, int]:
        return tuple(self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))

    def close(self) -> None:
        """Give the file back; what was acknowledged is in it already."""
        with self._lock:
            self._db.close()

    def checkpoint(self) -> None:
        """Bring what is in the write-ahead log into the file itself, as far as nobody is using it."""
        with self._reading():
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    # ---- settings and texts ------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """What the project was set up with: encoder, detector, name of the file."""
        with self._reading():
            return {name: json.loads(value) for name, value in self._db.execute("SELECT name, value FROM settings")}

    def set(self, **values: Any) -> None:
        """Keep some settings."""
        with self._writing():
            self._put_settings(values)

    def _put_settings(self, values: dict[str, Any]) -> None:
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        self._db.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", rows)

    def put_texts(self, entries: Iterable[Entry]) -> None:
        """What the file holds now. Texts that are gone from it are kept; labels once given stay."""
        rows = [
            ((data := to_bytes(e.text)), hashlib.sha256(data).digest(), e.n_rows, json.dumps(e.rows), e.given, e.known)
            for e in entries
        ]
        content = hashlib.sha256(repr([row[1:] for row in rows]).encode()).hexdigest()
        with self._writing():
            if self._db.execute("SELECT value FROM settings WHERE name = 'content'").fetchone() == (f'"{content}"',):
                return
            self._db.execute("UPDATE texts SET n_rows = 0, rows = '[]'")
            self._db.executemany(
                "INSERT INTO texts (text, digest, n_rows, rows, given, known) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (digest) DO UPDATE SET n_rows = excluded.n_rows, rows = excluded.rows, "
                "given = coalesce(excluded.given, given), known = max(known, excluded.known)",
                rows,
            )
            self._put_settings({"content": content})

    def texts(self) -> dict[int, Entry]:
        """The texts to show, by id, in the order of the file; known ones that no row has come last."""
        with self._reading():
            found = self._db.execute("SELECT id, text, n_rows, rows, given, known FROM texts WHERE n_rows OR known")
            entries = {
                id_: Entry(to_text(data), n_rows, tuple(json.loads(rows)), given, bool(known))
                for id_, data, n_rows, rows, given, known in found
            }
        return dict(sorted(entries.items(), key=lambda item: (item[1].n_rows == 0, item[1].rows, item[0])))

    # ---- events ------------------------------------------------------------------------------------------------------

    def commit_verdict(self, judgements: Mapping[int, Judgement], verdict: str, who: str, client: str) -> int:
        """Put a verdict on some texts on the disk; gives the event's number."""
        if verdict not in VERDICTS:
            raise UsageError(f"{{verdict}} is {verdict!r:.40}; expected one of {', '.join(VERDICTS)}", param="verdict")
        with self._writing():
            event = self._put_event(verdict, who, client, None)
            rows = [(event, text, j.p_value, j.anomaly_score, j.why) for text, j in judgements.items()]
            self._db.executemany("INSERT INTO judgements VALUES (?, ?, ?, ?, ?)", rows)
        return event

    def commit_undo(self, who: str, client: str) -> int | None:
        """Undo the caller's last action that is not undone yet; gives the number of the event that was undone.

        A client that has a name is one person's, whatever that person is called; else the name tells.
        """
        with self._writing():
            last = self._db.execute(
                "SELECT max(id) FROM events AS e WHERE (who = ? OR client != '') AND client = ? AND undoes IS NULL "
                "AND NOT EXISTS (SELECT 1 FROM events WHERE undoes = e.id)",
                (who, client),
            ).fetchone()[0]
            if last is not None:
                self._put_event("undo", who, client, last)
        return last

    def _put_event(self, verdict: str, who: str, client: str, undoes: int | None) -> int:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        cursor = self._db.execute(
            "INSERT INTO events (verdict, who, client, at, undoes) VALUES (?, ?, ?, ?, ?)",
            (verdict, who, client, at, undoes),
        )
        return int(cursor.lastrowid or 0)

    def last_event(self) -> int:
        """The number of the last event, 0 where there is none; also of another process."""
        with self._reading():
            return int(self._db.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()[0])

    def events(self, after: int = 0) -> list[Event]:
        """All events with higher numbers than this, in order; also those of other processes."""
        with self._reading():
            head = self._db.execute("SELECT * FROM events WHERE id > ? ORDER BY id", (after,)).fetchall()
            if not head:
                return []
            judged: dict[int, dict[int, Judgement]] = {row[0]: {} for row in head}
            # Nothing that was written between the two questions.
            span = (after, head[-1][0])
            for event, text, *had in self._db.execute("SELECT * FROM judgements WHERE event > ? AND event <= ?", span):
                judged[event][text] = Judgement(*had)
        return [Event(*row) for row in ((*row, judged[row[0]]) for row in head)]

    # ---- inside ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock, self._words():
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock, self._words(), self._transaction():
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _words(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise DataError(
                f"{self.path}: the project could not be read or written ({first_line(error)}); what was acknowledged "
                "is kept. Check the disk and the permissions of file and folder, or choose another {project}",
                param="project",
            ) from error


def is_sqlite(path: Path) -> bool:
    """Whether a file is some SQLite database."""
    with path.open("rb") as file:
        return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def to_bytes(text: str) -> bytes:
    """UTF-8 in which half characters, which a JSON file can hold, survive."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """What to_bytes was given."""
    return data.decode("utf-8", "surrogatepass")
