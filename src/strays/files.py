"""Files and folders: replaced so that nobody ever sees half of one, appended to, locked and removed.

What replaces a file is written beside it, flushed to the disk and renamed. A failure, a crash or a power cut leaves
what was there before, or what is new, and nothing in between. Everything here raises OSError; whoever calls it says
what that means to the user.
"""

from __future__ import annotations

import glob
import hashlib
import os
import platform
import re
import shutil
import sys
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

UNFINISHED = re.compile(r"\..+\.\d+\.part")
REMOVED = ".strays-removed-"


@contextmanager
def replace_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` when the block ends, or not at all.

    A link is followed, not replaced. A pipe or a device is written to, not replaced.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        with target.open("wb") as pipe:
            yield pipe
        return
    _remove_left_overs(target)
    part = target.with_name(f".{target.name}.{_host()}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            sync(file)
        part.replace(target)
        _sync_folder(target.parent)
    finally:
        with suppress(OSError):
            part.unlink()


@contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `path` when the block ends, or not at all.

    Its files must be plain ones. Folders cannot be exchanged in one step, so that for a moment there is none.
    """
    target = path.resolve()
    mark = uuid.uuid4().hex
    new, old = (target.with_name(f".{target.name}.{mark}.{what}") for what in ("new", "old"))
    try:
        new.mkdir(parents=True)
        yield new
        for entry in new.iterdir():
            with entry.open("r+b") as file:
                sync(file)
        _sync_folder(new)
        if target.exists():
            target.rename(old)
        new.rename(target)
        _sync_folder(target.parent)
    finally:
        if old.exists() and not target.exists():  # stopped between the two renames, by whatever
            old.rename(target)
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def append(path: Path, data: bytes) -> int:
    """Add bytes to the end of a file; they are on the disk when this returns. Returns where they begin."""
    with path.open("ab") as file:
        at = file.tell()
        file.write(data)
        sync(file)
    return at


def sync(file: IO[bytes]) -> None:
    """Wait until what was written to an open file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def lock(file: IO[bytes]) -> bool:
    """Lock an open file until it is closed, however the process ends. False if another process holds the lock.

    Where the file system has no locks, this returns True: the work goes on without.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(1 << 40)  # a byte that nobody reads
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            file.seek(0)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        file.seek(0)
    return True


def sha256(path: Path) -> str:
    """The digest of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_folder(path: Path) -> None:
    """Remove a folder: it is moved aside first, so that nobody opens half of it."""
    aside = path.with_name(f"{REMOVED}{uuid.uuid4().hex}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return  # another process was faster
    shutil.rmtree(aside, ignore_errors=True)


def remove_unfinished(folder: Path) -> None:
    """Remove all unfinished files under a folder. Call it only where nobody else can be writing there."""
    for path in folder.rglob(".*.part"):
        if UNFINISHED.fullmatch(path.name):
            with suppress(OSError):
                path.unlink()


def _remove_left_overs(target: Path) -> None:
    """Remove what processes of this machine that were killed while they wrote this file have left beside it."""
    for path in target.parent.glob(f".{glob.escape(target.name)}.{_host()}.*.part"):
        pid = path.name.removesuffix(".part").rpartition(".")[2]
        if pid.isdecimal() and not _is_running(int(pid)):
            with suppress(OSError):
                path.unlink()


def _host() -> str:
    """What tells this machine's processes from those of others that write to the same disk."""
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _is_running(pid: int) -> bool:
    if sys.platform == "win32":
        return True  # asking there would end the process
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # somebody else's
    return True


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut, where the system can."""
    if sys.platform == "win32":
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
