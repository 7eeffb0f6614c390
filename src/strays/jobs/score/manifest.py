"""The diary of a scoring job: what was asked, then one line for every chunk of rows that is done.

A line is on the disk before the next chunk begins, and after what it speaks of. Half a line at the end, from a process
that was stopped while writing it, does not count. There is no time or place in it, so that the same job writes the same
diary, however often it was stopped. While a process works on a job it holds a lock on its diary.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self

import numpy as np

from strays.errors import DataError, UsageError
from strays.files import append, lock, sync

NAME = "manifest.jsonl"
# Scores of chunks whose rows are not written yet, as float64, one after another.
SCORES = ".scores.f64"
FORMAT_VERSION = 1
IN_WORDS = {
    "strays_version": "the strays version",
    "model": "the model, --cascade or --recall (their hash)",
    "threshold": "the threshold",
    "text_column": "the text column",
    "out_format": "the output format",
    "safe_cells": "--safe-cells",
    "part_rows": "--part-rows",
}
Key = tuple[str, int]


@dataclass(frozen=True)
class Done:
    """A chunk that is done: rows of a file that had this size and time of change when they were read."""

    file: str
    size: int
    mtime_ns: int
    first_row: int
    rows: int
    last: bool
    digest: str
    without_text: int

    @property
    def key(self) -> Key:
        """What tells a chunk from others."""
        return self.file, self.first_row


@dataclass(frozen=True)
class KeptScores(Done):
    """A chunk whose scores are kept, at a byte of the file of scores."""

    at: int
    crc32: int


@dataclass(frozen=True)
class Part(Done):
    """A chunk that is written, with its scores, to a file of its own."""

    out: str
    bytes: int
    flagged: int
    by_full: int | None = None


KINDS = {"scores": KeptScores, "part": Part}


class Manifest:
    """An open diary.

    `scores` and `parts` are the chunks done whose results are still there, `states` the files' sizes and times of
    change when they were last read, `missing` the parts that are gone or of another size.
    """

    def __init__(self, path: Path, header: dict[str, Any], *, restart: bool = False) -> None:
        self.path, self.folder = path, path.parent
        self.scores: dict[Key, KeptScores] = {}
        self.parts: dict[Key, Part] = {}
        self.states: dict[str, tuple[int, int]] = {}
        self.missing: list[str] = []
        try:
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
        except OSError as error:
            raise DataError(f"{path}: could not be written ({error.strerror}); choose another --out") from error
        try:
            if not lock(self._file):
                raise UsageError(
                    f"{path.parent}: another process is writing this output; wait for it, or choose another --out"
                )
            self._begin(header, restart)
        except BaseException:
            self._file.close()
            raise

    def _begin(self, header: dict[str, Any], restart: bool) -> None:
        data = self._file.read()
        whole = data.rfind(b"\n") + 1
        entries = [self._parsed(number, line) for number, line in enumerate(data[:whole].splitlines(), 1)]
        if entries and entries[0].get("strays_job") is None:
            raise DataError(f"{self.path}: is not a manifest of strays; move it away, or choose another --out")
        done = list(self._read(entries[1:], entries[0])) if entries else []
        if restart:
            self._remove_results(done)
            entries, whole = [], 0
        self._file.seek(whole)
        self._file.truncate()
        if not entries:
            self._put({"strays_job": FORMAT_VERSION} | header)
            return
        for name, was in entries[0].items():
            if name != "strays_job" and was != header.get(name):
                raise UsageError(
                    f"{self.path}: the earlier run had {IN_WORDS.get(name, name)} {was}, this one has "
                    f"{header.get(name)}; expected the same for all rows. Run it as before to go on, choose another "
                    "--out, or throw the earlier run's rows away with --restart"
                )
        for entry in done:
            self._count(entry)
        self._drop_what_is_gone()

    def _parsed(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            raise DataError(f"{self.path}, line {number}: is damaged; choose another --out, or remove the folder")
        return entry

    def _read(self, entries: list[dict[str, Any]], header: dict[str, Any]) -> Iterator[Done]:
        if header["strays_job"] != FORMAT_VERSION:
            raise DataError(
                f"{self.path}: was written in format {header['strays_job']} by strays {header.get('strays_version')}; "
                f"this one reads format {FORMAT_VERSION}. Go on with that version, or choose another --out"
            )
        for number, entry in enumerate(entries, 2):
            try:
                done = KINDS[entry.pop("kind")](**entry)
            except (KeyError, TypeError) as error:
                raise DataError(
                    f"{self.path}, line {number}: is not as strays writes it ({error}); choose another --out"
                ) from error
            way = PurePosixPath(done.out if isinstance(done, Part) else "")
            if way.is_absolute() or ".." in way.parts:
                raise DataError(f"{self.path}, line {number}: {way} is outside its folder; choose another --out")
            yield done

    def _count(self, done: Done) -> None:
        self.states[done.file] = (done.size, done.mtime_ns)
        if isinstance(done, Part):
            self.parts[done.key] = done
        elif isinstance(done, KeptScores):
            self.scores[done.key] = done

    def _drop_what_is_gone(self) -> None:
        for key, part in list(self.parts.items()):
            path = self.folder / part.out
            if not path.is_file() or path.stat().st_size != part.bytes:
                self.missing.append(part.out)
                del self.parts[key]
        for key, kept in list(self.scores.items()):
            if zlib.crc32(self.read_scores(key).tobytes()) != kept.crc32:
                del self.scores[key]
        end = max((kept.at + 8 * kept.rows for kept in self.scores.values()), default=0)
        if (self.folder / SCORES).exists():
            os.truncate(self.folder / SCORES, end)

    def _remove_results(self, done: list[Done]) -> None:
        for entry in done:
            if isinstance(entry, Part):
                (self.folder / entry.out).unlink(missing_ok=True)
        (self.folder / SCORES).unlink(missing_ok=True)

    # ---- going on ----------------------------------------------------------------------------------------------------

    def add(self, done: Done) -> None:
        """Note that a chunk is done; it is on the disk when this returns."""
        kind = next(kind for kind, class_ in KINDS.items() if isinstance(done, class_))
        self._put({"kind": kind} | asdict(done))
        self._count(done)

    def keep_scores(self, chunk: dict[str, Any], scores: np.ndarray) -> None:
        """Keep the scores of a chunk, given by the fields of Done."""
        data = np.ascontiguousarray(scores, dtype="<f8").tobytes()
        at = append(self.folder / SCORES, data)
        self.add(KeptScores(**chunk, at=at, crc32=zlib.crc32(data)))

    def read_scores(self, key: Key) -> np.ndarray:
        """The kept scores of a chunk; fewer of them where the file of scores was cut off."""
        kept = self.scores[key]
        with suppress(FileNotFoundError):
            return np.fromfile(self.folder / SCORES, "<f8", count=kept.rows, offset=kept.at)
        return np.empty(0)

    def close(self, *, remove: bool = False) -> None:
        """Let go of the job; with remove, also of its diary, its scores and their folder."""
        if remove:
            self._remove_results([])
            self.path.unlink(missing_ok=True)
        self._file.close()
        if remove:
            with suppress(OSError):
                self.folder.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry).encode() + b"\n"
        while line:
            line = line[self._file.write(line) :]
        sync(self._file)
