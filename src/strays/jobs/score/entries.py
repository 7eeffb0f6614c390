"""The lines of a manifest: a header with what was asked, then one for every chunk that is done.

Every line ends with a check sum of its own, so that no damage to one is taken for what was written:

    {"kind": "part", "file": "in.csv", "first_row": 0, ..., "check": "0f5e21c9a1b34d77"}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

from strays.errors import DataError
from strays.jobs.score.chunks import DoneChunk, WrittenChunk

FORMAT_VERSION = 3
TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "bool": (bool,), "int | None": (int, type(None))}


@dataclass(frozen=True)
class KeptScores(DoneChunk):
    """A chunk whose scores are kept, so many bytes from one on in the file of scores."""

    at: int
    bytes: int
    crc32: int


KINDS: dict[str, type[KeptScores | WrittenChunk]] = {"scores": KeptScores, "part": WrittenChunk}


@dataclass(frozen=True)
class Entries:
    """What a manifest says: its header, the chunks done, and how much of it is not readable.

    `whole` are the bytes up to the last line end; what follows is of a process that was stopped while writing it.
    `damaged` are the numbers of lines whose check sum does not match.
    """

    header: dict[str, Any]
    done: list[KeptScores | WrittenChunk]
    damaged: list[int]
    whole: int
    cut_off: bool


def to_line(entry: dict[str, Any]) -> bytes:
    r"""An entry as a line with its check sum.

    >>> to_line({"rows": 2})
    b'{"rows": 2, "check": "0a11eab88e4d8540"}\n'
    """
    body = json.dumps(entry)
    check = hashlib.blake2b(body.encode(), digest_size=8).hexdigest()
    return f'{body[:-1]}, "check": "{check}"}}\n'.encode()


def chunk_line(done: DoneChunk) -> bytes:
    """The line that says that a chunk is done."""
    kind = next(kind for kind, class_ in KINDS.items() if isinstance(done, class_))
    return to_line({"kind": kind} | asdict(done))


def read_entries(data: bytes, path: Path) -> Entries:
    """The entries of a manifest with these bytes; raises if it is not one of strays, or of another format.

    >>> data = to_line({"strays_job": 3, "part_rows": 10}) + b"damaged"
    >>> found = read_entries(data, Path("_manifest.jsonl"))
    >>> found.header, found.cut_off
    ({'strays_job': 3, 'part_rows': 10}, True)
    """
    whole = data.rfind(b"\n") + 1
    first, *lines = data[:whole].split(b"\n")[:-1] or [b""]
    header = parse(first)
    if header is None or "strays_job" not in header:
        raise unusable(path, "is not a manifest of strays, or its first line is damaged; move it away")
    if to_line({key: value for key, value in header.items() if key != "check"}) != first + b"\n":
        raise unusable(path, "is damaged (its check sum does not match); restore it from a copy", 1)
    if header["strays_job"] != FORMAT_VERSION:
        raise unusable(
            path,
            f"was written in format {header['strays_job']} by strays {header.get('strays_version')}; this version "
            f"reads format {FORMAT_VERSION}. Resume with that version",
        )
    del header["check"]
    done, damaged = [], []
    for number, line in enumerate(lines, 2):
        entry = parse(line)
        check = entry.pop("check", None) if entry else None
        if entry is None or check is None or to_line(entry) != line + b"\n":
            damaged.append(number)
        else:
            done.append(to_chunk(entry, path, number))
    return Entries(header, done, damaged, whole, whole < len(data))


def is_first_part(data: bytes) -> bool:
    """Whether this is no byte at all, or half of a manifest's first line: all that a killed process wrote."""
    return not data or (data.startswith(b'{"strays_job": ') and b"\n" not in data)


def parse(line: bytes) -> dict[str, Any] | None:
    """The object that a line holds, if it holds one."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def to_chunk(entry: dict[str, Any], path: Path, number: int) -> KeptScores | WrittenChunk:
    """The chunk that an entry tells of; raises where it is not as strays writes it, or points out of the folder."""
    try:
        done = KINDS[entry.pop("kind")](**entry)
    except (KeyError, TypeError) as error:
        raise unusable(path, f"is not as strays writes it ({error}); remove the folder", number) from error
    for name in _wrong_fields(done):
        raise unusable(path, f"is not as strays writes it ({name}); remove the folder", number)
    way = PurePosixPath(done.out if isinstance(done, WrittenChunk) else "")
    if way.is_absolute() or ".." in way.parts:
        raise unusable(path, f"{way} is outside its folder; remove the folder", number)
    return done


def _wrong_fields(done: DoneChunk) -> Iterator[str]:
    for field in fields(done):
        value, types = getattr(done, field.name), TYPES[str(field.type)]
        if type(value) not in types or (type(value) is int and value < 0 and field.name != "mtime_ns"):
            yield field.name


def unusable(path: Path, why: str, line: int | None = None) -> DataError:
    """The error for a manifest that cannot be worked with."""
    place = f"{path}, line {line}" if line else f"{path}"
    return DataError(f"{place}: {why}, or choose another {{out}}", param="out")
