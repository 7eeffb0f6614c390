"""Looking around in a snapshot: search, lists by verdict and rank, a text with its history, what was done last."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from strays.apps.review.history import Event
from strays.apps.review.snapshot import Snapshot
from strays.apps.review.views import item, row_names

# Of a text, beside an action of the past.
SHOWN_OF_ACTION = 1000


def find_texts(
    now: Snapshot,
    search: str = "",
    label: str = "any",
    flagged: bool | None = None,
    sort: str = "score",
    offset: int = 0,
    limit: int = 50,
) -> dict[str, Any]:
    """One page of the texts that are like this, and how many there are in all."""
    standing, n = now.verdicts.standing, len(now.project)
    shown = np.ones(n, dtype=bool)
    if search:
        wanted = search.casefold()
        shown &= _mask(n, (place for place, text in enumerate(now.project.folded) if wanted in text))
    if label == "none":
        shown &= ~_mask(n, standing)
    elif label != "any":
        kinds = ("normal", "anomaly") if label == "judged" else (label,)
        shown &= _mask(n, (place for place, event in standing.items() if event.verdict in kinds))
    if flagged is not None:
        shown &= now.generation.ranking.flagged == flagged
    places = np.arange(n) if sort == "row" else now.generation.order
    places = places[shown[places]]
    if sort == "recent":
        last = np.zeros(n, dtype=np.int64)
        last[list(standing)] = [event.id for event in standing.values()]
        places = places[np.argsort(-last[places], kind="stable")]
    return {"total": len(places), "items": [item(now, int(place)) for place in places[offset : offset + limit]]}


def text_with_history(now: Snapshot, place: int) -> dict[str, Any]:
    """A text with all that people said of it, the last first."""
    events = reversed(now.verdicts.history.of_text(now.project.ids[place]))
    return item(now, place) | {"history": [_event(now, event) for event in events]}


def last_actions(now: Snapshot, limit: int = 100, before: int | None = None) -> dict[str, Any]:
    """What was done last, the latest first; undone actions are marked."""
    latest = (event for event in reversed(now.verdicts.history.events) if before is None or event.id < before)
    events = list(islice(latest, limit))
    standing = now.verdicts.history.standing(id_ for event in events for id_ in event.judgements)
    return {"events": [_action(now, event, standing) for event in events]}


def _mask(n: int, places: Iterable[int]) -> np.ndarray:
    mask = np.zeros(n, dtype=bool)
    mask[list(places)] = True
    return mask


def _action(now: Snapshot, event: Event, standing: dict[int, Event]) -> dict[str, Any]:
    ids, found = list(event.judgements), _event(now, event)
    shown = now.project.places(ids)[:1]
    entry = now.project.entries[shown[0]] if shown else None
    text = entry.text[:SHOWN_OF_ACTION] if entry else ""
    names = row_names(entry) if entry else []
    replaced = not found["undone"] and all(standing.get(id_) is not event for id_ in ids)
    return found | {"replaced": replaced, "ids": ids, "n": len(ids), "text": text, "names": names}


def _event(now: Snapshot, event: Event) -> dict[str, Any]:
    undone = event.id in now.verdicts.history.undone
    return {"event": event.id, "verdict": event.verdict, "who": event.who, "at": event.at, "undone": undone}
