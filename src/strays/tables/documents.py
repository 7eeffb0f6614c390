"""A folder of documents as a table: one file is one text, with its name beside it."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from strays.errors import DataError, NoRowsError, Note
from strays.files import real_path
from strays.tables.encodings import MOST_BYTES, convert, encoding_of
from strays.tables.formats import FOREIGN, ending_of
from strays.tables.lines import Reading, row_table
from strays.tables.source import open_binary
from strays.tables.table import LONGEST_ROW, Table

ENDINGS = ("txt", "md", "markdown", "rst", "text")
SCHEMA = pa.schema([("file", pa.string()), ("text", pa.string())])
MOST_NAMED = 5


@dataclass(frozen=True)
class Documents:
    """The files of a folder that are documents, by their names within it in order, and what was skipped, and why."""

    folder: Path
    names: list[str]
    skipped: dict[str, str]


def state_of(folder: str) -> tuple[int, int]:
    """Size of all files in a folder and time of the last change, with their names: while they stay, so does it."""
    names = visible_files(folder)
    stats = [Path(folder, name).lstat() for name in names]
    # A document that is renamed, or exchanged for another, may keep size and time.
    named = zlib.crc32("\0".join(names).encode("utf-8", "surrogateescape"))
    return sum(stat.st_size for stat in stats), max((stat.st_mtime_ns for stat in stats), default=0) + named


def visible_files(folder: str) -> list[str]:
    """The files in a folder and those below it, by their names within it, sorted.

    Names that start with a dot or an underscore are passed over, as other programs write them beside their data. Links
    to folders are not followed.
    """
    found = []
    for place, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith((".", "_"))]
        found += [Path(place, name).relative_to(folder).as_posix() for name in names if not name.startswith((".", "_"))]
    return sorted(found)


def is_document(name: str) -> bool:
    """Whether a file's name says that it is a text."""
    return ending_of(name) in ENDINGS


def find_documents(folder: str, *, every: bool = False) -> Documents:
    """The documents in a folder: files whose names say so, or every file with text in it."""
    names: list[str] = []
    skipped: dict[str, str] = {}
    damaged: dict[str, str] = {}
    inside = real_path(folder)
    for name in visible_files(folder):
        path = Path(folder, name)
        if not real_path(path).is_relative_to(inside):
            skipped[name] = "a link out of the folder"
        elif not path.is_file():
            skipped[name] = "not a file"
        elif not is_document(name) and (not every or ending_of(name) in FOREIGN):
            skipped[name] = FOREIGN[ending_of(name)].name if ending_of(name) in FOREIGN else "not a text"
        elif (wrong := _what_is_wrong(path)) is None:
            names.append(name)
        elif every and not is_document(name):
            skipped[name] = wrong
        else:
            damaged[name] = wrong
    if damaged:
        raise DataError(
            f"{folder}: {len(damaged):,} of its {len(damaged) + len(names):,} documents cannot be read: "
            f"{_listed(damaged)}. Expected UTF-8 texts of up to {LONGEST_ROW:,} bytes; convert them, or move them away"
        )
    if not names:
        skips = f"; skipped: {_listed(skipped)}" if skipped else ""
        raise NoRowsError(f"{folder}: there is no document in this folder; expected .txt or .md files{skips}")
    return Documents(Path(folder), names, skipped)


def open_documents(found: Documents) -> Table:
    """A row for every document."""
    read = 0

    def rows() -> Iterator[tuple[str, str]]:
        nonlocal read
        for name in found.names:
            try:
                text = _decoded(found.folder / name)
            except (ValueError, OSError, EOFError, zlib.error) as error:
                raise DataError(f"{found.folder / name}: can no longer be read ({error}); put it back") from error
            read += len(text)
            yield name.encode("utf-8", "replace").decode(), text

    def reading() -> Reading:
        nonlocal read
        read = 0
        return Reading(rows(), lambda: read)

    notes = (Note(f"{found.folder}: {_counted(found)}."),)
    table = row_table(str(found.folder), "documents", SCHEMA, reading, lambda block: zip(*block, strict=True))
    return Table(table.name, table.format, table.schema, table.open_batches, notes=notes)


def _counted(found: Documents) -> str:
    skips = f"; skipped: {_listed(found.skipped)}" if found.skipped else ""
    return f"{len(found.names):,} documents, each one text{skips}"


def _listed(files: dict[str, str]) -> str:
    shown = ", ".join(f"{name:.100} ({why})" for name, why in list(files.items())[:MOST_NAMED])
    return f"{shown} and {len(files) - MOST_NAMED:,} more" if len(files) > MOST_NAMED else shown


def _what_is_wrong(path: Path) -> str | None:
    """Why a file is no document, in words."""
    try:
        _decoded(path)
    except UnicodeDecodeError as error:
        return f"not UTF-8: byte 0x{error.object[error.start]:02x}; try {convert('WINDOWS-1252')}"
    except (ValueError, OSError, EOFError, zlib.error) as error:
        return str(getattr(error, "strerror", None) or error)
    return None


def _decoded(path: Path) -> str:
    with open_binary(path) as file:
        data = file.read(LONGEST_ROW + 1)
    if len(data) > LONGEST_ROW:
        raise ValueError("too long")
    if encoding := encoding_of(data[:MOST_BYTES]):
        raise ValueError(f"in {encoding}; try {convert(encoding)}")
    if b"\0" in data:
        raise ValueError("binary")
    return data.decode("utf-8-sig")
