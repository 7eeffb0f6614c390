"""The folder of what strays can make or fetch again: where it is, how large it may grow, what is in it, how it goes."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strays.errors import UsageError
from strays.files import is_removed, remove_folder

EMBEDDINGS, MODELS, ENCODERS = "strays-embeddings", "strays-models", "strays-encoders"
# Where version 0.1 stored embeddings. They are not used: a damaged graph may have made some of them.
EMBEDDINGS_OF_0_1 = "embeddings.lmdb"
FILES_OF_0_1 = {"data.mdb", "lock.mdb"}
# All that strays puts under its cache folder. Nothing else there is ever removed: STRAYS_CACHE may name any folder.
CONTENTS = {
    EMBEDDINGS: "embeddings",
    MODELS: "models made ready to run",
    ENCODERS: "encoders that were fetched",
    EMBEDDINGS_OF_0_1: "embeddings of version 0.1, not used",
}
# What STRAYS_CACHE is where there is to be no cache. A folder of such a name is ./off.
OFF = ("off", "no", "none", "false", "0")

DEFAULT_SIZE = 4 * 10**9
SMALLEST, LARGEST = 10**7, 16 * 10**12
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
BINARY_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True)
class CacheInfo:
    """What is in the cache: bytes by what they are for, and embeddings by the encoder's fingerprint."""

    folder: Path | None
    max_bytes: int
    sizes: dict[str, int]
    entries: dict[str, int]

    @property
    def n_bytes(self) -> int:
        """All that strays keeps there."""
        return sum(self.sizes.values())

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "folder": None if self.folder is None else str(self.folder),
            "bytes": self.n_bytes,
            "max_bytes_of_embeddings": self.max_bytes,
            "sizes": self.sizes,
            "embeddings": self.entries,
        }

    def to_words(self) -> dict[str, str]:
        """As names and values to show."""
        if self.folder is None:
            return {
                "cache": "off, by STRAYS_CACHE: nothing made is kept, and encoders are made ready anew in every run"
            }
        kept = {CONTENTS[name]: size_in_words(size) for name, size in self.sizes.items()}
        bound = f"{size_in_words(self.max_bytes)} of embeddings" if self.max_bytes else "no embeddings"
        encoders = {f"encoder {name[:12]}": f"{count:,} embeddings" for name, count in self.entries.items()}
        return {"in all": size_in_words(self.n_bytes), "may hold": bound, **kept, **encoders}


def cache_folder() -> Path | None:
    """Where strays keeps what it can make again: STRAYS_CACHE, or the user's cache folder; None where that is off."""
    given = os.environ.get("STRAYS_CACHE")
    if given and given.strip().lower() in OFF:
        return None
    return Path(given) if given else _usual_folder()


def _usual_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "strays"


def encoder_folders() -> list[Path]:
    """Where encoders that were fetched may be; the first is where a new one goes.

    The usual folder counts even where STRAYS_CACHE names another or is off: what is fetched says nothing of any text,
    and is not to be fetched for every cache.
    """
    folders = [] if (given := cache_folder()) is None else [given]
    with suppress(RuntimeError):  # a user without a home
        folders.append(_usual_folder())
    return [folder / ENCODERS for folder in dict.fromkeys(folders)]


def models_folder() -> Path | None:
    """Where models made ready to run are kept; None where the cache is off."""
    folder = cache_folder()
    return None if folder is None else folder / MODELS


def cache_size() -> int:
    """The most bytes of embeddings to keep: STRAYS_CACHE_SIZE, or 4 GB."""
    given = os.environ.get("STRAYS_CACHE_SIZE")
    if not given:
        return DEFAULT_SIZE
    parts = re.fullmatch(r"\s*(\d{1,20}(?:\.\d+)?)\s*([KMGT]?)(I?)B?\s*", given.upper(), re.ASCII)
    units = BINARY_UNITS if parts and parts[3] else UNITS
    if parts is None or parts[2] not in units:
        raise UsageError(
            f"STRAYS_CACHE_SIZE is {given!r:.60}; expected a size such as 500MB or 8GB, or 0 to store no embeddings"
        )
    return check_size(int(float(parts[1]) * units[parts[2]]), "STRAYS_CACHE_SIZE")


def check_size(size: int, name: str) -> int:
    """The size, or an error where nothing could be kept in it or no machine could map it."""
    if size and not SMALLEST <= size <= LARGEST:
        raise UsageError(f"{name} is {size:,} bytes; expected 10MB to 16TB, or 0 to store no embeddings")
    return size


def sizes(folder: Path | None) -> dict[str, int]:
    """Bytes on disk of each thing that strays keeps in the folder."""
    if folder is None:
        return {}
    return {name: size_of(folder / name) for name in CONTENTS if (folder / name).is_dir()}


def clear(folder: Path | None = None, *, encoders: bool = False) -> int:
    """Remove what strays can make again, and encoders that were fetched only if asked; says how many bytes that were.

    Other processes may be at work there: they go on with what they have open, and next time open what is new.
    """
    folder = folder or cache_folder()
    if folder is None:
        return 0
    left = list(filter(is_removed, folder.iterdir())) if folder.is_dir() else []  # by an interrupted removal
    gone = [folder / name for name in sizes(folder) if encoders or name != ENCODERS] + left
    freed = sum(map(size_of, gone))
    for path in gone:
        remove_folder(path)
    return freed


def remove_embeddings_of_0_1(folder: Path) -> None:
    """Give back the room of the embeddings that version 0.1 stored, if that folder is what it wrote."""
    earlier = folder / EMBEDDINGS_OF_0_1
    with suppress(OSError):
        if {path.name for path in earlier.iterdir()} <= FILES_OF_0_1:
            remove_folder(earlier)


def size_of(folder: Path) -> int:
    """Bytes of all files under a folder; files that go meanwhile count nothing."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def size_in_words(n_bytes: int) -> str:
    """A number of bytes as people say it."""
    unit = next((unit for unit in ("T", "G", "M", "K") if n_bytes >= UNITS[unit]), "")
    return f"{n_bytes / UNITS[unit]:.1f} {unit.replace('K', 'k')}B" if unit else f"{n_bytes} bytes"
