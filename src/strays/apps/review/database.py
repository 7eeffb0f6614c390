"""The project file as a database: one SQLite file in write-ahead mode, created where there is none."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from strays.apps.review import sums
from strays.errors import DataError, StraysError, first_line
from strays.files import create, real_path

# The first format had no sums; a flipped bit must not turn one version into the other.
FORMAT_VERSION, WITHOUT_SUMS = 2, 1
# Marks a SQLite file as ours ("stry").
APPLICATION_ID = 0x73747279
DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_MISMATCH", "SQLITE_FORMAT")
SQLITE_MAGIC = b"SQLite format 3\x00"
BUSY_SECONDS = 20
TABLES = {*sums.COLUMNS, "sums", "sqlite_sequence"}

SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE texts (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,   -- sha256 of the text
    text BLOB NOT NULL,            -- UTF-8; half characters as they are
    n_rows INTEGER NOT NULL,       -- 0: not in the file as it was last read
    rows TEXT NOT NULL,            -- JSON: the first row numbers, counted from 1
    ids TEXT,                      -- JSON: what the file calls these rows; null where it has no column for that
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


def connect(path: Path, mode: int = 0o600) -> sqlite3.Connection:
    """Open a project; what is no project is refused and left as it is. A new one gets the mode, and so does its log.

    SQLite alone opens the file: closing it after a look of our own would drop the POSIX locks that connections of this
    process hold on it, and another process could then remove the log that they write to.
    """
    if path.is_dir():
        raise DataError(f"{path}: is a folder; expected the name of a project file")
    if not path.parent.is_dir():
        raise DataError(
            f"{path}: there is no folder {path.parent}; make it first, or choose another {{project}}", param="project"
        )
    with errors_in_words(path):
        if not path.exists():
            with suppress(FileExistsError):  # another process was faster
                create(real_path(path), mode).close()
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            _prepare(db, path)
        except BaseException:
            db.close()
            raise
        return db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
        there = db.execute("SELECT type, name, tbl_name FROM sqlite_master").fetchall()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
            raise
        raise DataError(
            f"{path}: is not a project of strays review; choose another {{project}}", param="project"
        ) from error
    ours, version = _format(db)
    if there and ours != APPLICATION_ID:
        raise DataError(f"{path}: is a database of something else; choose another {{project}}", param="project")
    # Triggers and views would run what somebody else wrote.
    if any(kind not in ("table", "index") or table not in TABLES for kind, _, table in there):
        raise DataError(
            f"{path}: holds more than a project of strays review does; choose another {{project}}", param="project"
        )
    if version > FORMAT_VERSION:
        raise DataError(
            f"{path}: was written in format {version} by a newer strays; this one reads up to {FORMAT_VERSION}. "
            "Update it: pip install --upgrade strays"
        )
    if there and version not in (WITHOUT_SUMS, FORMAT_VERSION):
        raise damaged_project(path, f"its format is {version!r:.60}")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    with transaction(db):
        if _format(db) == (0, 0):  # else another process was faster
            for statement in SCHEMA.split(";\n"):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            _add_sums(db)
        elif _format(db)[1] == WITHOUT_SUMS:
            _require_sound(db, path)
            if "ids" not in {name for _, name, *_ in db.execute("PRAGMA table_info(texts)")}:
                db.execute("ALTER TABLE texts ADD COLUMN ids TEXT")
            _add_sums(db)


def _require_sound(db: sqlite3.Connection, path: Path) -> None:
    """Raise where a project without sums is damaged, as far as that can be told."""
    if (found := db.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
        raise damaged_project(path, str(found))
    for id_, digest, text in db.execute("SELECT id, digest, text FROM texts"):
        if not isinstance(text, bytes) or hashlib.sha256(text).digest() != digest:
            raise damaged_project(path, f"text {id_!r:.60} is not the one that was written")


def _add_sums(db: sqlite3.Connection) -> None:
    db.execute(sums.SCHEMA)
    sums.renew(db, *sums.COLUMNS)
    db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def require_undamaged(db: sqlite3.Connection, path: Path) -> None:
    """Raise unless a project holds what was written to it."""
    with errors_in_words(path, rows=True):
        db.execute("BEGIN")  # so that what others commit meanwhile is not seen in part
        try:
            found = sums.damaged(db)
        finally:
            db.execute("ROLLBACK")
    if found:
        raise damaged_project(path, found)


def damaged_project(path: Path, why: str) -> DataError:
    """The error for a project that is not as it was written."""
    words = " ".join(why.split())
    return DataError(
        f"{path}: the project is damaged ({words:.300}) and was not opened, since its verdicts could be others than "
        "were given. Put back an earlier copy, or begin anew with another {project}",
        param="project",
    )


def _format(db: sqlite3.Connection) -> tuple[int, int]:
    return tuple(db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; after it, what was written is on the disk."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def errors_in_words(path: Path, *, rows: bool = False) -> Iterator[None]:
    """Say what SQLite's errors mean to the user; where `rows` are read, also that no sense can be made of one."""
    try:
        yield
    except StraysError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        if not rows:
            raise
        raise damaged_project(path, first_line(error)) from error
    except (sqlite3.Error, OSError) as error:
        name = getattr(error, "sqlite_errorname", None)  # a string that is no UTF-8 has none
        if name.startswith(DAMAGED) if name else rows and isinstance(error, sqlite3.Error):
            raise damaged_project(path, first_line(error)) from error
        raise DataError(
            f"{path}: the project could not be read or written ({first_line(error)}); what was acknowledged is kept. "
            "Check the disk and the permissions of file and folder, or choose another {project}",
            param="project",
        ) from error


def is_sqlite(path: Path) -> bool:
    """Whether a file is some SQLite database. Not to be asked about one that this process has open; see `connect`."""
    with path.open("rb") as file:
        return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
