"""Where rows come from: a file or bytes at hand, plain or gzip-compressed."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from pathlib import Path
from typing import IO

from strays.errors import DataError, NoRowsError

Source = Path | bytes
GZIP_MAGIC = b"\x1f\x8b"
# What gzip may make of a file that can only be read unpacked: so many times its size, and some more.
MOST_UNPACKED, UNPACKED_AT_LEAST = 20, 2**26


def require_file(path: Path) -> None:
    """Raise unless there is a file with something in it that may be read."""
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if path.is_dir():
        raise DataError(f"{path}: is a folder; expected a file")
    if path.is_file() and path.stat().st_size == 0:
        raise NoRowsError(f"{path}: the file is empty; expected rows")
    if not os.access(path, os.R_OK):
        raise DataError(f"{path}: cannot be read; check its permissions")


def is_gzip(source: Source) -> bool:
    """Whether it is gzip-compressed, by its first bytes."""
    if isinstance(source, bytes):
        return source.startswith(GZIP_MAGIC)
    with source.open("rb") as file:
        return file.read(2) == GZIP_MAGIC


def open_binary(source: Source) -> IO[bytes]:
    """The bytes a source holds, unpacked."""
    if is_gzip(source):
        return gzip.open(io.BytesIO(source) if isinstance(source, bytes) else source, "rb")  # type: ignore[return-value]
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def first_bytes(source: Source, name: str, most: int = 1_000_000) -> bytes:
    """The first bytes of what a source holds, unpacked."""
    try:
        with open_binary(source) as file:
            return file.read(most)
    except (EOFError, OSError, zlib.error) as error:
        what = f"the gzip data is cut off or damaged ({error})"
        raise DataError(f"{name}: {what}; download or copy the file again") from error


def size_of(source: Source) -> int:
    """How many bytes a source has, packed as it is."""
    return len(source) if isinstance(source, bytes) else source.stat().st_size


def unpacked(source: Source, name: str) -> bytes:
    """All that a source holds, unpacked, unless that is suspiciously much."""
    most = max(MOST_UNPACKED * size_of(source), UNPACKED_AT_LEAST)
    data = first_bytes(source, name, most + 1)
    if len(data) > most:
        raise DataError(f"{name}: unpacks to more than {MOST_UNPACKED} times its size; unpack it first, with gunzip")
    return data
