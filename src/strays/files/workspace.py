"""A hidden folder of our own beside what is to be replaced, and the proof that it is ours.

It is named `.strays-` and 128 random bits, so that nobody can put a link there first, and is open to nobody else. In it
is `owner`, a record that names the folder itself, what is to be replaced and the machine, locked while its process is
at work. Beside that are `new`, what is being written, and `old`, what was moved out of the way where the two cannot be
exchanged. A folder with such a record that nobody holds a lock on was left by a process that was killed: what it had
begun is finished or removed. Everything else is left alone, whatever its name.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import secrets
import shutil
import stat
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from strays.files.disk import NO_FOLLOW, create, sync, sync_folder
from strays.files.locks import try_lock

NAME = re.compile(r"\.strays-[0-9a-f]{32}")
OWNER, NEW, OLD = "owner", "new", "old"
# A record is a few hundred bytes, and a little more for each file of a folder.
LARGEST_RECORD = 2**20
ATTEMPTS = 5


@dataclass(frozen=True)
class Record:
    """What `owner` says. `holds` are a new folder's files, said when they are complete and before it is exchanged."""

    strays_workspace: str
    replaces: str
    host: str
    holds: list[str] | None = None

    def is_of(self, workspace: str) -> bool:
        """Whether it is the record of this workspace, and names nothing outside its folder."""
        names = [self.replaces, *(self.holds or [])]
        return self.strays_workspace == workspace and all(n == Path(n).name for n in names)


class Workspace:
    """A workspace of this process, in the folder of what is to be replaced."""

    def __init__(self, target: Path) -> None:
        for _ in range(ATTEMPTS):
            self.path = target.with_name(f".strays-{secrets.token_hex(16)}")
            self.path.mkdir(mode=0o700)
            try:
                self._owner = create(self.path / OWNER, 0o600)
            except FileNotFoundError:
                continue  # somebody else took it for a left-over, as it was still empty
            except BaseException:
                with suppress(OSError):
                    self.path.rmdir()
                raise
            # First the lock, then the record, so that no record is there without. Whoever took the folder for a
            # left-over before there was a lock has removed it, or is about to.
            if try_lock(self._owner) is not False and (self.path / OWNER).exists():
                break
            self._owner.close()
        else:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(target.parent))
        self.new, self.old = self.path / NEW, self.path / OLD
        self.record = Record(self.path.name, target.name, platform.node())
        try:
            self._write()
        except BaseException:
            self.close()
            raise

    def is_complete(self, holds: list[str]) -> None:
        """Record that `new` is a complete folder of these files, before it becomes anything else."""
        self.record = Record(self.record.strays_workspace, self.record.replaces, self.record.host, holds)
        self._write()
        sync(self._owner)
        sync_folder(self.path)

    def _write(self) -> None:
        line = json.dumps(asdict(self.record)) + "\n"  # the last line counts, if it is whole
        self._owner.write(line.encode())
        self._owner.flush()

    def close(self) -> None:
        """Remove it, with what is left in it that is ours."""
        with suppress(OSError):
            _empty(self.path, self.record)
        with suppress(OSError):
            self._owner.close()
        _remove(self.path)


def recover_all(folder: Path, *, waited: bool = False, alone: bool = False) -> bool:
    """Finish or remove what killed processes left in a folder; True where a process is still at work, or may be.

    `waited`: whoever is at work has had time enough to put things back. `alone`: nobody else can be writing here.
    """
    try:
        found = [Path(entry.path) for entry in os.scandir(folder) if NAME.fullmatch(entry.name)]
    except OSError:
        return False
    in_use = [_recover(path, waited, alone) for path in found]
    return any(in_use)


def remove_unfinished(folder: Path) -> None:
    """Finish or remove what killed processes left under a folder. Call it only where nobody else can be writing there.

    What a process holds a lock on stays even so, and so does everything that is not proved to be ours.
    """
    folders = [path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink()]
    for path in [folder, *folders]:
        if not NAME.fullmatch(path.name):
            recover_all(path, alone=True)


def _recover(path: Path, waited: bool, alone: bool) -> bool:
    """Finish or remove one workspace that was left; True where it is in use, or may be."""
    try:
        if not _is_private(path):
            return False
        owner = os.fdopen(os.open(path / OWNER, os.O_RDWR | NO_FOLLOW), "r+b")
    except FileNotFoundError:
        with suppress(OSError):
            path.rmdir()  # killed before it began or after it ended, or else not empty, and none of ours
        return False
    except OSError:
        return False
    with owner, suppress(OSError):
        locked = try_lock(owner)
        if locked is False:
            return True
        data = owner.read(LARGEST_RECORD)
        record = _last_record(data, path.name)
        if record is None and not _is_first_part(data, path.name):
            return False
        # The locks of another machine may not reach here, and some disks have none.
        is_left = locked and (alone or record is None or record.host == platform.node())
        if not is_left and not waited:
            return True
        if record is not None:
            finish(path, path.with_name(record.replaces))
        if not is_left:
            return False
        if record is not None:
            _empty(path, record)
        _remove(path)  # under the lock, so that whoever gets it next finds nothing
    _remove(path)  # once more for Windows, which removes no open file
    return False


def _is_private(path: Path) -> bool:
    """Whether it is a folder that nobody but this user can have put anything into."""
    found = path.lstat()
    mine = sys.platform == "win32" or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)
    return stat.S_ISDIR(found.st_mode) and mine


def finish(workspace: Path, target: Path) -> None:
    """Where a folder was moved out of the way and nothing has its place yet: the new one takes it, or it goes back."""
    for path in (workspace / NEW, workspace / OLD):
        if (workspace / OLD).exists() and path.exists() and not target.exists():
            with suppress(OSError):
                path.rename(target)
                sync_folder(target.parent)


def _last_record(data: bytes, workspace: str) -> Record | None:
    """The last whole record, if it is of this workspace."""
    *lines, _ = data.split(b"\n")
    try:
        record = Record(**json.loads(lines[-1]))
        return record if record.is_of(workspace) else None
    except (IndexError, ValueError, TypeError):
        return None


def _is_first_part(data: bytes, workspace: str) -> bool:
    """Whether a process was killed while it wrote the first record, so that there is nothing else yet."""
    start = json.dumps({"strays_workspace": workspace})[:-1].encode()
    return b"\n" not in data and (data.startswith(start) or start.startswith(data))


def _empty(workspace: Path, record: Record) -> None:
    """Remove what is left in a workspace, but for its owner.

    Once a new folder is complete, what has the name `new` may be the older one, which was exchanged for it: of that,
    only files with the names of the new ones go, and whatever else somebody has put there stays.
    """
    if (workspace / OLD).exists() and not workspace.with_name(record.replaces).exists():
        return  # it could not be put back: the next process tries again
    for path in (workspace / NEW, workspace / OLD):
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
        elif record.holds is None:
            shutil.rmtree(path)
        else:
            for name in record.holds:
                (path / name).unlink(missing_ok=True)
            path.rmdir()


def _remove(workspace: Path) -> None:
    """Remove a workspace that holds nothing but its owner; one that holds more keeps it."""
    with suppress(OSError):
        if {entry.name for entry in workspace.iterdir()} <= {OWNER}:
            (workspace / OWNER).unlink(missing_ok=True)
            workspace.rmdir()
