"""Open files: made exclusively, never through a link, and on the disk when we say so."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

# Not on Windows, where making a link is a privilege.
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
BINARY = getattr(os, "O_BINARY", 0)


def real_path(path: str | Path) -> Path:
    """Where a path leads, by all links. Links in a circle lead nowhere, and whoever opens them is told.

    >>> Path("a").symlink_to("b"), Path("b").symlink_to("a")
    (None, None)
    >>> real_path("a").name  # Path.resolve() raises a RuntimeError
    'a'
    """
    return Path(os.path.realpath(path))


def create(path: Path, mode: int = 0o666) -> IO[bytes]:
    """A new file to write to; FileExistsError where anything has this name, a link that points nowhere too.

    >>> with create(Path("new.txt")) as file:
    ...     _ = file.write(b"mine")
    >>> create(Path("new.txt"))
    Traceback (most recent call last):
    FileExistsError: [Errno 17] File exists: 'new.txt'
    """
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | BINARY, mode), "wb")


def open_own(path: Path, mode: int = 0o666) -> IO[bytes]:
    """A file to read and to write to, unbuffered, made where there is none; OSError (ELOOP) where it is a link."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW | BINARY, mode), "r+b", buffering=0)


def append(path: Path, data: bytes) -> int:
    """Add bytes to the end of a file; they are on the disk when this returns. Returns where they begin.

    If that fails, what was added in part is cut off again. OSError (ELOOP) where the file is a link.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | NO_FOLLOW | BINARY
    with os.fdopen(os.open(path, flags, 0o666), "ab") as file:
        at = file.tell()
        try:
            file.write(data)
            sync(file)
        except OSError:
            with suppress(OSError):
                os.ftruncate(file.fileno(), at)
            raise
    return at


def sync(file: IO[bytes]) -> None:
    """Wait until what was written to an open file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make what was made, renamed or removed in a folder last through a power cut, where the system can."""
    if sys.platform == "win32":
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sha256(path: Path) -> str:
    """The digest of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
