"""Damaged and hostile projects of `strays review`: single flipped bits, cuts, lost blocks, odd rows and settings.

    python -m benchmarks.attacks.projects --n 3000

A project that opens after a bit was flipped must hold what the sound one does: texts, labels, verdicts and settings.
A project that somebody changed on purpose, with its check sums made new, must be refused with a clear error or work.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.attacks import runner
from strays.apps.review.desk import Desk
from strays.apps.review.export import write_labels
from strays.apps.review.history import Judgement
from strays.apps.review.learner import Learner
from strays.apps.review.open_project import last_port
from strays.apps.review.store import Entry, LabelStore

N_TEXTS, N_VERDICTS = 400, 60
ODD = ["NULL", "-1", "9e999", "5", "'x'", "''", "x'ff00'", "'[]'", "'{}'", "'[1e999]'", "'null'", "'\"\ud800\"'", "''"]
COLUMNS = {
    "settings": ["value", "name"],
    "texts": ["text", "digest", "n_rows", "rows", "ids", "given", "known", "id"],
    "events": ["verdict", "who", "client", "at", "undoes", "id"],
    "judgements": ["p_value", "anomaly_score", "why", "text", "event"],
}
OBJECTS = [
    "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM texts; END",
    "CREATE VIEW v AS SELECT * FROM texts",
    "CREATE TABLE more (x)",
    "DROP TABLE judgements",
    "DROP TABLE events",
    "ALTER TABLE texts DROP COLUMN given",
    "ALTER TABLE events RENAME COLUMN who TO whom",
]


class Lengths:
    """An encoder that needs no files."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """How long texts are, in letters and words."""
        return np.array([[len(text), len(text.split())] for text in texts], dtype=np.float32)


class Projects(runner.Attack):
    """Opens a project, reads all of it, ranks its texts, takes a verdict, and writes the labels."""

    name = "projects"
    allowance = 300_000_000

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__(root, seed)
        self.sound = root / "sound.strays"
        if not self.sound.exists():
            _make(self.sound)
        self.expected = _contents(self.sound)
        self.only_damage = False

    def kinds(self) -> list[str]:
        """Most cases are single bits: that is the promise."""
        return ["one bit"] * 6 + ["block of zeros", "cut off", "odd value", "odd object"]

    def make(self, kind: str, rng: np.random.Generator, folder: Path) -> str:
        """A project with one thing wrong."""
        path = folder / "pile.strays"
        shutil.copyfile(self.sound, path)
        data = bytearray(path.read_bytes())
        self.only_damage = kind in ("one bit", "block of zeros", "cut off")
        if kind == "one bit":
            at, bit = int(rng.integers(len(data))), int(rng.integers(8))
            data[at] ^= 1 << bit
            path.write_bytes(data)
            return f"bit {bit} of byte {at}"
        if kind == "block of zeros":
            at = int(rng.integers(len(data)))
            size = int(rng.choice([16, 512, 4096]))
            data[at : at + size] = bytes(len(data[at : at + size]))
            path.write_bytes(data)
            return f"{size} bytes from {at}"
        if kind == "cut off":
            size = int(rng.integers(1, len(data)))
            path.write_bytes(data[:size])
            return f"{size} bytes are left"
        table = str(rng.choice(list(COLUMNS)))
        column, value = str(rng.choice(COLUMNS[table])), str(rng.choice(ODD))
        statement = f"UPDATE {table} SET {column} = {value} WHERE rowid % 50 = 3"
        if table in ("settings", "judgements"):
            statement = statement.replace("rowid % 50 = 3", "name = 'encoder'" if table == "settings" else "event = 7")
        statement = str(rng.choice(OBJECTS)) if kind == "odd object" else statement
        db = sqlite3.connect(path)
        try:
            # Of the first format, so that its sums are made anew as whoever changed it would.
            for one in (statement.encode("utf-8", "replace").decode(), "DROP TABLE sums", "PRAGMA user_version = 1"):
                db.execute(one)
            db.commit()
        except sqlite3.Error as error:
            return f"refused by SQLite: {statement} ({error})"
        finally:
            db.close()
        return statement

    def use(self, folder: Path) -> None:
        """What the desk does with a project, from its port to its labels."""
        path = folder / "pile.strays"
        last_port(str(path), None)
        found = _contents(path)
        if self.only_damage and found != self.expected:
            raise runner.WrongResultError("another project than was written opened without a complaint")
        store = LabelStore(path)
        try:
            texts = store.texts()
            words = [entry.text for entry in texts.values()]
            desk = Desk(store, texts, Learner(words, Lengths().encode(words), Lengths(), "centroid"))
            desk.judge([next(iter(texts))], "anomaly", "eve", "tab")
            desk.undo("eve", "tab")
            for format_ in ("csv", "jsonl"):
                write_labels(desk.snapshot, str(folder / f"labels.{format_}"), what="all", format=format_)
        finally:
            store.close()


def _make(path: Path) -> None:
    store = LabelStore(path)
    rng = np.random.default_rng(0)
    store.put_texts(
        Entry(f"text number {i} " + "word " * int(rng.integers(1, 30)), 1 + i % 3, (i,), ids=(f"k{i}",))
        for i in range(1, N_TEXTS + 1)
    )
    store.set(encoder={"name": "default"}, fingerprint="0" * 64, detector="auto", file="pile.csv", port=8000)
    for i in range(1, N_VERDICTS + 1):
        judged = {i: Judgement(float(rng.random()), float(rng.random()), "odd")}
        store.commit_verdict(judged, str(rng.choice(["normal", "anomaly", "skip"])), "ada", "tab")
        if i % 7 == 0:
            store.commit_undo("ada", "tab")
    store.close()


def _contents(path: Path) -> object:
    store = LabelStore(path)
    try:
        return store.settings(), store.texts(), store.events()
    finally:
        store.close()


if __name__ == "__main__":
    runner.main(Projects)
