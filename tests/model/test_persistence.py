from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from strays.errors import ModelError
from strays.files import replacing
from strays.model.folder import ARRAYS, CONFIG, FORMAT_VERSION, load_folder, save_folder, sealed

ARRAYS_IN = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(2.5), "c": np.array([1, 2], dtype=np.int64)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_folder(tmp_path / "model", {"name": "x"}, ARRAYS_IN)
    return tmp_path / "model"


def test_what_is_saved_is_loaded(folder: Path) -> None:
    config, arrays = load_folder(folder)
    assert config["name"] == "x"
    assert config["format_version"] == FORMAT_VERSION
    assert {name: array.tolist() for name, array in arrays.items()} == {n: a.tolist() for n, a in ARRAYS_IN.items()}
    assert sorted(path.name for path in folder.iterdir()) == [ARRAYS, CONFIG]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_an_older_model_is_replaced(folder: Path) -> None:
    save_folder(folder, {"name": "y"}, {"z": np.zeros(1)})
    config, arrays = load_folder(folder)
    assert (config["name"], list(arrays)) == ("y", ["z"])


def test_other_things_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ModelError, match="other things in it"):
        save_folder(tmp_path, {}, {})
    with pytest.raises(ModelError, match="is a file"):
        save_folder(tmp_path / "thesis.tex", {}, {})
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_failed_save_keeps_the_older_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ModelError, match="No space left on device"):
        save_folder(folder, {"name": "y"}, {})
    monkeypatch.undo()
    assert load_folder(folder)[0]["name"] == "x"
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_every_load_finds_the_older_model_or_the_newer_while_it_is_rewritten(folder: Path) -> None:
    ended = threading.Event()

    def save_often() -> None:
        try:
            for i in range(100):
                save_folder(folder, {"name": i}, {"a": np.full(1000, i)})
        finally:
            ended.set()

    save_folder(folder, {"name": 0}, {"a": np.zeros(1000)})
    writer = threading.Thread(target=save_often)
    writer.start()
    found = []
    while not ended.is_set():
        config, arrays = load_folder(folder)
        assert arrays["a"].tolist() == [config["name"]] * 1000
        found.append(config["name"])
    writer.join()
    assert found == sorted(found)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("at", [0, 1])
def test_a_save_that_is_killed_leaves_a_model_that_loads(folder: Path, can_exchange: bool, at: int) -> None:
    """Where folders cannot be exchanged, also between the two renames."""
    child = os.fork()
    if child == 0:
        rename, calls = Path.rename, []

        def killed(self: Path, target: Path) -> Path:
            if len(calls) == at:
                os.kill(os.getpid(), signal.SIGKILL)
            calls.append(target)
            return rename(self, target)

        Path.rename = killed  # type: ignore[method-assign]
        if not can_exchange:
            replacing.exchange = lambda one, other: False  # type: ignore[assignment]
        try:
            save_folder(folder, {"name": "y"}, {})
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert load_folder(folder)[0]["name"] == ("y" if can_exchange or at else "x")
    save_folder(folder, {"name": "z"}, {})
    assert load_folder(folder)[0]["name"] == "z"
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_what_other_processes_left_is_no_obstacle_and_stays(folder: Path) -> None:
    left = [folder.with_name(f".model.1.{what}") for what in ("new", "old")]  # as version 0.1 named them
    for path in left:
        path.mkdir()
        (path / CONFIG).write_text("{}")
    save_folder(folder, {"name": "y"}, {})
    assert load_folder(folder)[0]["name"] == "y"
    assert {path.name for path in folder.parent.iterdir()} == {"model", *(path.name for path in left)}
    assert [(path / CONFIG).read_text() for path in left] == ["{}", "{}"]


@pytest.mark.skipif(sys.platform == "win32", reason="another idea of modes")
def test_a_private_model_stays_private(folder: Path) -> None:
    folder.chmod(0o700)
    for name in (CONFIG, ARRAYS):
        (folder / name).chmod(0o600)
    save_folder(folder, {"name": "y"}, {})
    modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}
    assert modes == {"model": 0o700, CONFIG: 0o600, ARRAYS: 0o600}


def test_a_model_with_other_files_beside_it_is_not_replaced(folder: Path) -> None:
    (folder / "notes.md").write_text("mine")
    with pytest.raises(ModelError, match="other things in it"):
        save_folder(folder, {}, {})
    assert (folder / "notes.md").read_text() == "mine"


def test_a_link_to_a_model_is_followed(folder: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    save_folder(link, {"name": "y"}, {})
    assert link.is_symlink()
    assert load_folder(folder)[0]["name"] == "y"


@pytest.mark.parametrize("name", [CONFIG, ARRAYS])
def test_a_missing_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ModelError, match=f"{name} is missing"):
        load_folder(folder)


def test_no_folder_at_all(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such model folder"):
        load_folder(tmp_path / "none")


def test_every_flipped_bit_of_the_arrays_is_noticed(folder: Path) -> None:
    whole = (folder / ARRAYS).read_bytes()
    for position in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[position] ^= 1
        (folder / ARRAYS).write_bytes(damaged)
        with pytest.raises(ModelError, match="damaged or of another model"):
            load_folder(folder)
    (folder / ARRAYS).write_bytes(whole[:-1])
    with pytest.raises(ModelError, match="damaged or of another model"):
        load_folder(folder)


def test_every_flipped_bit_of_the_config_is_noticed_or_changes_nothing(folder: Path) -> None:
    whole = (folder / CONFIG).read_bytes()
    config = load_folder(folder)[0]
    for position in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        (folder / CONFIG).write_bytes(damaged)
        try:
            found = load_folder(folder)[0]
        except ModelError:
            continue
        assert found == config


def test_a_config_of_the_first_format_needs_no_hash_of_its_own(folder: Path) -> None:
    config = json.loads((folder / CONFIG).read_text())
    del config["config_sha256"]
    (folder / CONFIG).write_text(json.dumps(config))
    with pytest.raises(ModelError, match="changed by hand"):
        load_folder(folder)
    (folder / CONFIG).write_text(json.dumps(config | {"format_version": 1}))
    assert load_folder(folder)[0]["name"] == "x"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"format_version": FORMAT_VERSION + 1, "strays_version": "9.9"},
            r"newer strays \(9\.9\).*pip install --upgrade",
        ),
        ({"format_version": "one"}, "format version 'one'"),
        ({"format": "something"}, "does not describe a strays model"),
    ],
)
def test_a_config_of_another_kind(folder: Path, change: dict, message: str) -> None:
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | change))
    with pytest.raises(ModelError, match=message):
        load_folder(folder)


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "[" * 100_000, "\x00"])
def test_a_config_that_is_no_config(folder: Path, text: str) -> None:
    (folder / CONFIG).write_text(text)
    with pytest.raises(ModelError, match="fit"):
        load_folder(folder)


# ---- folders that somebody made on purpose ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", [CONFIG, ARRAYS])
def test_a_link_out_of_the_folder_is_refused(folder: Path, name: str) -> None:
    moved = (folder / name).rename(folder.parent / name)
    (folder / name).symlink_to(moved)
    with pytest.raises(ModelError, match=f"{name} is a link to a file outside the folder; copy"):
        load_folder(folder)


def test_links_as_in_the_hubs_cache_are_refused(folder: Path, tmp_path: Path) -> None:
    """An encoder's folder may be made of them; a model comes from anybody."""
    blobs, snapshot = tmp_path / "models--org--model" / "blobs", tmp_path / "models--org--model" / "snapshots" / "0"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for name in (CONFIG, ARRAYS):
        (folder / name).rename(blobs / name)
        (snapshot / name).symlink_to(f"../../blobs/{name}")
    with pytest.raises(ModelError, match="is a link to a file outside the folder; copy"):
        load_folder(snapshot)


def test_links_inside_the_folder_are_followed(folder: Path) -> None:
    (folder / "..2026_01").mkdir()
    (folder / "..data").symlink_to("..2026_01")  # as Kubernetes mounts a volume
    for name in (CONFIG, ARRAYS):
        (folder / name).rename(folder / "..2026_01" / name)
        (folder / name).symlink_to(f"..data/{name}")
    assert load_folder(folder)[0]["name"] == "x"


@pytest.mark.parametrize("name", [CONFIG, ARRAYS])
def test_a_pipe_is_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(ModelError, match=f"{name} is not a plain file"):
        load_folder(folder)


@pytest.mark.parametrize("name", [CONFIG, ARRAYS])
def test_a_file_that_claims_to_be_huge_is_not_read(folder: Path, name: str) -> None:
    os.truncate(folder / name, 2**42)
    with pytest.raises(ModelError, match=r"larger than|more than this machine has memory"):
        load_folder(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-2] + ', "name": "y"}',
        lambda text: text.replace('"x"', "NaN"),
        lambda text: text[:-2] + ', "a": ' + "9" * 5000 + "}",
        lambda text: text[:-2] + ', "a": ' + "[" * 300_000 + "]" * 300_000 + "}",
        lambda text: text + " " * 2**20,
    ],
)
def test_json_that_no_model_has(folder: Path, change: Callable[[str], str]) -> None:
    (folder / CONFIG).write_text(change((folder / CONFIG).read_text()))
    with pytest.raises(ModelError) as error:
        load_folder(folder)
    assert len(str(error.value)) < 1000
    with pytest.raises(ModelError, match="other things in it"):  # nor is it taken for an older model to be replaced
        save_folder(folder, {}, {})


@pytest.mark.parametrize(
    "header", [b'{"a": "' + b"x" * 100_000 + b'"}', b'{"a": {"dtype": "BF16", "shape": [], "data_offsets": [0, 2]}}']
)
def test_arrays_that_are_none(folder: Path, header: bytes) -> None:
    data = len(header).to_bytes(8, "little") + header + b"\0\0"
    (folder / ARRAYS).write_bytes(data)
    config = json.loads((folder / CONFIG).read_text()) | {"arrays_sha256": hashlib.sha256(data).hexdigest()}
    (folder / CONFIG).write_text(json.dumps(sealed(config)))
    with pytest.raises(ModelError, match="is not readable") as error:
        load_folder(folder)
    assert len(str(error.value)) < 1000
