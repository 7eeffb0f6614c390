"""Damage in what strays keeps on disk: the result is the same, bit for bit, or there is a clear error.

One bit is flipped in an encoder's graph for ONNX Runtime, in the table of a static encoder, or in the cache of
embeddings; the cache is also hit where a database is most easily hurt: the heads of its pages, whole pages, its end,
and the journal of a process that was killed. Worked means: every embedding is the one of undamaged files, what was
damaged is made again, and nothing was ever taken for another text's.

    python -m benchmarks.attacks.kept --n 4500 --seed 0
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.attacks.runner import Attack, WrongResultError, main
from benchmarks.attacks.saved import ANIMALS, ODD, TEXTS
from benchmarks.tiny_bert import save_bert_of
from strays.encoders import load_encoder
from strays.encoders.cache import EmbeddingCache, store
from strays.encoders.cache.folder import EMBEDDINGS, MODELS
from strays.encoders.runtimes import graph_file

ENCODERS = {"graph": ("", "int8"), "static table": ("fast:", None)}
ANY_BIT = "cache, any bit"
AIMED = (
    "cache, any bit of a journal",
    "cache, head of a page",
    "cache, page of zeros",
    "cache, page from elsewhere",
    "cache, cut off",
    "cache, junk",
)
# Of four cases in 18 each: 1,000 of 4,500.
OFTEN = [*ENCODERS, ANY_BIT] * 4
N_KEPT, DIMENSION, SIZE = 600, 48, 10**7
PAGE = store.PAGE
FINGERPRINTS = ("of one encoder", "of another encoder")


class Kept(Attack):
    """The cache folder, damaged."""

    name: ClassVar = "kept"
    allowance: ClassVar = 80_000_000

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__(root, seed)
        self.encoder = root / "encoder"
        self.may_read = (str(self.encoder),)
        child = os.fork()  # running a model starts threads, which a process that is to fork should not have
        if not child:
            try:
                self._prepare()
                os._exit(0)
            finally:
                os._exit(1)
        if os.waitpid(child, 0)[1]:
            raise RuntimeError("the files to damage could not be made")
        self.expected = {kind: np.load(root / f"{kind}.npy") for kind in ENCODERS}

    def kinds(self) -> list[str]:
        """Names of the mutations."""
        return [*OFTEN, *AIMED]

    def warm_up(self) -> None:
        """Make everything anew once: what is imported then is no memory of the first case."""
        for kind in ENCODERS:
            os.environ["STRAYS_CACHE"] = str(self.root / "cache" / "warm")
            shutil.rmtree(self.root / "cache" / "warm", ignore_errors=True)
            self._encode(kind)

    def make(self, kind: str, rng: np.random.Generator, folder: Path) -> str:
        """Copy what is kept, and damage one file of it."""
        self.kind = kind
        forget_caches()
        os.environ["STRAYS_CACHE"] = str(folder)
        kept = "killed" if "journal" in kind else "kept"
        shutil.copytree(self.root / kept, folder, dirs_exist_ok=True)
        if kind in ENCODERS:
            return _flip(rng, _pick(rng, _files_of(kind, folder / MODELS)))
        database = max(_cache_files(folder), key=lambda path: path.stat().st_size)
        if "journal" in kind:
            journal = [path for path in _cache_files(folder) if path != database]
            return _flip(rng, _pick(rng, journal))
        return _harm(rng, kind, database)

    def use(self, folder: Path) -> None:
        """Encode with what is there, twice: what was damaged must not come back either."""
        for turn in range(2):
            if self.kind in ENCODERS:
                if not np.array_equal(self._encode(self.kind), self.expected[self.kind]):
                    raise WrongResultError(f"other embeddings, turn {turn}")
                continue
            cache = EmbeddingCache(folder, SIZE)
            for fingerprint in FINGERPRINTS:
                _check(cache, fingerprint, turn)
            for fingerprint in FINGERPRINTS:
                if not cache.get(fingerprint, _texts())[0].all():
                    cache.put(fingerprint, _texts(), embeddings(fingerprint))
            cache.info()
            cache.close()

    def _encode(self, kind: str) -> np.ndarray:
        prefix, precision = ENCODERS[kind]
        encoder = load_encoder(f"{prefix}{self.encoder}", precision=precision, cache=False, device="cpu")
        return encoder.encode([*TEXTS, *ODD])

    def _prepare(self) -> None:
        words = sorted({word for text in [*TEXTS, *ODD] for word in text.split()} | set(ANIMALS))
        save_bert_of(words, self.encoder)
        kept = self.root / "kept"
        os.environ["STRAYS_CACHE"] = str(kept)
        for kind in ENCODERS:
            np.save(self.root / f"{kind}.npy", self._encode(kind))
        cache = EmbeddingCache(kept, SIZE)
        for fingerprint in FINGERPRINTS:
            cache.put(fingerprint, _texts(), embeddings(fingerprint))
        cache.close()
        self._kill_while_writing()

    def _kill_while_writing(self) -> None:
        """A copy of the cache as a process leaves it that is killed in the middle of a transaction."""
        killed = self.root / "killed"
        shutil.copytree(self.root / "kept", killed)
        child = os.fork()
        if not child:
            insert = store.Store._insert

            def insert_and_die(*args: Any) -> None:
                insert(*args)
                os.kill(os.getpid(), signal.SIGKILL)

            # With little memory, pages are written before the transaction ends, and the journal is needed to undo it.
            store.SETTINGS = (*store.SETTINGS, "PRAGMA cache_size=4")
            setattr(store.Store, "_insert", insert_and_die)  # noqa: B010 - mypy refuses the plain assignment
            more = [f"more {i}" for i in range(5 * N_KEPT)]
            EmbeddingCache(killed, SIZE).put(FINGERPRINTS[0], more, np.ones((len(more), DIMENSION)))
            os._exit(0)
        os.waitpid(child, 0)
        if len(_cache_files(killed)) != 2:
            raise RuntimeError("there is no journal to damage")


def embeddings(fingerprint: str) -> np.ndarray:
    """The embeddings that are kept of all texts."""
    rng = np.random.default_rng(FINGERPRINTS.index(fingerprint))
    return rng.normal(size=(N_KEPT, DIMENSION)).astype(np.float32)


def forget_caches() -> None:
    """Caches that failed are not tried again in the same process; in an attack they must be."""
    from strays.encoders.cache.embeddings import forget

    forget()


def _texts() -> list[str]:
    return [f"text {i}" for i in range(N_KEPT)]


def _check(cache: EmbeddingCache, fingerprint: str, turn: int) -> None:
    found, here = cache.get(fingerprint, _texts())
    if found.any() and not np.array_equal(here, embeddings(fingerprint)[found]):
        raise WrongResultError(f"{fingerprint}, turn {turn}: an embedding is not the one that was stored")


def _cache_files(folder: Path) -> list[Path]:
    return list((folder / EMBEDDINGS).iterdir())


def _files_of(kind: str, folder: Path) -> list[Path]:
    """The files that a case may hit: the large one half of the time, else one of all that belong to it."""
    is_graph = kind != "static table"
    mine = [path for path in sorted(folder.glob("*/*")) if path.parent.name.startswith("onnx") == is_graph]
    large = [path for path in mine if path.name in (graph_file.FILE, "table.safetensors")]
    return large * len(mine) + mine


def _flip(rng: np.random.Generator, path: Path, first: int = 0, end: int | None = None) -> str:
    data = bytearray(path.read_bytes())
    at = int(rng.integers(8 * first, 8 * (len(data) if end is None else min(end, len(data)))))
    data[at // 8] ^= 1 << at % 8
    path.write_bytes(data)
    return f"{path.name}, bit {at}"


def _harm(rng: np.random.Generator, kind: str, path: Path) -> str:
    data = bytearray(path.read_bytes())
    pages = len(data) // PAGE
    page, other = (PAGE * int(rng.integers(pages)) for _ in range(2))
    if kind == ANY_BIT:
        return _flip(rng, path)
    if kind == "cache, head of a page":
        return _flip(rng, path, page, page + 128)
    if kind == "cache, cut off":
        end = int(rng.integers(len(data))) if rng.random() < 0.5 else page
        os.truncate(path, end)
        return f"{path.name} of {end} bytes"
    if kind == "cache, page of zeros":
        data[page : page + PAGE] = bytes(PAGE)
    elif kind == "cache, page from elsewhere":
        data[page : page + PAGE] = data[other : other + PAGE]
    else:
        size = int(rng.integers(1, 2 * PAGE))
        data[page : page + size] = rng.bytes(size)
    path.write_bytes(data)
    return f"{path.name}, page {page // PAGE}, {other // PAGE}"


def _pick(rng: np.random.Generator, paths: list[Path]) -> Path:
    return paths[int(rng.integers(len(paths)))]


if __name__ == "__main__":
    main(Kept)
