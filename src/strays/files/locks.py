"""Locks on open files, which end with the process that holds them, however it ends."""

from __future__ import annotations

import sys
from typing import IO


def lock(file: IO[bytes]) -> bool:
    """Lock an open file until it is closed, however the process ends. False if another process holds the lock.

    Where the file system has no locks, this returns True: the work goes on without.
    """
    return try_lock(file) is not False


def try_lock(file: IO[bytes]) -> bool | None:
    """Like `lock`, but None where the file system has no locks, so that nobody can say who is at work."""
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
        return None
    return True
