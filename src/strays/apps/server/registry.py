"""The model registry: served models by name, reloaded when their folders change.

A changed model is loaded beside the old one, which answers until the new one is ready and then finishes its calls. If
the new one cannot be loaded, the old one stays.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from strays.apps.server.batches import Batches, ScoringThreads
from strays.apps.server.limits import Limits
from strays.apps.server.metrics import Metrics
from strays.apps.web.log import Log
from strays.encoders import Encoder, LoadedEncoder
from strays.errors import ModelError, StraysError, UsageError
from strays.files import real_path
from strays.model import TextOutlierDetector
from strays.model.folder import ARRAYS, CONFIG

Load = Callable[[str], TextOutlierDetector]
# Tells that a folder has changed: the inode, time and size of its files; None if one is missing.
Stamp = tuple[tuple[int, int, int], ...] | None

WATCH_SECONDS = 2.0
WARM_UP = "A text that makes the encoder ready."


class UnknownModelError(StraysError):
    """No model has that name."""


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A loaded model and the calls that wait for it; `stamp` tells what its folder looked like."""

    name: str
    model: TextOutlierDetector
    info: dict[str, Any]
    stamp: object
    batches: Batches
    loaded_at: float


class ModelRegistry:
    """Models by name; a call that names none gets the first."""

    def __init__(self, folders: dict[str, str], load: Load, *, limits: Limits, metrics: Metrics, log: Log) -> None:
        self.names, self._folders, self._load = list(folders), folders, load
        self.limits, self.metrics, self.log = limits, metrics, log
        self._served: dict[str, ServedModel] = {}
        self._failed: dict[str, Stamp] = {}
        self._absent: set[str] = set()
        self._encoders: WeakValueDictionary[str, Encoder] = WeakValueDictionary()
        self.threads = ScoringThreads(limits)
        self._checking = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._models = {name: (stamp_of(folder), load(folder)) for name, folder in folders.items()}

    @property
    def ready(self) -> bool:
        """Whether every model can answer."""
        return len(self._served) == len(self.names)

    @property
    def waiting(self) -> int:
        """How many texts wait, for any model."""
        return sum(served.batches.waiting for served in self._served.values())

    def get(self, name: str | None = None) -> ServedModel | None:
        """The model of that name, or the first; None while it is being loaded."""
        name = self.names[0] if name is None else name
        if name not in self.names:
            raise UnknownModelError(f"no model has that name; expected one of {', '.join(self.names)}")
        return self._served.get(name)

    def has_failed(self, name: str) -> bool:
        """Whether the model's changed folder could not be loaded; the log says why."""
        return name in self._failed

    async def open(self) -> None:
        """Make all models ready."""
        for name, (stamp, model) in self._models.items():
            self._serve(name, stamp, *await asyncio.to_thread(self._warmed, model))
        self._models = {}
        _freeze_garbage()

    async def watch(self) -> None:
        """Reload what changes, until cancelled."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            await self.reload_changed()

    async def reload_changed(self, *, retry: bool = False) -> None:
        """Reload the models whose folders have changed; with `retry` also those that failed to load."""
        async with self._checking:
            for name, served in list(self._served.items()):
                folder, stamp = self._folders[name], stamp_of(self._folders[name])
                if stamp is None:  # probably being replaced; a failure only if it stays so
                    if (retry or name in self._absent) and name not in self._failed:
                        self._fail(name, stamp, ModelError(f"{folder}: there is no model in it any more"))
                    self._absent.add(name)
                    continue
                self._absent.discard(name)
                if retry or stamp == served.stamp:
                    self._failed.pop(name, None)
                if stamp not in (served.stamp, self._failed.get(name)):
                    await self._reload(name, folder, stamp, served)

    def reload_soon(self) -> None:
        """Begin to reload what has changed or failed, and do not wait for it."""
        self._start(self.reload_changed(retry=True))

    async def close(self, seconds: float = 1.0) -> None:
        """Drop what has not begun, and wait so long for the rest: all calls have their answers."""
        self.threads.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for served in self._served.values():
                    await served.batches.drained()
        gc.unfreeze()

    async def _reload(self, name: str, folder: str, stamp: Stamp, old: ServedModel) -> None:
        try:
            ready = await asyncio.to_thread(lambda: self._warmed(self._load(folder)))
        except Exception as error:
            self._fail(name, stamp, error)
            return
        self._failed.pop(name, None)
        self._serve(name, stamp, *ready)
        self._start(self._retire(old))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)  # or it might be collected before it is done
        task.add_done_callback(self._tasks.discard)

    async def _retire(self, old: ServedModel) -> None:
        await old.batches.drained()
        del old  # or it would be among what is frozen
        _freeze_garbage()

    def _fail(self, name: str, stamp: Stamp, error: Exception) -> None:
        words = str(error) if isinstance(error, StraysError) else type(error).__name__
        self._failed[name] = stamp
        self.metrics.loads.labels(name, "failed").inc()
        self.log.error("model_not_loaded", error, model=name, reason=words)

    def _warmed(self, model: TextOutlierDetector) -> tuple[TextOutlierDetector, dict[str, Any]]:
        """A model that has scored once, whose encoder is shared by models of the same one; and what it is."""
        model = model.without_cache()  # texts sent to a server are not kept
        encoder = model.encoder_
        if isinstance(encoder, LoadedEncoder):
            encoder = encoder.without_warnings()
            model = model.with_encoder(self._encoders.setdefault(encoder.fingerprint, encoder))
        model.anomaly_score([WARM_UP])
        return model, model.info()

    def _serve(self, name: str, stamp: Stamp, model: TextOutlierDetector, info: dict[str, Any]) -> None:
        texts, seconds = self.metrics.rounds.labels(name), self.metrics.round_seconds.labels(name)

        def on_round(n_texts: int, took: float) -> None:
            texts.observe(n_texts)
            seconds.observe(took)

        batches = self.threads.batches(model, on_round)
        served = self._served[name] = ServedModel(name, model, info, stamp, batches, time.time())
        self.metrics.loads.labels(name, "loaded").inc()
        self.metrics.loaded.labels(name).set(served.loaded_at)
        self.metrics.waiting.labels(name).set_function(lambda: batches.waiting)
        self.log.write("model_loaded", model=name, version=info["version"])


def named_folders(given: list[str]) -> dict[str, str]:
    """DIR or NAME=DIR, each, as folders by name; the default name is that of the folder.

    >>> named_folders(["spam=/models/3", "/models/reviews"])
    {'spam': '/models/3', 'reviews': '/models/reviews'}
    """
    found: dict[str, str] = {}
    for one in given:
        name, is_named, folder = one.partition("=")
        if not is_named or Path(one).is_dir():
            name, folder = real_path(one).name, one
        if not name or not folder or len(name) > 100 or not name.isprintable():
            raise UsageError(f"{{model}} is {one!r:.200}; expected a folder, or NAME=FOLDER", param="model")
        if name in found:
            raise UsageError(f"two models are called {name!r}; give each a name: {{model}} NAME=DIR", param="model")
        found[name] = folder
    return found


def _freeze_garbage() -> None:
    """Exclude libraries and models from garbage collection: calls would have to wait for it."""
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
