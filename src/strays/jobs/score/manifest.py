"""The manifest of a scoring job: what was asked, then one line for every chunk of rows that is done.

A line is on the disk before the next chunk begins, and after what it speaks of. An incomplete line at the end, from a
process that was stopped while writing it, is ignored. There is no time or place in it, so the same job writes the same
manifest, however often it was stopped. A process that works on a job holds a lock on its manifest.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self

from strays.errors import DataError, UsageError
from strays.files import append, lock, sync
from strays.jobs.score.chunks import DoneChunk, Key, ScoredChunk, WrittenChunk
from strays.model.scores import RawScores

NAME = "manifest.jsonl"
# Scores of chunks whose rows are not written yet (RawScores.to_bytes), one chunk after another.
SCORES = ".scores.f64"
# Where rows are kept while they are sorted.
SORTING = "sorting"
FORMAT_VERSION = 2
# What messages call the entries of the header that are no parameters, and the parameters that messages name.
IN_WORDS = {
    "strays_version": "the strays version",
    "model": "the model, {cascade} or {recall} (their hash)",
    "threshold": "the threshold",
}
PARAMS = ("cascade", "recall", "text_column", "delimiter", "out_format", "safe_cells", "part_rows", "out", "restart")


@dataclass(frozen=True)
class KeptScores(DoneChunk):
    """A chunk whose scores are kept, so many bytes from one on in the file of scores."""

    at: int
    bytes: int
    crc32: int


KINDS = {"scores": KeptScores, "part": WrittenChunk}


class Manifest:
    """An open manifest.

    `scores` and `parts` are the chunks done whose results are still there, `states` the files' sizes and times of
    change when they were last read, `missing` the parts that are gone or of another size.
    """

    def __init__(self, path: Path, header: dict[str, Any], *, restart: bool = False) -> None:
        self.path, self.folder = path, path.parent
        self.scores: dict[Key, KeptScores] = {}
        self.parts: dict[Key, WrittenChunk] = {}
        self.states: dict[str, tuple[int, int]] = {}
        self.missing: list[str] = []
        try:
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
        except OSError as error:
            raise DataError(
                f"{path}: could not be written ({error.strerror}); choose another {{out}}", param="out"
            ) from error
        try:
            if not lock(self._file):
                raise UsageError(
                    f"{path.parent}: another process is writing this output; wait for it, or choose another {{out}}",
                    param="out",
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
            raise self._unusable("is not a manifest of strays; move it away")
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
                    f"{self.path}: the earlier run had {IN_WORDS.get(name, f'{{{name}}}')} {was}, this one has "
                    f"{header.get(name)}; all rows must be scored alike. Run it as before to resume, choose another "
                    "{out}, or discard the earlier run with {restart}",
                    param=PARAMS,
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
            raise self._unusable("is damaged; remove the folder", number)
        return entry

    def _read(self, entries: list[dict[str, Any]], header: dict[str, Any]) -> Iterator[DoneChunk]:
        if header["strays_job"] != FORMAT_VERSION:
            raise self._unusable(
                f"was written in format {header['strays_job']} by strays {header.get('strays_version')}; this version "
                f"reads format {FORMAT_VERSION}. Resume with that version"
            )
        for number, entry in enumerate(entries, 2):
            try:
                done = KINDS[entry.pop("kind")](**entry)
            except (KeyError, TypeError) as error:
                raise self._unusable(f"is not as strays writes it ({error}); remove the folder", number) from error
            way = PurePosixPath(done.out if isinstance(done, WrittenChunk) else "")
            if way.is_absolute() or ".." in way.parts:
                raise self._unusable(f"{way} is outside its folder; remove the folder", number)
            yield done

    def _unusable(self, why: str, line: int | None = None) -> DataError:
        place = f"{self.path}, line {line}" if line else f"{self.path}"
        return DataError(f"{place}: {why}, or choose another {{out}}", param="out")

    def _count(self, done: DoneChunk) -> None:
        self.states[done.file] = (done.size, done.mtime_ns)
        if isinstance(done, WrittenChunk):
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
            if zlib.crc32(self._kept_bytes(kept)) != kept.crc32:
                del self.scores[key]
        end = max((kept.at + kept.bytes for kept in self.scores.values()), default=0)
        if (self.folder / SCORES).exists():
            os.truncate(self.folder / SCORES, end)

    def _remove_results(self, done: list[DoneChunk]) -> None:
        for entry in done:
            if isinstance(entry, WrittenChunk):
                (self.folder / entry.out).unlink(missing_ok=True)
        (self.folder / SCORES).unlink(missing_ok=True)
        shutil.rmtree(self.folder / SORTING, ignore_errors=True)

    def add(self, chunk: DoneChunk) -> None:
        """Record that a chunk is done, and keep its scores if its rows are not written yet; all is on the disk then."""
        done = self._keep_scores(chunk) if isinstance(chunk, ScoredChunk) else chunk
        kind = next(kind for kind, class_ in KINDS.items() if isinstance(done, class_))
        self._put({"kind": kind} | asdict(done))
        self._count(done)

    def _keep_scores(self, chunk: ScoredChunk) -> KeptScores:
        data = chunk.scores.to_bytes()
        at = append(self.folder / SCORES, data)
        return KeptScores(**chunk.facts(), at=at, bytes=len(data), crc32=zlib.crc32(data))

    def read_scores(self, key: Key) -> RawScores:
        """The kept scores of a chunk."""
        kept = self.scores[key]
        return RawScores.from_bytes(self._kept_bytes(kept), kept.rows)

    def _kept_bytes(self, kept: KeptScores) -> bytes:
        with suppress(FileNotFoundError), (self.folder / SCORES).open("rb") as file:
            file.seek(kept.at)
            return file.read(kept.bytes)
        return b""

    def remove(self) -> None:
        """Delete the manifest, its scores and their folder."""
        self._remove_results([])
        self.path.unlink(missing_ok=True)
        self._file.close()
        with suppress(OSError):
            self.folder.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _put(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry).encode() + b"\n"
        while line:
            line = line[self._file.write(line) :]
        sync(self._file)
