"""What people have said so far, in memory: which event holds for a text, and what came before."""

from __future__ import annotations

from collections import defaultdict

from strays.apps.review.store import Event


class History:
    """Events in their order. A text's standing verdict is that of its last event that is not undone."""

    def __init__(self) -> None:
        self.events: dict[int, Event] = {}
        self.undone: set[int] = set()
        self._of_text: dict[int, list[int]] = defaultdict(list)
        # The number of the last event, undos included.
        self.last = 0

    def add(self, event: Event) -> list[int]:
        """Take in the next event; gives the texts whose standing verdict it may have changed."""
        self.last = event.id
        if event.undoes is not None:
            self.undone.add(event.undoes)
            return list(self.events[event.undoes].judgements)
        self.events[event.id] = event
        for text in event.judgements:
            self._of_text[text].append(event.id)
        return list(event.judgements)

    def standing(self, text: int) -> Event | None:
        """The event that holds for a text; None where nobody has judged it, or all was undone."""
        return next((event for event in reversed(self.of_text(text)) if event.id not in self.undone), None)

    def of_text(self, text: int) -> list[Event]:
        """All events that judged a text, undone ones too, the oldest first."""
        return [self.events[id_] for id_ in self._of_text.get(text, ())]
