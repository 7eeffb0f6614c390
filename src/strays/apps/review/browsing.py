"""Looking around in the corpus: search, lists by verdict and rank, a text with its history, what was done last."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from strays.apps.review.desk import Desk
from strays.apps.review.store import Event


class Browser:
    """Lists of the desk's texts."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @cached_property
    def _folded(self) -> list[str]:
        return [entry.text.casefold() for entry in self._desk.entries]

    def texts(
        self,
        search: str = "",
        label: str = "any",
        flagged: bool | None = None,
        sort: str = "score",
        offset: int = 0,
        limit: int = 50,
    ) -> dict[str, Any]:
        """One page of the texts that are like this, and how many there are in all."""
        desk, standing = self._desk, self._desk.standing()
        generation, shown = desk.generation, np.ones(len(self._desk.ids), dtype=bool)
        if search:
            wanted = search.casefold()
            shown &= self._mask(place for place, text in enumerate(self._folded) if wanted in text)
        if label == "none":
            shown &= ~self._mask(standing)
        elif label != "any":
            kinds = ("normal", "anomaly") if label == "judged" else (label,)
            shown &= self._mask(place for place, event in standing.items() if event.verdict in kinds)
        if flagged is not None:
            shown &= generation.ranking.flagged == flagged
        places = np.arange(len(shown)) if sort == "row" else generation.order
        places = places[shown[places]]
        if sort == "recent":
            last = np.zeros(len(shown), dtype=np.int64)
            last[list(standing)] = [event.id for event in standing.values()]
            places = places[np.argsort(-last[places], kind="stable")]
        with desk.lock:
            items = [desk.item(int(place)) for place in places[offset : offset + limit]]
        return {"total": len(places), "items": items}

    def _mask(self, places: Iterable[int]) -> np.ndarray:
        mask = np.zeros(len(self._desk.ids), dtype=bool)
        mask[list(places)] = True
        return mask

    def text(self, place: int) -> dict[str, Any]:
        """A text with all that people said of it, the last first."""
        desk = self._desk
        with desk.lock:
            desk.take_in()
            events = reversed(desk.history.of_text(desk.ids[place]))
            past = [_event(event, event.id in desk.history.undone) for event in events]
            return desk.item(place) | {"history": past}

    def history(self, limit: int = 100, before: int | None = None) -> dict[str, Any]:
        """What was done last, the latest first; undone actions are marked."""
        desk = self._desk
        with desk.lock:
            desk.take_in()
            latest = (e for e in reversed(desk.history.events.values()) if before is None or e.id < before)
            events = list(islice(latest, limit))
            return {"events": [self._action(event) for event in events]}

    def _action(self, event: Event) -> dict[str, Any]:
        desk, ids = self._desk, list(event.judgements)
        shown = next((id_ for id_ in ids if desk.has(id_)), None)
        text = desk.entries[desk.place(shown)].text[:1000] if shown is not None else ""
        undone = event.id in desk.history.undone
        replaced = not undone and all(desk.history.standing(id_) is not event for id_ in ids)
        return _event(event, undone) | {"replaced": replaced, "ids": ids, "n": len(ids), "text": text}


def _event(event: Event, undone: bool) -> dict[str, Any]:
    return {"event": event.id, "verdict": event.verdict, "who": event.who, "at": event.at, "undone": undone}
