from __future__ import annotations

import hashlib
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from strays import files
from strays.files import append, lock, remove_folder, remove_unfinished, replace_file, replace_folder, sha256


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def write(folder: Path, content: str) -> None:
    (folder / "a.txt").write_text(content)


def ended_process() -> int:
    """The id of a process that has ended."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


# ---- one file --------------------------------------------------------------------------------------------------------


def test_a_file_is_replaced_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("older")
    with replace_file(path) as file:
        file.write(b"newer")
        assert path.read_text() == "older"
    assert path.read_text() == "newer"
    assert names(tmp_path) == {"a.txt"}


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, OSError])
def test_a_failure_leaves_the_older_file(tmp_path: Path, failure: type[BaseException]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("older")
    with pytest.raises(failure), replace_file(path) as file:
        file.write(b"newer")
        raise failure
    assert path.read_text() == "older"
    assert names(tmp_path) == {"a.txt"}


def test_bytes_are_on_the_disk_before_the_file_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    rename, fsync = Path.replace, os.fsync

    def kind(descriptor: int) -> str:
        return "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"

    monkeypatch.setattr(os, "fsync", lambda descriptor: (done.append(f"sync {kind(descriptor)}"), fsync(descriptor)))
    monkeypatch.setattr(Path, "replace", lambda path, target: (done.append("rename"), rename(path, target)))
    with replace_file(tmp_path / "a.txt") as file:
        file.write(b"newer")
    assert done == ["sync file", "rename", "sync folder"]


def test_links_are_followed_and_pipes_written_to_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("older")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with replace_file(tmp_path / "link.txt") as file:
        file.write(b"newer")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "newer"
    os.mkfifo(tmp_path / "pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with replace_file(tmp_path / "pipe") as file:
        file.write(b"newer")
    reader.join()
    assert got == [b"newer"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="whether a process runs cannot be asked there")
def test_left_overs_of_killed_processes_are_removed(tmp_path: Path) -> None:
    host, ended = files._host(), ended_process()
    left = [
        f".o[1].csv.{host}.{ended}.part",
        f".o[1].csv.{host}.{os.getppid()}.part",
        f".o[1].csv.00000000.{ended}.part",
        ".o[1].csv.mine.part",
        ".other.csv.1.part",
    ]
    for name in left:
        (tmp_path / name).touch()
    with replace_file(tmp_path / "o[1].csv"):
        pass
    assert names(tmp_path) == {*left[1:], "o[1].csv"}


def test_unfinished_files_are_removed_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    unfinished = tmp_path / "deep" / f".a.csv.{files._host()}.{os.getppid()}.part"
    for path in (unfinished, tmp_path / "a.part", tmp_path / ".a.part", tmp_path / ".a.csv.mine.part"):
        path.touch()
    remove_unfinished(tmp_path)
    assert names(tmp_path) == {"deep", "a.part", ".a.part", ".a.csv.mine.part"}
    assert not names(tmp_path / "deep")


def test_append_says_where_the_bytes_begin(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    assert [append(path, b"one"), append(path, b"two")] == [0, 3]
    assert path.read_bytes() == b"onetwo"


def test_sha256(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10**6)
    assert sha256(tmp_path / "a") == hashlib.sha256(b"x" * 10**6).hexdigest()


# ---- a folder --------------------------------------------------------------------------------------------------------


def test_a_folder_is_replaced_when_the_block_ends(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "folder"
    for content in ("older", "newer"):
        with replace_folder(folder) as new:
            write(new, content)
        assert (folder / "a.txt").read_text() == content
        assert names(folder.parent) == {"folder"}


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, OSError])
def test_a_failure_leaves_the_older_folder(tmp_path: Path, failure: type[BaseException]) -> None:
    with replace_folder(tmp_path / "folder") as new:
        write(new, "older")
    with pytest.raises(failure), replace_folder(tmp_path / "folder") as new:
        write(new, "newer")
        raise failure
    assert (tmp_path / "folder" / "a.txt").read_text() == "older"
    assert names(tmp_path) == {"folder"}


def test_a_failure_between_the_renames_brings_the_older_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with replace_folder(tmp_path / "folder") as new:
        write(new, "older")
    rename = Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        if path.name.endswith(".new"):
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), replace_folder(tmp_path / "folder") as new:
        write(new, "newer")
    assert (tmp_path / "folder" / "a.txt").read_text() == "older"
    assert names(tmp_path) == {"folder"}


def test_a_folder_is_removed_and_one_that_is_gone_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    write(tmp_path / "folder", "content")
    remove_folder(tmp_path / "folder")
    remove_folder(tmp_path / "folder")
    assert not names(tmp_path)


# ---- locks -----------------------------------------------------------------------------------------------------------


def test_a_lock_is_held_until_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "locked"
    path.touch()
    with path.open("r+b") as mine:
        assert lock(mine)
        with path.open("r+b") as other:
            assert not lock(other)
    with path.open("r+b") as other:
        assert lock(other)


@pytest.mark.skipif(sys.platform == "win32", reason="another way of locking")
def test_a_file_system_without_locks_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def without(*_: object) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(fcntl, "flock", without)
    with (tmp_path / "file").open("w+b") as file:
        assert lock(file)
