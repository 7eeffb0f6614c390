"""Why a text is odd, worked out in a thread: one text at a time, kept, and ahead of being asked when idle."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from strays.apps.review.background import lower_priority
from strays.apps.review.desk import Desk
from strays.apps.review.generation import Generation
from strays.model.examples import Neighbour

# What an encoder reads of a text is shorter than this.
READ_CHARACTERS = 5000
# Explanations that are kept, and those made before anyone asks, of a client's next texts.
MOST_KEPT, AHEAD = 500, 3


class Explainer:
    """Explanations of the desk's texts by its present model."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, int], Future[dict[str, Any]]] = OrderedDict()
        self._ahead: list[int] = []
        self._going_ahead = False
        self._worker = ThreadPoolExecutor(1, "strays-explanations", initializer=lower_priority)

    def why(self, place: int) -> Future[dict[str, Any]]:
        """The explanation of a text, as it will be when it is ready."""
        generation = self._desk.snapshot.generation
        key = (place, generation.number)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self._worker.submit(self._explain, place, generation)
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return self._kept[key]

    def prepare(self, places: Sequence[int]) -> None:
        """Explain these when there is nothing else to do."""
        with self._lock:
            self._ahead = list(places[:AHEAD])
            if self._going_ahead or not self._ahead:
                return
            self._going_ahead = True
        self._worker.submit(self._go_ahead)

    def _go_ahead(self) -> None:
        """One of the texts to come; the next one waits behind what was asked for meanwhile."""
        with self._lock:
            self._going_ahead = bool(self._ahead) and not self._desk.snapshot.refitting
            if not self._going_ahead:
                return
            place = self._ahead.pop(0)
        generation = self._desk.snapshot.generation
        key = (place, generation.number)
        if key not in self._kept:
            done: Future[dict[str, Any]] = Future()
            try:
                done.set_result(self._explain(place, generation))
            except Exception as error:  # told to whoever asks for it
                done.set_exception(error)
            with self._lock:
                self._kept.setdefault(key, done)
        self._worker.submit(self._go_ahead)

    def _explain(self, place: int, generation: Generation) -> dict[str, Any]:
        return explain_text(self._desk.project.entries[place].text, generation)

    def close(self, *, wait: bool = True) -> None:
        """Start no more explanations, and `wait` for the one that is under way."""
        with self._lock:
            self._ahead = []
        self._worker.shutdown(wait=wait, cancel_futures=True)


def explain_text(text: str, generation: Generation) -> dict[str, Any]:
    """What of a text makes it odd and what it is like, as plain data."""
    first = len(text) - len(text.lstrip())
    found = generation.ranking.model.explain(text[first : first + READ_CHARACTERS])
    return {
        "generation": generation.number,
        "what_is_odd": found.what_is_odd(),
        "odd_all_over": found.odd_all_over,
        "copies": found.copies(),
        "segments": [
            {
                "start": utf16_length(text[: first + segment.start]),
                "end": utf16_length(text[: first + segment.end]),
                "effect": round(found.strength(segment), 4),
            }
            for segment in sorted(found.segments, key=lambda segment: segment.start)
        ],
        "nearest_normals": [_short(neighbour) for neighbour in found.nearest_normals],
        "nearest_anomalies": [_short(neighbour) for neighbour in found.nearest_anomalies],
    }


def utf16_length(text: str) -> int:
    """How long JavaScript finds a text: characters beyond the first plane count twice."""
    return len(text) + sum(character > "\uffff" for character in text)


def _short(neighbour: Neighbour) -> dict[str, Any]:
    return asdict(neighbour) | {"text": neighbour.text[:READ_CHARACTERS]}
