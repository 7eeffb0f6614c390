"""Embeddings stored on disk, under the encoder that made them and the text."""

from __future__ import annotations

import os
import sqlite3
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import numpy as np

from strays.encoders.cache.folder import (
    EMBEDDINGS,
    CacheInfo,
    cache_folder,
    cache_size,
    check_size,
    remove_embeddings_of_0_1,
    sizes,
)
from strays.encoders.cache.store import FILE, DamageError, MovedError, Store
from strays.errors import StraysWarning, UsageError, first_line
from strays.files import remove_folder

Answer = TypeVar("Answer")
TEXTS_AT_ONCE = 4096
REMEDY = (
    "Set the environment variable STRAYS_CACHE to a folder on a local disk with room, or to 'off'; STRAYS_CACHE_SIZE=0 "
    "stores no embeddings"
)


@dataclass(frozen=True, eq=False)
class EmbeddingCache:
    """Embeddings stored on disk under a fingerprint of the encoder and the text, bit for bit as they were given.

    Several processes and threads may share a folder, and any may be killed at any moment. The oldest embeddings are
    removed when there are more than `max_bytes` of them. A cache that cannot be read or written warns once and then
    holds nothing: it never stops a job and never changes a result.

    `folder`, by default what `cache_folder` says at the time, must be on a local disk: locks do not hold on all others.
    `max_bytes`, by default what `cache_size` says, is 0 for nothing; a file that is larger is removed first.

    >>> cache = EmbeddingCache(Path("cache"))
    >>> cache.put("an encoder", ["one text", "another"], np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> found, embeddings = cache.get("an encoder", ["another", "a third"])
    >>> found.tolist(), embeddings.tolist()
    ([True, False], [[3.0, 4.0]])
    >>> cache.close()
    """

    folder: Path | None = None
    max_bytes: int | None = None

    def get(self, fingerprint: str, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Which texts are here, as a mask, and the embeddings of those, (found, dimension), or (0, 0) for none."""
        keys = _keys(fingerprint, texts)
        parts = [keys[start : start + TEXTS_AT_ONCE] for start in range(0, len(keys), TEXTS_AT_ONCE)]
        read = self._with_store(lambda store: [store.read(fingerprint, part) for part in parts]) or []
        filled = [embeddings for _, embeddings in read if len(embeddings)]
        if len({part.shape[1] for part in filled}) != 1:
            return np.zeros(len(keys), dtype=bool), np.empty((0, 0), dtype=np.float32)
        return np.concatenate([found for found, _ in read]), np.concatenate(filled)

    def put(self, fingerprint: str, texts: Sequence[str], embeddings: np.ndarray) -> None:
        """Keep the embeddings of texts, one row for each; those that are here already stay as they are."""
        embeddings = np.asarray(embeddings, dtype=np.float32)
        if embeddings.ndim != 2 or len(embeddings) != len(texts):
            found = f"{{embeddings}} has shape {embeddings.shape}"
            raise UsageError(f"{found}; expected one row for each of {len(texts)} texts", param="embeddings")
        keys = _keys(fingerprint, texts)
        self._with_store(lambda store: store.write(fingerprint, keys, embeddings))

    def info(self) -> CacheInfo:
        """What is kept, and how much of it there may be."""
        path = self._path
        entries = self._with_store(Store.counts) if path and path.is_dir() else None
        return CacheInfo(self._folder, self._bound, sizes(self._folder), entries or {})

    def close(self) -> None:
        """Let go of the file; the next call opens it again."""
        if path := self._path:
            with _lock:
                _close(path)

    @property
    def _path(self) -> Path | None:
        folder = self._folder
        return None if folder is None else (folder / EMBEDDINGS).absolute()

    @property
    def _folder(self) -> Path | None:
        return self.folder if self.folder is not None else cache_folder()

    @property
    def _bound(self) -> int:
        return cache_size() if self.max_bytes is None else check_size(self.max_bytes, "max_bytes")

    def _with_store(self, job: Callable[[Store], Answer]) -> Answer | None:
        """What the job makes of the store; None where there is no store to be had."""
        bound, path = self._bound, self._path
        if bound == 0 or path is None:
            return None
        with _lock:
            if path in _without:
                return None
            try:
                try:
                    return job(_store(path, bound))
                except DamageError as error:
                    _close(path)
                    remove_folder(path)
                    _warn_once(path, f"the embeddings stored in {path} were damaged ({error}) and have been removed")
            except MovedError:
                _close(path)  # the next call opens what is there now
            except (sqlite3.Error, OSError) as error:
                _close(path)
                _without.add(path)
                why = f"embeddings cannot be stored in {path} ({first_line(error)}), so they will be computed again"
                _warn_once(path, f"{why} next time. {REMEDY}")
        return None


# What this process has open, once for all caches and threads: a file's locks belong to the process.
_lock = threading.RLock()
_stores: dict[Path, Store] = {}
_without: set[Path] = set()
_warned: set[Path] = set()


def _store(path: Path, bound: int) -> Store:
    store = _stores.get(path)
    if store is None or store.max_bytes != bound or not store.is_current():
        _close(path)
        file = path / FILE
        if file.exists() and file.stat().st_size > bound:
            remove_folder(path)  # the file never becomes smaller
        remove_embeddings_of_0_1(path.parent)
        store = _stores[path] = Store(path, bound)
    return store


def _close(path: Path) -> None:
    if path in _stores:
        _stores.pop(path).close()


def _warn_once(path: Path, message: str) -> None:
    if path not in _warned:
        _warned.add(path)
        warnings.warn(message, StraysWarning, stacklevel=4)


def forget() -> None:
    """Close all files, and forget which could not be used: for tests, and for those who have mended what was wrong."""
    with _lock:
        for path in list(_stores):
            _close(path)
        _without.clear()
        _warned.clear()


def _close_before_fork() -> None:
    """No open file crosses a fork: SQLite forbids it. The lock is held, so that no thread is at work on one."""
    _lock.acquire()
    for path in list(_stores):
        _close(path)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_close_before_fork, after_in_parent=_lock.release, after_in_child=_lock.release)


def _keys(fingerprint: str, texts: Sequence[str]) -> list[bytes]:
    """A hash for each text that no other text shares, with this encoder or another."""
    encoder = _digest(fingerprint, 16)
    # Half characters are kept apart: with 'replace', texts that differ in them would share a hash.
    return [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=encoder).digest() for text in texts]


def _digest(fingerprint: str, size: int) -> bytes:
    return blake2b(fingerprint.encode("utf-8", "surrogatepass"), digest_size=size).digest()
