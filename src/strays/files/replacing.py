"""A file or folder replaced: the older one is there until the new one is complete, and no moment is without either."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

from strays.files.disk import create, real_path, sync, sync_folder
from strays.files.exchange import exchange
from strays.files.modes import like
from strays.files.workspace import Workspace, finish, recover_all

Answer = TypeVar("Answer")
# Where folders cannot be exchanged there is none for a moment; nobody who is alive takes this long.
LONGEST_MOMENT = 2.0
ATTEMPTS = 50


@contextmanager
def replace_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` when the block ends, or not at all.

    The new file has the mode of the older one. If `path` is a link, the file that it points to is replaced. A pipe or a
    device is written to, not replaced.

    >>> with replace_file(Path("out.txt")) as file:
    ...     _ = file.write(b"complete")
    >>> Path("out.txt").read_text()
    'complete'
    """
    target = real_path(path)
    older = _stat(target)
    if older and not stat.S_ISREG(older.st_mode):
        with target.open("wb") as pipe:
            yield pipe
        return
    recover_all(target.parent)
    workspace = Workspace(target)
    try:
        with create(workspace.new) as file:
            yield file
            if older:
                like(workspace.new, older)
            sync(file)
        workspace.new.replace(target)
        sync_folder(target.parent)
    finally:
        workspace.close()


@contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill with plain files, which takes the place of `path` when the block ends, or not at all.

    The new folder and its files have the modes of the older ones. The older one must hold no other files; they would be
    lost. OSError (ENOTEMPTY) where it does.

    >>> for text in ("older", "newer"):
    ...     with replace_folder(Path("folder")) as new:
    ...         _ = (new / "a.txt").write_text(text)
    >>> Path("folder", "a.txt").read_text()
    'newer'
    """
    target = real_path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    recover_all(target.parent)
    workspace = Workspace(target)
    try:
        workspace.new.mkdir()
        yield workspace.new
        names = sorted(entry.name for entry in workspace.new.iterdir())
        for name in names:
            if older := _stat(target / name):
                like(workspace.new / name, older)
            with (workspace.new / name).open("rb") as file:
                os.fsync(file.fileno())
        if older := _stat(target):
            like(workspace.new, older)
        sync_folder(workspace.new)
        workspace.is_complete(names)
        _take_the_place(workspace, target, names)
        sync_folder(target.parent)
    finally:
        finish(workspace.path, target)  # stopped between two renames, by whatever
        workspace.close()


def recover(path: Path) -> None:
    """Finish what a process that was killed while it replaced `path` had begun; wait for one that is about to end it.

    Call it where `path` is missing. It also removes what is left of other killed processes in the same folder.
    """
    target = real_path(path)
    end = time.monotonic() + LONGEST_MOMENT
    while recover_all(target.parent) and not target.exists():
        if time.monotonic() > end:
            recover_all(target.parent, waited=True)
            return
        time.sleep(0.01)


def read_steadily(folder: Path, read: Callable[[], Answer]) -> Answer:
    """What `read` makes of several files of a folder; it is called again where the folder was replaced meanwhile."""
    for _ in range(ATTEMPTS):
        before = _identity(folder)
        try:
            answer = read()
        except Exception:
            if _identity(folder) == before:
                raise
        else:
            if _identity(folder) == before:
                return answer
    return read()


def _take_the_place(workspace: Workspace, target: Path, names: list[str]) -> None:
    """Exchange a new folder for the older one, if there is one: another process may make or replace it meanwhile."""
    for _ in range(ATTEMPTS):
        try:
            if not target.exists():
                workspace.new.rename(target)
                return
            if others := {entry.name for entry in target.iterdir()} - set(names):
                raise OSError(errno.ENOTEMPTY, f"it holds other files ({min(others)})", str(target))
            if not exchange(workspace.new, target):
                _rename_both(workspace, target)
            return
        except FileNotFoundError:
            if not workspace.new.exists():
                raise
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or error.filename == str(target):
                raise
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(target))


def _rename_both(workspace: Workspace, target: Path) -> None:
    """The same in two steps. Whoever is killed between them has recorded that the new folder is complete."""
    target.rename(workspace.old)
    try:
        workspace.new.rename(target)
    except BaseException:
        workspace.old.rename(target)
        raise


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _identity(folder: Path) -> tuple[int, ...] | None:
    """Which folder has this name now. It also changes with the folder's own entries."""
    found = _stat(folder)
    return (found.st_dev, found.st_ino, found.st_mtime_ns) if found else None
