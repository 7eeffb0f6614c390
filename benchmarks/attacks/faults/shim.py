"""The library that stops a process at a call, or makes the call fail (shim.c): built, preloaded and told what to do."""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")
# In the order of shim.c.
KINDS = ("killed", "torn", "no space", "full", "denied", "broken", "interrupted")
LIBRARY = "STRAYS_FAULTS_LIBRARY"


def can_build() -> bool:
    """Whether this machine has what it takes."""
    return sys.platform == "linux" and shutil.which("gcc") is not None


def start_again_with_shim() -> None:
    """Start this program again with the library before all others, unless that is done. Call it first."""
    if LIBRARY in os.environ:
        atexit.register(shutil.rmtree, Path(os.environ[LIBRARY]).parent)
        return
    library = Path(tempfile.mkdtemp(), "faults.so")
    command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    environment = os.environ | {LIBRARY: str(library), "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1"}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


class Shim:
    """The library in this process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ[LIBRARY])
        self._library.faults_seen.restype = ctypes.c_long
        self._library.faults_hit.restype = ctypes.c_char_p

    def arm(self, folder: Path, kind: str, call: int) -> None:
        """From now on, let this happen at the n-th call, counted from 1, that touches the folder."""
        self._library.faults_arm(os.fsencode(f"{folder}/"), KINDS.index(kind), ctypes.c_long(call))

    def disarm(self) -> tuple[int, str]:
        """Let nothing more happen; how many calls there were, and which one was hit."""
        self._library.faults_disarm()
        return int(self._library.faults_seen()), self._library.faults_hit().decode()
