from __future__ import annotations

import hashlib
import json
import os
import platform
import signal
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from strays.files import (
    append,
    create,
    lock,
    open_own,
    private_like,
    read_steadily,
    recover,
    remove_folder,
    remove_unfinished,
    replace_file,
    replace_folder,
    replacing,
    sha256,
)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def write(folder: Path, content: str) -> None:
    (folder / "a.txt").write_text(content)


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


@pytest.mark.skipif(sys.platform == "win32", reason="another idea of modes")
def test_the_mode_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "private.csv"
    for mode in (0o600, 0o640, 0o444):
        path.touch()
        path.chmod(mode)
        with replace_file(path):
            assert [stat.S_IMODE(entry.stat().st_mode) for entry in others(tmp_path, path)] == [0o700]
        assert stat.S_IMODE(path.stat().st_mode) == mode


def others(folder: Path, *known: Path) -> list[Path]:
    """What else is in a folder."""
    return [path for path in folder.iterdir() if path not in known]


@pytest.mark.skipif(sys.platform == "win32", reason="links are a privilege there")
@pytest.mark.parametrize("name", ["a.csv", "folder"])
def test_a_link_at_a_temporary_name_is_never_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whatever name is tried: where there is a link already, the write fails and the link's target stays."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "letter").write_text("dear")

    def token(n_bytes: int) -> str:  # guessed by somebody who writes to the same folder
        (tmp_path / f".strays-{'0' * 2 * n_bytes}").symlink_to(tmp_path / "theirs")
        return "0" * 2 * n_bytes

    monkeypatch.setattr("secrets.token_hex", token)
    with pytest.raises(FileExistsError):
        if name == "folder":
            with replace_folder(tmp_path / name) as new:
                write(new, "content")
        else:
            with replace_file(tmp_path / name) as file:
                file.write(b"content")
    assert {path.name: path.read_text() for path in (tmp_path / "theirs").iterdir()} == {"letter": "dear"}
    assert not (tmp_path / name).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links are a privilege there")
def test_no_file_is_made_or_added_to_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("dear")
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    (tmp_path / "nowhere").symlink_to(tmp_path / "not there")
    for name in ("link", "nowhere"):
        for opened in (create, open_own, lambda path: append(path, b"more")):
            with pytest.raises(OSError, match=r"exists|symbolic"):
                opened(tmp_path / name)
    assert (tmp_path / "theirs").read_text() == "dear"
    assert not (tmp_path / "not there").exists()


# ---- what killed processes leave -------------------------------------------------------------------------------------


def killed(work: Callable[[], None]) -> None:
    """Do something in a process that is killed, by itself, in the middle of it."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stopped_while_writing(path: Path) -> None:
    def work() -> None:
        with replace_file(path) as file:
            file.write(b"half")
            file.flush()
            kill()

    killed(work)


unix = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")


@unix
def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "o[1].csv").write_text("older")
    stopped_while_writing(tmp_path / "o[1].csv")
    assert len(names(tmp_path)) == 2
    with replace_file(tmp_path / "o[1].csv"):
        pass
    assert names(tmp_path) == {"o[1].csv"}


@unix
@pytest.mark.parametrize("remove", [remove_unfinished, lambda folder: recover(folder / "a.csv")])
def test_what_is_not_proved_to_be_ours_stays(tmp_path: Path, remove: Callable[[Path], None]) -> None:
    """Not by its name alone: a record that names the folder, and no lock on it."""
    mark = ".strays-" + "0123456789abcdef" * 2
    record = {"strays_workspace": mark, "replaces": "a.csv", "host": platform.node()}
    theirs: dict[str, str] = {
        f"{mark}/new": "mine",  # no record
        f"{mark[:-1]}4/owner": "mine",  # no record either
        f"{mark[:-1]}0/owner": "mine",
        f"{mark[:-1]}0/new": "mine",
        f"{mark[:-1]}1/owner": json.dumps(record) + "\n",  # the record of another folder
        f"{mark[:-1]}1/new": "mine",
        f"{mark[:-1]}2/owner": json.dumps(record | {"strays_workspace": f"{mark[:-1]}2"}) + "\n",
        f"{mark[:-1]}2/new": "ours",
        f"{mark[:-1]}2/letter": "mine",  # put there by somebody
        f".strays-{'g' * 32}/owner": json.dumps(record) + "\n",
        ".a.csv.00000000.1.part": "mine",
        ".a.csv.1.part": "mine",
        "a.part": "mine",
    }
    for name, content in theirs.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    for path in tmp_path.iterdir():
        path.chmod(0o700)
    (tmp_path / f"{mark[:-1]}3").symlink_to(tmp_path / f"{mark[:-1]}2")
    remove(tmp_path)
    del theirs[f"{mark[:-1]}2/new"]
    found = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == theirs


@unix
def test_what_others_can_have_changed_stays(tmp_path: Path) -> None:
    """In a folder that many write to, somebody could make a workspace that holds links, or records that lie."""
    stopped_while_writing(tmp_path / "a.csv")
    next(tmp_path.iterdir()).chmod(0o777)
    remove_unfinished(tmp_path)
    assert [len(names(path)) for path in tmp_path.iterdir()] == [2]


@unix
def test_what_another_process_is_writing_stays(tmp_path: Path) -> None:
    with replace_file(tmp_path / "a.csv") as file:
        file.write(b"mine")
        child = os.fork()
        if child == 0:
            status = 1
            with suppress(BaseException), replace_file(tmp_path / "a.csv") as other:
                other.write(b"another's")
                remove_unfinished(tmp_path)
                status = 0
            os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert (tmp_path / "a.csv").read_text() == "another's"
    assert (tmp_path / "a.csv").read_text() == "mine"
    assert names(tmp_path) == {"a.csv"}


@unix
def test_left_overs_of_another_machine_stay_unless_nobody_else_can_be_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_while_writing(tmp_path / "a.csv")
    monkeypatch.setattr(platform, "node", lambda: "another")
    with replace_file(tmp_path / "b.csv"):
        pass
    assert len(names(tmp_path)) == 2
    remove_unfinished(tmp_path)
    assert names(tmp_path) == {"b.csv"}


@unix
def test_without_locks_nothing_is_taken_for_a_left_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_while_writing(tmp_path / "a.csv")
    monkeypatch.setattr("strays.files.workspace.try_lock", lambda file: None)
    remove_unfinished(tmp_path)
    assert len(names(tmp_path)) == 1


# ---- adding and reading ----------------------------------------------------------------------------------------------


def test_append_says_where_the_bytes_begin(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    assert [append(path, b"one"), append(path, b"two")] == [0, 3]
    assert path.read_bytes() == b"onetwo"


@pytest.mark.skipif(sys.platform == "win32", reason="another idea of modes")
@pytest.mark.parametrize(("mode", "made"), [(0o600, 0o600), (0o640, 0o640), (0o644, 0o644), (0o400, 0o600)])
def test_what_is_made_of_a_private_file_is_private(tmp_path: Path, mode: int, made: int) -> None:
    (tmp_path / "in.csv").touch()
    (tmp_path / "in.csv").chmod(mode)
    with private_like(tmp_path / "in.csv"), replace_file(tmp_path / "out.csv"):
        (tmp_path / "folder").mkdir()
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("out.csv", "folder")]
    assert modes == [made, made | (made & 0o444) >> 2]


def test_a_source_that_is_no_file_changes_nothing(tmp_path: Path) -> None:
    for source in ("-", tmp_path / "nowhere", "\0"):
        with private_like(source):
            (tmp_path / "out").touch()


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


@pytest.fixture(params=["exchanged", "renamed"])
def exchanged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With and without a system that exchanges two names in one step."""
    if request.param == "renamed":
        monkeypatch.setattr(replacing, "exchange", lambda one, other: False)
    elif sys.platform not in ("linux", "darwin"):
        pytest.skip("names cannot be exchanged here")
    return request.param == "exchanged"


def put(folder: Path, content: str) -> None:
    with replace_folder(folder) as new:
        write(new, content)


def test_folders_are_exchanged_or_renamed(tmp_path: Path, exchanged: bool) -> None:
    put(tmp_path / "folder", "older")
    was = (tmp_path / "folder" / "a.txt").open()
    with was, replace_folder(tmp_path / "folder") as new:
        write(new, "newer")
        assert (tmp_path / "folder" / "a.txt").read_text() == "older"
    assert (tmp_path / "folder" / "a.txt").read_text() == "newer"
    assert names(tmp_path) == {"folder"}


def test_a_failure_between_the_renames_brings_the_older_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replacing, "exchange", lambda one, other: False)
    put(tmp_path / "folder", "older")
    rename = Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        if path.name == "new":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        put(tmp_path / "folder", "newer")
    assert (tmp_path / "folder" / "a.txt").read_text() == "older"
    assert names(tmp_path) == {"folder"}


def test_an_older_folder_that_cannot_be_put_back_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that is full from the second rename on."""
    put(tmp_path / "folder", "older")
    with monkeypatch.context() as patched:
        patched.setattr(replacing, "exchange", lambda one, other: False)
        rename = Path.rename

        def full(path: Path, target: Path) -> Path:
            if target.name == "folder":
                raise OSError(28, "No space left on device")
            return rename(path, target)

        patched.setattr(Path, "rename", full)
        with pytest.raises(OSError, match="No space"):
            put(tmp_path / "folder", "newer")
    assert not (tmp_path / "folder").exists()
    recover(tmp_path / "folder")
    assert (tmp_path / "folder" / "a.txt").read_text() == "newer"
    assert names(tmp_path) == {"folder"}


@unix
@pytest.mark.parametrize("at", range(4))
def test_killed_at_a_rename_it_is_the_older_folder_or_the_newer(tmp_path: Path, exchanged: bool, at: int) -> None:
    put(tmp_path / "folder", "older")

    def work() -> None:
        left, rename = at, Path.rename

        def counted(path: Path, target: Path) -> Path:
            nonlocal left
            if left == 0:
                kill()
            left -= 1
            return rename(path, target)

        Path.rename = counted  # type: ignore[method-assign]
        put(tmp_path / "folder", "newer")
        kill()

    killed(work)
    recover(tmp_path / "folder")
    assert (tmp_path / "folder" / "a.txt").read_text() == ("older" if at == 0 and not exchanged else "newer")
    assert names(tmp_path) == {"folder"}
    put(tmp_path / "folder", "newest")
    assert (tmp_path / "folder" / "a.txt").read_text() == "newest"


@pytest.mark.skipif(sys.platform == "win32", reason="another idea of modes")
def test_a_folder_and_its_files_keep_their_modes(tmp_path: Path, exchanged: bool) -> None:
    put(tmp_path / "folder", "older")
    (tmp_path / "folder").chmod(0o700)
    (tmp_path / "folder" / "a.txt").chmod(0o640)
    put(tmp_path / "folder", "newer")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "folder", tmp_path / "folder" / "a.txt")]
    assert modes == [0o700, 0o640]


def test_a_folder_with_other_files_is_not_replaced(tmp_path: Path, exchanged: bool) -> None:
    put(tmp_path / "folder", "older")
    (tmp_path / "folder" / "letter").write_text("dear")
    with pytest.raises(OSError, match="letter"):
        put(tmp_path / "folder", "newer")
    assert {path.name: path.read_text() for path in (tmp_path / "folder").iterdir()} == {
        "a.txt": "older",
        "letter": "dear",
    }
    assert names(tmp_path) == {"folder"}


def test_what_somebody_puts_into_the_older_folder_at_the_last_moment_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "folder", "older")
    swap = replacing.exchange

    def late(one: Path, other: Path) -> bool:
        (other / "letter").write_text("dear")
        return swap(one, other)

    monkeypatch.setattr(replacing, "exchange", late)
    put(tmp_path / "folder", "newer")
    for _ in range(2):
        assert (tmp_path / "folder" / "a.txt").read_text() == "newer"
        assert [path.read_text() for path in tmp_path.rglob("letter")] == ["dear"]
        recover(tmp_path / "folder")


def test_every_read_finds_the_older_folder_or_the_newer(tmp_path: Path) -> None:
    """Also of two files that belong together, while several write."""
    folder = tmp_path / "folder"

    def save(content: str) -> None:
        with replace_folder(folder) as new:
            write(new, content)
            (new / "b.txt").write_text(content)

    save("0")
    ended = threading.Event()
    failures: list[BaseException] = []

    def save_often(own: str) -> None:
        try:
            for i in range(60):
                save(f"{own} {i}")
        except BaseException as error:
            failures.append(error)
        ended.set()

    writers = [threading.Thread(target=save_often, args=(own,)) for own in "ab"]
    for writer in writers:
        writer.start()
    reads = 0
    while not ended.is_set():
        one, two = read_steadily(folder, lambda: [(folder / name).read_text() for name in ("a.txt", "b.txt")])
        assert one == two
        reads += 1
    for writer in writers:
        writer.join()
    assert not failures
    assert reads
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
