"""A folder of files as one job's input, and how many rows there are about in each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from strays.errors import DataError
from strays.tables.read import format_of
from strays.tables.source import GZIP_MAGIC

# How much of a file of lines tells how long its lines are.
SAMPLE = 2**20


@dataclass(frozen=True)
class InputFile:
    """A file of a job: its path, and its name within the job (in a folder the relative path, with slashes).

    >>> _ = Path("texts.csv").write_text("text")
    >>> file = find_files("texts.csv").files[0]
    >>> file.format, file.state()[0]
    ('csv', 4)
    """

    name: str
    path: str
    format: str

    def state(self) -> tuple[int, int]:
        """Size in bytes and time of the last change: while both stay, the file counts as the same."""
        try:
            stat = Path(self.path).stat()
        except OSError as error:
            raise DataError(f"{self.path}: is gone ({error.strerror}); put it back") from error
        return stat.st_size, stat.st_mtime_ns

    def about_rows(self) -> int | None:
        """How many rows there are, from parquet's own count or from the first lines; None where only reading tells."""
        try:
            if self.format == "parquet":
                return int(pq.read_metadata(self.path).num_rows)
            with Path(self.path).open("rb") as file:
                sample = file.read(SAMPLE)
        except (OSError, pa.ArrowException):
            return None  # whatever is wrong with it, reading will tell
        lines = sample.count(b"\n")
        if sample.startswith(GZIP_MAGIC) or not lines:
            return None
        return round(lines * Path(self.path).stat().st_size / len(sample))


@dataclass(frozen=True)
class InputFiles:
    """The files of a job in order, and the names of those beside them that are of no known format.

    >>> for name in ("b.jsonl", "a.csv", "notes.md"):
    ...     Path(name).touch()
    >>> found = find_files(".")
    >>> [file.name for file in found.files], found.ignored
    (['a.csv', 'b.jsonl'], ['notes.md'])
    """

    files: list[InputFile]
    ignored: list[str]


def find_files(path: str, format: str | None = None) -> InputFiles:
    """A file by itself, or all files of known formats under a folder, sorted by name.

    Names that start with a dot or an underscore are passed over, as other programs write them beside their data. With a
    format given, every file is read as that.
    """
    if not Path(path).exists():
        raise DataError(f"{path}: no such file or folder")
    if not Path(path).is_dir():
        return InputFiles([InputFile(Path(path).name, path, format or format_of(path))], [])
    found, ignored = [], []
    for folder, inner, names in os.walk(path):
        inner[:] = [name for name in inner if not name.startswith((".", "_"))]
        for name in names:
            if name.startswith((".", "_")):
                continue
            whole = Path(folder, name)
            inside = whole.relative_to(path).as_posix()
            try:
                found.append(InputFile(inside, str(whole), format or format_of(name)))
            except DataError:
                ignored.append(inside)
    if not found:
        raise DataError(f"{path}: no file in this folder ends in .csv, .tsv, .jsonl, .parquet or .txt (or .gz)")
    return InputFiles(sorted(found, key=lambda file: file.name), sorted(ignored))
