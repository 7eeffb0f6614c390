"""The files of parts in the output folder of a job, and the proof that they are the job's own.

A part is written to a folder aside (UNFINISHED), recorded in the manifest with its digest, and only then moved to its
name. So what has the name of a part and the digest in the manifest is ours, and nothing else is: it is not overwritten,
and not deleted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from strays.errors import DataError
from strays.files import remove_unfinished, sha256, sync_folder
from strays.jobs.score.chunks import WrittenChunk
from strays.jobs.score.rows import SCORE_FIELDS
from strays.tables import OUTPUT_FORMATS, open_table

# Where parts are until they are recorded.
UNFINISHED = "_unfinished"
# What tells the parts of one file apart in their names.
NUMBER = re.compile(rf"-(\d{{5,}})\.(?:{'|'.join(OUTPUT_FORMATS)})$")


def part_name(stem: str, number: int, format: str) -> str:
    """The name of a part: the `number`-th of the file that the stem is named after."""
    return f"{stem}-{number:05}.{format}"


def path_aside(folder: Path, name: str) -> Path:
    """Where a part is until it is recorded."""
    return folder / UNFINISHED / name


@dataclass(frozen=True)
class PartFiles:
    """The parts in an output folder."""

    folder: Path

    def is_as_written(self, part: WrittenChunk) -> bool:
        """Whether a part is there, byte for byte."""
        return _has_digest(self.folder / part.out, part)

    def require_free(self, part: WrittenChunk, *, same_rows_will_do: bool = False) -> None:
        """Raise if something else has the name of a part.

        `same_rows_will_do`: a file with the same rows is an earlier writing of the part, which makes room for it.
        """
        path = self.folder / part.out
        if not os.path.lexists(path) or self.is_as_written(part):
            return
        if not same_rows_will_do or not _hold_same_rows(path_aside(self.folder, part.out), path):
            raise taken(path)
        path.unlink()

    def place(self, part: WrittenChunk) -> None:
        """Move a part that is recorded from aside to its name."""
        aside, path = path_aside(self.folder, part.out), self.folder / part.out
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _move(aside, path)
        except FileExistsError as error:
            if not self.is_as_written(part):
                raise taken(path) from error
            aside.unlink()

    def restore(self, part: WrittenChunk) -> bool:
        """Move a recorded part to its name, where a process was killed before it did so. False if it is not there."""
        if not _has_digest(path_aside(self.folder, part.out), part) or os.path.lexists(self.folder / part.out):
            return False
        self.place(part)
        return True

    def set_aside(self, part: WrittenChunk) -> Path | None:
        """Rename what has the name of a part and is not as it was written, so that nothing of it is lost."""
        path = self.folder / part.out
        if not os.path.lexists(path):
            return None
        kept = path.with_name(f"_{path.name}.changed")
        n = 1
        while os.path.lexists(kept):
            n += 1
            kept = path.with_name(f"_{path.name}.changed-{n}")
        path.rename(kept)
        return kept

    def clean(self) -> None:
        """Remove what a stopped run wrote and did not record. Call it under the lock, where nobody else writes."""
        remove_unfinished(self.folder)
        aside = self.folder / UNFINISHED
        for path in aside.rglob("*"):
            if NUMBER.search(path.name) and not path.is_dir():
                with suppress(OSError):
                    path.unlink()
        folders = sorted((path for path in aside.rglob("*") if path.is_dir()), reverse=True)
        for path in (*folders, aside):
            with suppress(OSError):
                path.rmdir()

    def in_the_way(self, listed: set[str], numbers: dict[str, range]) -> Iterator[Path]:
        """Files with the names of parts with these numbers, by stem, that are not listed."""
        for parent in sorted({(self.folder / stem).parent for stem in numbers}):
            for path in sorted(parent.glob("*")):
                name = path.relative_to(self.folder).as_posix()
                match = NUMBER.search(name)
                stem, number = (name[: match.start()], int(match[1])) if match else ("", -1)
                is_name = name == part_name(stem, number, path.suffix[1:])  # the number has no more zeros than it needs
                if is_name and number in numbers.get(stem, ()) and name not in listed:
                    yield path


def taken(path: Path) -> DataError:
    """The error for a file that is not ours and has the name of a part."""
    return DataError(
        f"{path}: is in the way: a part would get this name, and the file is not written by this job. Move it away, or "
        "choose another {out}",
        param="out",
    )


def _move(path: Path, target: Path) -> None:
    """Rename a file; FileExistsError, and nothing done, where anything has the name already."""
    try:
        os.link(path, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):  # a file system without hard links
        if os.path.lexists(target):
            raise FileExistsError(str(target)) from None
        path.rename(target)
    else:
        sync_folder(target.parent)
        path.unlink()


def _has_digest(path: Path, part: WrittenChunk) -> bool:
    try:
        return path.stat().st_size == part.bytes and sha256(path) == part.sha256
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False
    except OSError as error:  # it may be ours or not: it is neither written over nor moved aside
        raise DataError(f"{path}: could not be read, to compare it ({error.strerror}); nothing was changed") from error


def _hold_same_rows(one: Path, other: Path) -> bool:
    """Whether two parts hold the same rows, whatever their scores."""
    added = [field.name for field in SCORE_FIELDS]
    try:
        tables = [open_table(str(path)).read() for path in (one, other)]
        without = [table.drop_columns(added) for table in tables]
    except (DataError, KeyError, OSError):
        return False
    return bool(without[0].equals(without[1]))
