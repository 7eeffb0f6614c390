"""What a process does while it reads a hostile file: the files it touches, the code it runs, the memory it takes.

Python's audit hooks tell of every file that Python opens, of imports, compiled and executed code, unpickled classes,
processes and sockets. Native code (Arrow, safetensors, SQLite, tokenizers) opens files unseen. Of these only Arrow and
SQLite are ever given a path, Arrow that of the table and SQLite that of the cache; safetensors and tokenizers get bytes
of files that Python has opened, or paths inside the encoder's folder. A file that must not be read
holds a mark, which must not show up in any message or output. benchmarks/LOG.md tells of a run under strace, which sees
all.

Allowed, and nothing else: reading and writing in the case's folder and in the run's own cache; reading the encoder that
the models were fitted with, installed packages, the interpreter's own library and this repository's code; /dev/null,
/dev/urandom, time zones, and what /proc and /sys say of this process and the processor. Code may come from those files
alone. Listing a folder is not counted: the encoder that a model names may be any folder, which is looked through for an
encoder's files before anything in it is opened.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import strays

REPO = Path(__file__).resolve().parent.parent.parent
CODE = tuple(
    os.path.realpath(place)
    for place in (
        sys.prefix,
        sys.base_prefix,
        sysconfig.get_path("stdlib"),
        Path(strays.__file__).parent,
        REPO / "src",
        REPO / "benchmarks",
    )
)
SYSTEM = ("/dev/null", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/sys/", "/usr/share/zoneinfo/")
OF_THIS_PROCESS = ("status", "mounts", "cgroup", "stat", "statm", "mountinfo", "maps", "clear_refs")
# Events that name paths, and at which place among their arguments.
READS = {"sqlite3.connect": 0}
WRITES = {
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.rename": (0, 1),
    "os.link": (0, 1),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.utime": (0,),
    "shutil.rmtree": (0,),
    "shutil.copyfile": (1,),
    "shutil.move": (0, 1),
}
# Of these, the ones whose last argument may be a descriptor of the folder that the path is in.
BY_DESCRIPTOR = ("os.remove", "os.rmdir")
RUNS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn")
NETWORK = (
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.sendto",
    "socket.bind",
    "urllib.Request",
)
NEVER = ("pickle.find_class", "builtins.input", "ctypes.dlopen", "webbrowser.open")


@dataclass
class Watch:
    """What happened while a case ran. `may_write` are folders, `may_read` further ones."""

    may_write: tuple[str, ...] = ()
    may_read: tuple[str, ...] = ()
    on: bool = False
    found: list[tuple[str, str]] = field(default_factory=list)

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        """Note what is not allowed; a network request is also stopped."""
        if not self.on:
            return
        if event == "open":
            self._opened(*args)
        elif event in READS:
            self._read(args[READS[event]], event)
        elif event in WRITES:
            within = args[-1] if event in BY_DESCRIPTOR else -1
            for place in WRITES[event]:
                self._written(args[place] if within == -1 else f"/proc/self/fd/{within}/{args[place]}", event)
        elif event == "ctypes.dlopen" and (args[0] is None or _real(args[0]).startswith(CODE)):
            pass  # the C library, for system calls that Python does not have, or an installed one, to limit its threads
        elif event in RUNS or event in NEVER:
            self._note("code executed", f"{event} {args!r:.200}")
        elif event in NETWORK:
            self._note("network", f"{event} {args!r:.200}")
            raise PermissionError("no network in an attack")
        elif event == "exec":
            self._ran(args[0].co_filename)
        elif event == "compile" and args[1] is not None:
            self._ran(os.fsdecode(args[1]) if isinstance(args[1], bytes | str) else "?")

    def _opened(self, path: Any, mode: Any, flags: int) -> None:
        if isinstance(path, int):
            return
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND):
            if _real(path) != "/dev/null":
                self._written(path, "open")
        else:
            self._read(path, "open")

    def _read(self, path: Any, event: str) -> None:
        if isinstance(path, int) or path is None:
            return
        real = _real(path)
        own = {f"/proc/{os.getpid()}/{name}" for name in OF_THIS_PROCESS}
        if real not in own and not real.startswith((*SYSTEM, *CODE, *self.may_write, *self.may_read)):
            self._note("read outside", f"{event} {real}")

    def _written(self, path: Any, event: str) -> None:
        if not isinstance(path, int) and not _real(path).startswith(self.may_write):
            self._note("wrote outside", f"{event} {_real(path)}")

    def _ran(self, filename: str) -> None:
        if filename.startswith("<"):  # made on the spot, as for dataclasses: it counts as code of who made it
            frame = inspect.currentframe()
            while frame is not None and frame.f_code.co_filename == __file__:
                frame = frame.f_back
            while frame is not None and frame.f_code.co_filename.startswith("<"):
                frame = frame.f_back
            filename = frame.f_code.co_filename if frame is not None else filename
        if not os.path.realpath(filename).startswith(CODE):
            self._note("code executed", filename)

    def _note(self, what: str, words: str) -> None:
        if len(self.found) < 20:
            self.found.append((what, words))


WATCH = Watch()


def install() -> None:
    """Watch this process from now on; there is no way back."""
    sys.addaudithook(WATCH.hook)


@contextmanager
def watching(may_write: tuple[str, ...], may_read: tuple[str, ...]) -> Iterator[Watch]:
    """Note what happens meanwhile."""
    WATCH.may_write, WATCH.may_read = tuple(map(_real, may_write)), tuple(map(_real, may_read))
    WATCH.found, WATCH.on = [], True
    try:
        yield WATCH
    finally:
        WATCH.on = False


def start_measuring() -> int:
    """Give back what is free, forget the highest memory use so far, and return the present one in bytes."""
    ctypes.CDLL(None).malloc_trim(0)
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak() -> int:
    """The highest memory use in bytes since start_measuring."""
    return _status("VmHWM")


def address_space() -> int:
    """What this process has mapped, in bytes."""
    return _status("VmSize")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def _real(path: Any) -> str:
    return os.path.realpath(os.fsdecode(path))
