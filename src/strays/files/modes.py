"""Who may read and write a file: what replaces one is like it, and what is made of a private file is private."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def like(path: Path, older: os.stat_result) -> None:
    """Give a file or folder the owner, group and mode of the older one that it replaces."""
    if sys.platform == "win32":
        return
    mode = stat.S_IMODE(older.st_mode) & 0o777
    now = path.stat()
    if (now.st_uid, now.st_gid) != (older.st_uid, older.st_gid):
        try:
            os.chown(path, older.st_uid, older.st_gid)
        except OSError:  # only root gives files away: another group gets no more than everybody
            mode &= ~0o070 | (mode & 0o007) << 3
    path.chmod(mode)


def mode_like(source: str | Path) -> int:
    """The mode for a file that holds what `source` holds: that of the source, and nothing for others.

    0600 where the source is no file, such as `-` for stdin.
    """
    with suppress(OSError, ValueError):
        found = Path(source).stat()
        if stat.S_ISREG(found.st_mode):
            return found.st_mode & 0o060 | 0o600
    return 0o600


@contextmanager
def private_like(source: str | Path) -> Iterator[None]:
    """What this process makes meanwhile is for nobody who may not read `source`, a file or folder.

    It sets the process's umask: for commands, which have the process to themselves. A source that is a pipe, or is not
    there (`-` for stdin), changes nothing.

    >>> Path("private.csv").touch(mode=0o600)
    >>> with private_like("private.csv"):
    ...     Path("scores.csv").touch()
    >>> oct(Path("scores.csv").stat().st_mode & 0o777)
    '0o600'
    """
    mask = 0
    if sys.platform != "win32":
        with suppress(OSError, ValueError):
            found = Path(source).stat()
            if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
                mask = sum(7 * who for who in (0o010, 0o001) if not found.st_mode & 4 * who)
    before = os.umask(0o077)
    os.umask(before | mask)
    try:
        yield
    finally:
        os.umask(before)
