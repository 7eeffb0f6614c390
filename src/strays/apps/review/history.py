"""What people did, in order: verdicts and undos, and which verdict stands for a text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass


@dataclass(frozen=True)
class Judgement:
    """What the model said of a text when a person judged it, and why the person was asked."""

    p_value: float | None = None
    anomaly_score: float | None = None
    why: str | None = None


@dataclass(frozen=True)
class Event:
    """One action of a person: a verdict on some texts (by id), or the undoing of an earlier event."""

    id: int
    verdict: str
    who: str
    client: str
    at: str
    undoes: int | None
    judgements: Mapping[int, Judgement]


@dataclass(frozen=True)
class History:
    """All verdicts, oldest first, and the numbers of those that were undone. It never changes: `add` makes another.

    A text's standing verdict is that of its last event that is not undone.

    >>> said = Event(1, "anomaly", "ada", "tab", "2026-01-01", None, {7: Judgement()})
    >>> undo = Event(2, "undo", "ada", "tab", "2026-01-01", 1, {})
    >>> History().add([said]).standing([7, 8])[7].verdict
    'anomaly'
    >>> History().add([said, undo]).standing([7, 8])
    {}
    """

    events: tuple[Event, ...] = ()
    undone: frozenset[int] = frozenset()
    last: int = 0  # the number of the last event, undos included

    def add(self, events: Sequence[Event]) -> History:
        """The history with the next events."""
        verdicts = [event for event in events if event.undoes is None]
        undone = [event.undoes for event in events if event.undoes is not None]
        last = events[-1].id if events else self.last
        return History((*self.events, *verdicts), self.undone.union(undone), last)

    def event(self, number: int) -> Event:
        """The verdict with this number."""
        return self.events[bisect_left(self.events, number, key=lambda event: event.id)]

    def texts(self, event: Event) -> Set[int]:
        """The ids of the texts whose standing verdict an event may have changed."""
        return (event if event.undoes is None else self.event(event.undoes)).judgements.keys()

    def standing(self, texts: Iterable[int]) -> dict[int, Event]:
        """The events that stand for these texts; texts that nobody has judged, or all undone, are left out."""
        found: dict[int, Event] = {}
        wanted = set(texts)
        for event in reversed(self.events):
            if not wanted:
                break
            if event.id not in self.undone:
                here = event.judgements.keys() & wanted
                found |= dict.fromkeys(here, event)
                wanted -= here
        return found

    def of_text(self, text: int) -> list[Event]:
        """All verdicts on a text, undone ones too, oldest first."""
        return [event for event in self.events if text in event.judgements]
