"""The project file: texts, the labels they came with, and every verdict and undo ever given. Nothing is deleted.

What `commit_verdict` and `commit_undo` have returned from is on the disk. Several processes may use one file at once:
each reads the others' events by their rising numbers.
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

from strays.apps.review import sums
from strays.apps.review.database import connect, errors_in_words, require_undamaged, transaction
from strays.apps.review.history import Event, Judgement
from strays.apps.review.settings import parse_settings
from strays.encoders.settings import whole_number
from strays.errors import UsageError

VERDICTS = ("normal", "anomaly", "skip")
EVENTS_AFTER = "SELECT id, verdict, who, client, at, undoes FROM events WHERE id > ? ORDER BY id"
JUDGEMENTS_BETWEEN = "SELECT event, text, p_value, anomaly_score, why FROM judgements WHERE event > ? AND event <= ?"
# Row numbers kept of a text that many rows have.
MOST_ROWS = 20


@dataclass(frozen=True)
class Entry:
    """A distinct text, how many rows have it, the first of these and what the file calls them, and its given label."""

    text: str
    n_rows: int
    rows: tuple[int, ...]
    given: str | None = None
    known: bool = False
    ids: tuple[str | None, ...] = ()


class LabelStore:
    """A project file, made where there is none. Safe to use from several threads and processes.

    It holds all texts: a new one is its user's alone, unless another `mode` is given.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> store = LabelStore(f"{folder.name}/pile.strays")
    >>> store.put_texts([Entry("a hen", 1, (1,)), Entry("a quark", 1, (2,))])
    >>> hen, quark = store.texts()
    >>> store.commit_verdict({quark: Judgement(p_value=0.01)}, "anomaly", "ada", "tab")
    1
    >>> [(event.verdict, event.who) for event in store.events()]
    [('anomaly', 'ada')]
    >>> store.close()
    >>> folder.cleanup()
    """

    def __init__(self, path: str | Path, mode: int = 0o600, *, check: bool = True) -> None:
        self.path = Path(path)
        self._db = connect(self.path, mode)
        if check:
            try:
                require_undamaged(self._db, self.path)
            except BaseException:
                self._db.close()
                raise
        self._lock = threading.Lock()
        self._reader = connect(self.path)  # of its own, so that who reads does not wait for a commit
        self._reader_lock = threading.Lock()

    def close(self) -> None:
        """Give the file back; what was acknowledged is in it already."""
        with self._lock, self._reader_lock:
            self._reader.close()
            self._db.close()

    def checkpoint(self) -> None:
        """Bring what is in the write-ahead log into the file itself, as far as nobody is using it."""
        with self._lock, errors_in_words(self.path):
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    # ---- settings and texts ------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """What the project was set up with: encoder, detector, name of the file."""
        with self._reading() as db:
            return parse_settings(db.execute("SELECT name, value FROM settings"))

    def set(self, **values: Any) -> None:
        """Keep some settings."""
        with self._writing() as db:
            _put_settings(db, values)

    def put_texts(self, entries: Iterable[Entry]) -> None:
        """What the file holds now. Texts that are gone from it are kept; labels once given stay."""
        rows = [
            (
                (data := to_bytes(e.text)),
                hashlib.sha256(data).digest(),
                e.n_rows,
                json.dumps(e.rows),
                _ids(e),
                e.given,
                e.known,
            )
            for e in entries
        ]
        content = hashlib.sha256(repr([row[1:] for row in rows]).encode()).hexdigest()
        with self._writing() as db:
            if db.execute("SELECT value FROM settings WHERE name = 'content'").fetchone() == (f'"{content}"',):
                return
            db.execute("UPDATE texts SET n_rows = 0, rows = '[]', ids = NULL")
            db.executemany(
                "INSERT INTO texts (text, digest, n_rows, rows, ids, given, known) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (digest) DO UPDATE SET n_rows = excluded.n_rows, rows = excluded.rows, "
                "ids = excluded.ids, given = coalesce(excluded.given, given), known = max(known, excluded.known)",
                rows,
            )
            sums.renew(db, "texts")
            _put_settings(db, {"content": content})

    def texts(self) -> dict[int, Entry]:
        """The texts to show, by id, in the order of the file; known ones that no row has come last."""
        with self._reading() as db:
            found = db.execute("SELECT id, text, n_rows, rows, given, known, ids FROM texts WHERE n_rows OR known")
            entries = {id_: _entry(id_, *values) for id_, *values in found}
        return dict(sorted(entries.items(), key=lambda item: (item[1].n_rows == 0, item[1].rows, item[0])))

    # ---- events ------------------------------------------------------------------------------------------------------

    def commit_verdict(self, judgements: Mapping[int, Judgement], verdict: str, who: str, client: str) -> int:
        """Put a verdict on some texts on the disk; gives the event's number."""
        if verdict not in VERDICTS:
            raise UsageError(f"{{verdict}} is {verdict!r:.40}; expected one of {', '.join(VERDICTS)}", param="verdict")
        with self._writing() as db:
            event = _put_event(db, verdict, who, client, None)
            rows = [(event, text, j.p_value, j.anomaly_score, j.why) for text, j in judgements.items()]
            db.executemany("INSERT INTO judgements VALUES (?, ?, ?, ?, ?)", rows)
            sums.add(db, "judgements", "event = ?", event)
        return event

    def commit_undo(self, who: str, client: str) -> int | None:
        """Undo the caller's last action that is not undone yet; gives the number of the event that was undone.

        A client that has a name is one person's, whatever that person is called; else the name tells.
        """
        with self._writing() as db:
            last = db.execute(
                "SELECT max(id) FROM events AS e WHERE (who = ? OR client != '') AND client = ? AND undoes IS NULL "
                "AND NOT EXISTS (SELECT 1 FROM events WHERE undoes = e.id)",
                (who, client),
            ).fetchone()[0]
            if last is not None:
                _put_event(db, "undo", who, client, last)
        return last

    def last_event(self) -> int:
        """The number of the last event, 0 where there is none; also of another process."""
        with self._reading() as db:
            return int(db.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()[0])

    def events(self, after: int = 0) -> list[Event]:
        """All events with higher numbers than this, in order; also those of other processes."""
        with self._reading() as db:
            head = db.execute(EVENTS_AFTER, (after,)).fetchall()
            if not head:
                return []
            judged: dict[int, dict[int, Judgement]] = {row[0]: {} for row in head}
            # Nothing that was written between the two questions.
            span = (after, head[-1][0])
            for event, text, *had in db.execute(JUDGEMENTS_BETWEEN, span):
                judged[event][text] = _judgement(text, *had)
            return [_event(Event(*(*row, judged[row[0]]))) for row in head]

    # ---- inside ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._reader_lock, errors_in_words(self.path, rows=True):
            yield self._reader

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, errors_in_words(self.path), transaction(self._db):
            yield self._db


def _put_settings(db: sqlite3.Connection, values: dict[str, Any]) -> None:
    rows = [(name, json.dumps(value)) for name, value in values.items()]
    db.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", rows)
    sums.renew(db, "settings")


def _put_event(db: sqlite3.Connection, verdict: str, who: str, client: str, undoes: int | None) -> int:
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    cursor = db.execute(
        "INSERT INTO events (verdict, who, client, at, undoes) VALUES (?, ?, ?, ?, ?)",
        (verdict, who, client, at, undoes),
    )
    event = int(cursor.lastrowid or 0)
    sums.add(db, "events", "id = ?", event)
    return event


def _entry(id_: Any, data: bytes, n_rows: Any, rows: str, given: Any, known: Any, ids: str | None) -> Entry:
    """A text of the project; ValueError where a value is none that is written."""
    at, called = json.loads(rows), json.loads(ids or "[]")
    _require(whole_number(id_) and whole_number(n_rows), f"text {id_!r:.60} has {n_rows!r:.60} rows")
    _require(isinstance(at, list) and all(map(whole_number, at)), f"text {id_} is in rows {at!r:.60}")
    strings = isinstance(called, list) and all(isinstance(name, str | None) for name in called)
    _require(strings, f"rows of text {id_} are called {called!r:.60}")
    _require(given in (None, "normal", "anomaly") and known in (0, 1), f"text {id_} has the label {given!r:.60}")
    return Entry(to_text(data), n_rows, tuple(at), given, bool(known), tuple(called))


def _event(event: Event) -> Event:
    is_undo = event.undoes is not None
    verdicts = ("undo",) if is_undo else VERDICTS
    _require(event.verdict in verdicts, f"event {event.id} is {event.verdict!r:.60}")
    _require(
        not is_undo or whole_number(event.undoes, 1, event.id - 1), f"event {event.id} undoes {event.undoes!r:.60}"
    )
    words = event.who, event.client, event.at
    _require(all(isinstance(word, str) for word in words), f"event {event.id} is by {words!r:.60}")
    return event


def _judgement(text: Any, p_value: Any, anomaly_score: Any, why: Any) -> Judgement:
    numbers = all(isinstance(number, float | None) for number in (p_value, anomaly_score))
    _require(
        numbers and isinstance(why, str | None) and whole_number(text), f"text {text!r:.60} was judged by {why!r:.60}"
    )
    return Judgement(p_value, anomaly_score, why)


def _require(sound: bool, otherwise: str) -> None:
    if not sound:
        raise ValueError(otherwise)


def _ids(entry: Entry) -> str | None:
    return json.dumps(entry.ids) if entry.ids else None


def to_bytes(text: str) -> bytes:
    """UTF-8 in which half characters, which a JSON file can hold, survive."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """What to_bytes was given."""
    return data.decode("utf-8", "surrogatepass")
