"""Embeddings stored on disk, under the encoder that made them and the text."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import lmdb
import numpy as np

from strays.encoders.cache.block import DamageError
from strays.encoders.cache.folder import (
    CONTENTS,
    EMBEDDINGS,
    cache_folder,
    cache_size,
    check_size,
    size_in_words,
    sizes,
)
from strays.encoders.cache.store import Store
from strays.errors import StraysWarning, UsageError, first_line
from strays.files import remove_folder

Answer = TypeVar("Answer")
TEXTS_AT_ONCE = 4096


@dataclass(frozen=True)
class CacheInfo:
    """What is in the cache: bytes by what they are for, and embeddings by the encoder's fingerprint."""

    folder: Path
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
            "folder": str(self.folder),
            "bytes": self.n_bytes,
            "max_bytes_of_embeddings": self.max_bytes,
            "sizes": self.sizes,
            "embeddings": self.entries,
        }

    def to_words(self) -> dict[str, str]:
        """As names and values to show."""
        kept = {CONTENTS[name]: size_in_words(size) for name, size in self.sizes.items()}
        bound = f"{size_in_words(self.max_bytes)} of embeddings" if self.max_bytes else "no embeddings"
        encoders = {f"encoder {name[:12]}": f"{count:,} embeddings" for name, count in self.entries.items()}
        return {"in all": size_in_words(self.n_bytes), "may hold": bound, **kept, **encoders}


class EmbeddingCache:
    """Embeddings stored on disk under the encoder's fingerprint and the text, bit for bit as they were given.

    Several processes and threads may share a folder, and any may be killed at any moment. The oldest embeddings are
    removed when there are more than `max_bytes` of them. A cache that cannot be read or written warns once and then
    holds nothing: it never stops a job and never changes a result.

    Parameters
    ----------
    folder
        Where; by default what `cache_folder` says at the time. On a local disk: LMDB's locks do not hold on NFS.
    max_bytes
        The most to take on disk, 0 for nothing; by default what `cache_size` says at the time. A larger file is
        removed, and a new one started.

    Examples
    --------
    >>> cache = EmbeddingCache(Path("cache"))
    >>> cache.put("an encoder", ["one text", "another"], np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> found, embeddings = cache.get("an encoder", ["another", "a third"])
    >>> found.tolist(), embeddings.tolist()
    ([True, False], [[3.0, 4.0]])
    >>> cache.close()
    """

    def __init__(self, folder: Path | None = None, max_bytes: int | None = None) -> None:
        self.folder = folder
        self.max_bytes = max_bytes

    def get(self, fingerprint: str, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Which texts are here, as a mask, and the embeddings of those, as float32 of shape (found, dimension).

        Where nothing is found, the dimension is 0.
        """
        keys = _keys(fingerprint, texts)
        parts = [keys[start : start + TEXTS_AT_ONCE] for start in range(0, len(keys), TEXTS_AT_ONCE)]
        read = self._with_store(lambda store: [store.read(part) for part in parts]) or []
        filled = [embeddings for _, embeddings in read if len(embeddings)]
        if len({part.shape[1] for part in filled}) != 1:
            return np.zeros(len(keys), dtype=bool), np.empty((0, 0), dtype=np.float32)
        return np.concatenate([found for found, _ in read]), np.concatenate(filled)

    def put(self, fingerprint: str, texts: Sequence[str], embeddings: np.ndarray) -> None:
        """Keep the embeddings of texts, one row for each; those that are here already stay as they are."""
        embeddings = np.asarray(embeddings, dtype=np.float32)
        if embeddings.ndim != 2 or len(embeddings) != len(texts):
            raise UsageError(
                f"{{embeddings}} has shape {embeddings.shape}; expected one row for each of {len(texts)} texts",
                param="embeddings",
            )
        keys = _keys(fingerprint, texts)
        self._with_store(lambda store: store.write(_digest(fingerprint, 8), fingerprint, keys, embeddings))

    def info(self) -> CacheInfo:
        """What is kept, and how much of it there may be."""
        entries = self._with_store(Store.counts) if self._path.is_dir() else None
        return CacheInfo(self._folder, self._bound, sizes(self._folder), entries or {})

    def close(self) -> None:
        """Let go of the file; the next call opens it again."""
        with _process.lock:
            _process.close(self._path)

    @property
    def _path(self) -> Path:
        return (self._folder / EMBEDDINGS).absolute()

    @property
    def _folder(self) -> Path:
        return self.folder if self.folder is not None else cache_folder()

    @property
    def _bound(self) -> int:
        return cache_size() if self.max_bytes is None else check_size(self.max_bytes, "max_bytes")

    def _with_store(self, job: Callable[[Store], Answer]) -> Answer | None:
        """What the job makes of the store; None where there is no store to be had."""
        bound, path = self._bound, self._path
        if bound == 0:
            return None
        with _process.lock:
            if path in _process.without:
                return None
            try:
                try:
                    return job(_process.store(path, bound))
                except DamageError as error:
                    _process.start_anew(path, error)
            except (lmdb.Error, OSError) as error:
                _process.give_up(path, error)
        return None


@dataclass
class _Process:
    """What this process has open, once for all caches and threads: LMDB forbids opening a file twice."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    stores: dict[Path, Store] = field(default_factory=dict)
    without: set[Path] = field(default_factory=set)
    warned: set[Path] = field(default_factory=set)

    def store(self, path: Path, bound: int) -> Store:
        store = self.stores.get(path)
        if store is None or store.max_bytes != bound or not store.is_current():
            self.close(path)
            file = path / "data.mdb"
            if file.exists() and file.stat().st_size > bound:
                remove_folder(path)  # LMDB never makes a file smaller
            store = self.stores[path] = Store(path, bound)
        return store

    def close(self, path: Path) -> None:
        store = self.stores.pop(path, None)
        if store is not None:
            store.close()

    def start_anew(self, path: Path, error: DamageError) -> None:
        self.close(path)
        remove_folder(path)
        self.warn(path, f"the embeddings stored in {path} were damaged ({error}) and have been removed")

    def give_up(self, path: Path, error: Exception) -> None:
        self.close(path)
        self.without.add(path)
        self.warn(
            path,
            f"embeddings cannot be stored in {path} ({first_line(error)}), so they will be computed again next time. "
            "Set the environment variable STRAYS_CACHE to a folder on a local disk with room, or STRAYS_CACHE_SIZE=0 "
            "to store none",
        )

    def warn(self, path: Path, message: str) -> None:
        if path not in self.warned:
            self.warned.add(path)
            warnings.warn(message, StraysWarning, stacklevel=5)


_process = _Process()


def _close_before_fork() -> None:
    """No open file crosses a fork: LMDB forbids it. The lock is held, so that no thread is at work on one."""
    _process.lock.acquire()
    for path in list(_process.stores):
        _process.close(path)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_close_before_fork, after_in_parent=_process.lock.release, after_in_child=_process.lock.release
    )


def _keys(fingerprint: str, texts: Sequence[str]) -> list[bytes]:
    """A hash for each text that no other text shares, with this encoder or another."""
    encoder = _digest(fingerprint, 16)
    # Half characters are kept apart: with 'replace', texts that differ in them would share a hash.
    return [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=encoder).digest() for text in texts]


def _digest(fingerprint: str, size: int) -> bytes:
    return blake2b(fingerprint.encode("utf-8", "surrogatepass"), digest_size=size).digest()
