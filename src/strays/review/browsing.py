"""Looking around in the corpus: search, lists by verdict and rank, a text with its history, what was done last."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from strays.review.desk import Desk
from strays.review.store import Event


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
        why: str = "",
        sort: str = "score",
        offset: int = 0,
        limit: int = 50,
    ) -> dict[str, Any]:
        """One page of the texts that are like this, and how many there are in all."""
        desk, wanted = self._desk, search.casefold()
        desk.take_in()
        found = [place for place, text in enumerate(self._folded) if wanted in text] if wanted else range(len(desk.ids))
        with desk.lock:
            generation = desk.generation
            if label != "any":
                found = [place for place in found if _is(desk.standing(place), label)]
            if flagged is not None:
                found = [place for place in found if bool(generation.ranking.flagged[place]) == flagged]
            if why:
                found = [place for place in found if (desk.why(place) or "") == why]
            if sort == "score":
                ordered = sorted(found, key=generation.rank.tolist().__getitem__)
            elif sort == "recent":
                ordered = sorted(found, key=lambda place: (-_number(desk.standing(place)), generation.rank[place]))
            else:
                ordered = list(found)
            items = [desk.item(place) for place in ordered[offset : offset + limit]]
        return {"total": len(ordered), "items": items}

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
            numbers = np.array(list(desk.history.events), dtype=np.int64)
            if before is not None:
                numbers = numbers[numbers < before]
            events = [desk.history.events[int(number)] for number in numbers[::-1][:limit]]
            return {"events": [self._action(event) for event in events]}

    def _action(self, event: Event) -> dict[str, Any]:
        desk, ids = self._desk, list(event.judgements)
        shown = next((id_ for id_ in ids if desk.has(id_)), None)
        text = desk.entries[desk.place(shown)].text[:1000] if shown is not None else ""
        more = {"ids": ids, "n": len(ids), "text": text}
        return _event(event, event.id in desk.history.undone) | more


def _is(event: Event | None, label: str) -> bool:
    """Whether a standing verdict is of the kind asked for."""
    verdict = event.verdict if event else None
    if label == "none":
        return verdict is None
    return verdict in ("normal", "anomaly") if label == "judged" else verdict == label


def _number(event: Event | None) -> int:
    return event.id if event else 0


def _event(event: Event, undone: bool) -> dict[str, Any]:
    return {"event": event.id, "verdict": event.verdict, "who": event.who, "at": event.at, "undone": undone}
