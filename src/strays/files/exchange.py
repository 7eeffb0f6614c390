"""Two names exchanged in one step, so that there is no moment without either.

Linux has renameat2 with RENAME_EXCHANGE, macOS renamex_np with RENAME_SWAP. Some file systems (NFS, some of FUSE) and
Windows have no such thing; `exchange` then says so and changes nothing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

AT_FDCWD = -100
RENAME_EXCHANGE = RENAME_SWAP = 2
CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV}


def exchange(one: Path, other: Path) -> bool:
    """Exchange what two names stand for, both on one disk. False, and nothing done, where the system cannot."""
    if sys.platform not in ("linux", "darwin"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    a, b = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "linux":
            failed = libc.renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE)
        else:
            failed = libc.renamex_np(a, b, RENAME_SWAP)
    except AttributeError:  # a C library without it
        return False
    if not failed:
        return True
    error = ctypes.get_errno()
    if error in CANNOT:
        return False
    raise OSError(error, os.strerror(error), str(other))
