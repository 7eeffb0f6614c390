"""What stays the same while a project is open: its settings, and its texts by place and by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from strays.apps.review.store import Entry
from strays.errors import DataError
from strays.model.labels import parse_labels


class UnknownTextError(DataError):
    """A text was asked for that the corpus does not have."""


class Project:
    """A project's texts. A place is where a text stands in the corpus, which arrays go by; people and pages use ids.

    >>> project = Project("pile.strays", {}, {7: Entry("a hen", 1, (1,)), 9: Entry("a quark", 1, (2,), "anomaly")})
    >>> project.place(9), project.ids[1], project.given
    (1, 9, array([ 0, -1], dtype=int8))
    """

    def __init__(
        self, path: str | Path, settings: Mapping[str, Any], texts: Mapping[int, Entry], *, every: int = 5
    ) -> None:
        self.path = Path(path)
        self.settings = settings
        self.every = every  # new verdicts after which the model is fitted again
        self.ids = tuple(texts)
        self.entries = tuple(texts.values())
        self._place = {id_: place for place, id_ in enumerate(self.ids)}

    def __len__(self) -> int:
        return len(self.ids)

    def place(self, id_: int) -> int:
        """Where a text stands in the corpus."""
        if id_ not in self._place:
            raise UnknownTextError(f"no text has the id {id_}; expected one of this project's")
        return self._place[id_]

    def places(self, ids: Iterable[int]) -> list[int]:
        """Where those of these texts stand that are in the corpus as it is now."""
        return [self._place[id_] for id_ in ids if id_ in self._place]

    @cached_property
    def given(self) -> np.ndarray:
        """The labels that the texts came with, by place: +1 normal, -1 anomaly, 0 none."""
        return parse_labels([entry.given for entry in self.entries], len(self.entries))

    @cached_property
    def n_given(self) -> dict[str, int]:
        """How many texts came with each label."""
        counts = Counter(entry.given for entry in self.entries)
        return {label: counts[label] for label in ("normal", "anomaly")}

    @cached_property
    def n_rows(self) -> int:
        """How many rows of the file the texts have in all."""
        return sum(entry.n_rows for entry in self.entries)

    @cached_property
    def has_ids(self) -> bool:
        """Whether the file has names for its rows."""
        return any(entry.ids for entry in self.entries)

    @cached_property
    def folded(self) -> list[str]:
        """The texts, and what their rows are called, as a search compares them."""
        return ["\n".join([entry.text, *filter(None, entry.ids)]).casefold() for entry in self.entries]
