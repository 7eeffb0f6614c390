"""The models that are served, by name. A model whose folder changes is loaded anew beside the old one, which answers
until the new one is ready and then finishes what it took. One that cannot be loaded changes nothing.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import torch

from strays.apps.server.batches import TOKENS_PER_CORE, TOKENS_PER_ROUND, Batches, BusyError
from strays.apps.server.limits import Limits
from strays.apps.server.log import Log
from strays.apps.server.metrics import Metrics
from strays.encoders import Encoder, LoadedEncoder
from strays.encoders.cores import usable_cores
from strays.errors import ModelError, StraysError, UsageError
from strays.model import TextOutlierDetector
from strays.model.folder import ARRAYS, CONFIG

# What tells that a folder has changed: the files' numbers, times and sizes; None where one is not there.
Stamp = tuple[tuple[int, int, int], ...] | None

# Rounds under way at once: while one's texts are made ready, or its scores go out, another keeps the cores busy.
ROUNDS_AT_ONCE = 2
WATCHED_EVERY = 2.0
WARM_UP = "A text to make the encoder ready with."


@dataclass(frozen=True, eq=False)
class Served:
    """A model as it was loaded, and the calls that wait for it."""

    name: str
    model: TextOutlierDetector
    info: dict[str, Any]
    stamp: Stamp
    batches: Batches
    loaded_at: float

    @property
    def version(self) -> str:
        """What changes when a score could."""
        return str(self.info["version"])


class UnknownModelError(StraysError):
    """There is no model of that name."""


class Shelf:
    """Models by name; the first is what a call gets that names none."""

    def __init__(
        self,
        folders: dict[str, str],
        load: Callable[[str], TextOutlierDetector],
        *,
        limits: Limits,
        metrics: Metrics,
        log: Log,
    ) -> None:
        self.folders, self._load = folders, load
        self._limits, self._metrics, self._log = limits, metrics, log
        self._served: dict[str, Served] = {}
        self._failed: dict[str, tuple[Stamp, str]] = {}
        self._absent: set[str] = set()
        self._encoders: WeakValueDictionary[str, Encoder] = WeakValueDictionary()
        self._executor = ThreadPoolExecutor(ROUNDS_AT_ONCE, "scoring")
        # Of small rounds more threads make more work: they wait for each other, busily.
        torch.set_num_threads(max(1, usable_cores() // ROUNDS_AT_ONCE))
        self._places = asyncio.Semaphore(ROUNDS_AT_ONCE)
        self._explaining, self._n_explaining = asyncio.Lock(), 0
        self._looking = asyncio.Lock()
        self._old: set[asyncio.Task[None]] = set()
        self._models = {name: (stamp_of(folder), load(folder)) for name, folder in folders.items()}

    @property
    def names(self) -> list[str]:
        """The names of all models."""
        return list(self.folders)

    @property
    def ready(self) -> bool:
        """Whether every model can answer."""
        return len(self._served) == len(self.folders)

    @property
    def waiting(self) -> int:
        """Texts that wait, for any model."""
        return sum(served.batches.waiting for served in self._served.values())

    def get(self, name: str | None = None) -> Served | None:
        """The model of that name, or the first; None while it is being loaded."""
        name = self.names[0] if name is None else name
        if name not in self.folders:
            raise UnknownModelError(f"there is no model of that name here; expected one of {', '.join(self.names)}")
        return self._served.get(name)

    def failure(self, name: str) -> str | None:
        """Why the model's changed folder could not be loaded, where that is so."""
        return self._failed[name][1] if name in self._failed else None

    async def open(self) -> None:
        """Make all models ready."""
        for name, (stamp, model) in self._models.items():
            self._serve(name, stamp, *await asyncio.to_thread(self._warmed, model))
        self._models = {}
        _settle()

    async def watch(self) -> None:
        """Load anew what changes, until cancelled."""
        while True:
            await asyncio.sleep(WATCHED_EVERY)
            await self.look()

    async def look(self, *, again: bool = False) -> None:
        """Load the models anew whose folders have changed; `again` also those that could not be loaded."""
        async with self._looking:
            for name, folder in self.folders.items():
                served, stamp = self._served.get(name), stamp_of(folder)
                if served is None:
                    continue
                if stamp is None:  # just being replaced, unless it stays so
                    if (again or name in self._absent) and name not in self._failed:
                        self._fail(name, stamp, ModelError(f"{folder}: there is no model in it any more"))
                    self._absent.add(name)
                    continue
                self._absent.discard(name)
                if again or stamp == served.stamp:
                    self._failed.pop(name, None)
                tried = self._failed[name][0] if name in self._failed else None
                if stamp not in (served.stamp, tried):
                    await self._renew(name, folder, stamp, served)

    async def _renew(self, name: str, folder: str, stamp: Stamp, old: Served) -> None:
        try:
            ready = await asyncio.to_thread(lambda: self._warmed(self._load(folder)))
        except Exception as error:
            self._fail(name, stamp, error)
            return
        self._failed.pop(name, None)
        self._serve(name, stamp, *ready)
        task = asyncio.get_running_loop().create_task(self._retire(old))
        self._old.add(task)
        task.add_done_callback(self._old.discard)

    async def _retire(self, old: Served) -> None:
        await old.batches.drained()
        del old  # so that it is not among what stays
        _settle()

    def _fail(self, name: str, stamp: Stamp, error: Exception) -> None:
        words = str(error) if isinstance(error, StraysError) else type(error).__name__
        self._failed[name] = stamp, words
        self._metrics.loads.labels(name, "failed").inc()
        self._log.error("model_not_loaded", error, model=name, reason=words)

    def _warmed(self, model: TextOutlierDetector) -> tuple[TextOutlierDetector, dict[str, Any]]:
        """A model that has scored once, with an encoder that models of the same encoder share; and what it is."""
        model = model.without_cache()  # what is asked of a server is not written down
        encoder = model.encoder_
        if isinstance(encoder, LoadedEncoder):
            encoder = encoder.without_warnings()
            model = model.with_encoder(self._encoders.setdefault(encoder.fingerprint, encoder))
        model.anomaly_score([WARM_UP])
        return model, model.info()

    def _serve(self, name: str, stamp: Stamp, model: TextOutlierDetector, info: dict[str, Any]) -> None:
        texts, seconds = self._metrics.rounds.labels(name), self._metrics.round_seconds.labels(name)

        def on_round(n_texts: int, took: float) -> None:
            texts.observe(n_texts)
            seconds.observe(took)

        batches = Batches(
            model.anomaly_score,
            self._places,
            self._executor,
            self._limits.waiting,
            max(TOKENS_PER_ROUND, TOKENS_PER_CORE * usable_cores()),
            on_round,
        )
        served = Served(name, model, info, stamp, batches, time.time())
        self._served[name] = served
        self._metrics.loads.labels(name, "loaded").inc()
        self._metrics.loaded.labels(name).set(served.loaded_at)
        self._metrics.waiting.labels(name).set_function(lambda: batches.waiting)
        self._log.write("model_loaded", model=name, version=served.version)

    async def explain(self, served: Served, texts: list[str], gone: asyncio.Future[Any]) -> list[dict[str, Any]]:
        """Explanations of texts, as plain data; one call after the other, so that scores never wait for all of them."""
        if self._n_explaining >= self._limits.explaining:
            raise BusyError(f"{self._n_explaining} calls for explanations are under way")
        self._n_explaining += 1
        try:
            async with self._explaining, self._places:
                if gone.done():
                    raise asyncio.CancelledError
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self._executor, served.model.explain_many, texts)
        finally:
            self._n_explaining -= 1
        return [explanation.to_dict() for explanation in found]

    async def close(self) -> None:
        """Finish what was taken."""
        for served in self._served.values():
            await served.batches.drained()
        self._executor.shutdown(wait=False, cancel_futures=True)  # nobody waits for what is left
        gc.unfreeze()


def named_folders(given: list[str]) -> dict[str, str]:
    """DIR or NAME=DIR, each, as folders by name; a folder without a name is called what it is called."""
    found: dict[str, str] = {}
    for one in given:
        name, is_named, folder = one.partition("=")
        if not is_named or Path(one).is_dir():
            name, folder = Path(one).resolve().name, one
        if not name or not folder or len(name) > 100 or not name.isprintable():
            raise UsageError(f"--model is {one!r:.200}; expected a folder, or NAME=FOLDER")
        if name in found:
            raise UsageError(f"two models are called {name!r}; give them names: --model NAME=DIR")
        found[name] = folder
    return found


def _settle() -> None:
    """Let no collection of garbage look through what stays, libraries and models: calls would wait for it."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def stamp_of(folder: str) -> Stamp:
    """What the files of a model look like from outside."""
    try:
        files = [(Path(folder) / name).stat() for name in (CONFIG, ARRAYS)]
    except OSError:
        return None
    return tuple((file.st_ino, file.st_mtime_ns, file.st_size) for file in files)
