"""The manifest of a scoring job: what was asked, and which chunks of rows are done.

A line is on the disk before the next chunk begins, and after what it speaks of. There is no time or place in it, so the
same job writes the same manifest, however often it was stopped. A process that works on a job holds a lock on its
manifest. What has the name of a manifest and is none is never written to.
"""

from __future__ import annotations

import os
import shutil
import warnings
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

from strays.errors import DataError, StraysWarning, UsageError
from strays.files import append, lock, open_own, replace_file, sync, sync_folder
from strays.jobs.score.chunks import DoneChunk, Key, ScoredChunk, WrittenChunk
from strays.jobs.score.entries import (
    FORMAT_VERSION,
    Entries,
    KeptScores,
    chunk_line,
    is_first_part,
    read_entries,
    to_line,
)
from strays.jobs.score.part_files import PartFiles
from strays.model.scores import RawScores

# Names that start with an underscore are not data to those who read a folder of parts: pandas, Arrow, Spark.
NAME = "_manifest.jsonl"
# Scores of chunks whose rows are not written yet (RawScores.to_bytes), one chunk after another.
SCORES = "_scores.f64"
# Where rows are kept while they are sorted.
SORTING = "_sorting"
# Of a manifest that replaced one of an earlier version: the digest of that.
UPGRADED_FROM = "upgraded_from"
# What messages call the entries of the header that are no parameters, and the parameters that messages name.
IN_WORDS = {
    "strays_version": "the strays version",
    "model": "the model, {cascade} or {recall} (their hash)",
    "encoder": "the encoder",
    "threshold": "the threshold",
}
PARAMS = ("cascade", "recall", "text_column", "delimiter", "out_format", "safe_cells", "part_rows", "out", "restart")


class Manifest:
    """An open manifest.

    Opening one locks and reads it, and compares the job that it was written for; `begin` makes it this run's.

    `scores` and `parts` are the chunks done; after `begin`, those whose results are still there. `missing` are the
    parts that were gone or not as they were written. `unproven` says that parts may be there that it does not list: it
    was damaged, or written by an earlier version.
    """

    def __init__(self, folder: Path, header: dict[str, Any], *, restart: bool = False) -> None:
        self.path, self.folder, self.files = folder / NAME, folder, PartFiles(folder)
        self.scores: dict[Key, KeptScores] = {}
        self.parts: dict[Key, WrittenChunk] = {}
        self.missing: list[str] = []
        self._last_part: WrittenChunk | None = None
        self._header, self._restart = {"strays_job": FORMAT_VERSION} | header, restart
        self._file = self._open()
        try:
            data = self._file.read()
            # A process that was killed before it wrote the first line, or in the middle of it, has done nothing yet.
            begun = not is_first_part(data)
            self._found = read_entries(data, self.path) if begun else Entries({}, [], [], 0, cut_off=False)
            if not restart:
                self._require_same_job()
            for done in self._found.done:
                self._count(done)
        except BaseException:
            self._file.close()
            raise

    @property
    def damaged(self) -> bool:
        """Whether lines were lost."""
        return bool(self._found.damaged) or self._found.cut_off

    @property
    def unproven(self) -> bool:
        """Whether there may be parts of this job that are not listed."""
        return self.damaged or self._is_upgraded

    @property
    def _is_upgraded(self) -> bool:
        return UPGRADED_FROM in self._found.header

    def _open(self) -> IO[bytes]:
        try:
            file = open_own(self.path)
        except OSError as error:
            raise DataError(
                f"{self.path}: could not be written ({error.strerror}); choose another {{out}}", param="out"
            ) from error
        # The one that was opened may have been replaced since, by a process that repaired it.
        if not lock(file) or not os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
            file.close()
            raise UsageError(
                f"{self.folder}: another process is writing this output; wait for it, or choose another {{out}}",
                param="out",
            )
        return file

    def _require_same_job(self) -> None:
        for name, was in self._found.header.items():
            now = self._header.get(name)
            if was != now and name != UPGRADED_FROM:
                raise UsageError(
                    f"{self.path}: the earlier run had {IN_WORDS.get(name, f'{{{name}}}')} {was}, this one has "
                    f"{now}; all rows must be scored alike. Run it as before to resume, choose another "
                    "{out}, or discard the earlier run with {restart}",
                    param=PARAMS,
                )

    def begin(self) -> None:
        """Remove what a stopped run left, and start anew or go on: from here on this run writes to the folder."""
        found = self._found
        if self._restart:
            self._discard()
        elif found.damaged:
            self._repair()
        else:
            self._file.seek(found.whole)
            self._file.truncate()
        if self._restart or not found.header:
            self._put(to_line(self._header))
            sync_folder(self.folder)
        self._drop_what_is_gone()
        self.files.clean()

    def _discard(self) -> None:
        self._drop_what_is_gone()
        for part in self.parts.values():
            (self.folder / part.out).unlink(missing_ok=True)
        (self.folder / SCORES).unlink(missing_ok=True)
        self.scores, self.parts, self.missing = {}, {}, []
        self._file.seek(0)
        self._file.truncate()

    def _repair(self) -> None:
        """Write the manifest again without the lines that are damaged; what they spoke of is done again."""
        listed = ", ".join(map(str, self._found.damaged[:5]))
        words = f"{self.path}: is damaged in line {listed}; what it said there is not known, and is done again"
        warnings.warn(StraysWarning(words), stacklevel=2)
        with replace_file(self.path) as file:
            file.write(to_line(self._found.header))
            file.writelines(map(chunk_line, self._found.done))
        self._file.close()
        self._file = self._open()
        self._file.seek(0, os.SEEK_END)

    def _count(self, done: DoneChunk) -> None:
        if isinstance(done, WrittenChunk):
            self.parts[done.key] = done
        elif isinstance(done, KeptScores):
            self.scores[done.key] = done

    def _drop_what_is_gone(self) -> None:
        kept: list[tuple[Path, Path]] = []
        for key, part in list(self.parts.items()):
            if self.files.is_as_written(part) or self.files.restore(part):
                continue
            if changed := self.files.set_aside(part):
                kept.append((self.folder / part.out, changed))
            self.missing.append(part.out)
            del self.parts[key]
        for was, now in kept:
            words = f"{was}: was changed since it was written; it is kept as {now.name}, and its rows are written again"
            warnings.warn(StraysWarning(words), stacklevel=2)
        for key, scores in list(self.scores.items()):
            if zlib.crc32(self._kept_bytes(scores)) != scores.crc32:
                del self.scores[key]
        end = max((scores.at + scores.bytes for scores in self.scores.values()), default=0)
        if (self.folder / SCORES).exists():
            os.truncate(self.folder / SCORES, end)

    def add(self, chunk: DoneChunk) -> None:
        """Record that a chunk is done; all is on the disk then.

        The scores of a chunk whose rows are not written yet are kept. A part gets its name.
        """
        done = self._keep_scores(chunk) if isinstance(chunk, ScoredChunk) else chunk
        if isinstance(done, WrittenChunk):
            self.files.require_free(done, same_rows_will_do=self._is_upgraded)
            self._last_part = done
        self._put(chunk_line(done))
        if isinstance(done, WrittenChunk):
            self.files.place(done)
        self._count(done)

    def tidy(self) -> None:
        """Remove what this run wrote and did not record. A part that it was stopped at gets its name, if recorded."""
        if self._last_part and self._ends_with(chunk_line(self._last_part)):
            self.files.restore(self._last_part)
        self.files.clean()

    def _ends_with(self, line: bytes) -> bool:
        self._file.seek(max(self._file.seek(0, os.SEEK_END) - len(line), 0))
        return self._file.read() == line

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
        """Delete the manifest, its scores and, if nothing else is in it, their folder."""
        (self.folder / SCORES).unlink(missing_ok=True)
        shutil.rmtree(self.folder / SORTING, ignore_errors=True)
        self.path.unlink(missing_ok=True)
        self._file.close()
        with suppress(OSError):
            self.folder.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _put(self, line: bytes) -> None:
        at, left = self._file.tell(), line
        try:
            while left:
                left = left[self._file.write(left) :]
            sync(self._file)
        except OSError:
            with suppress(OSError):  # half a line would stand in the way of the next
                os.ftruncate(self._file.fileno(), at)
                self._file.seek(at)
            raise
