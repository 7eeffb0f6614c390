"""The corpus as a map: where each text lies, laid out once; how odd each is and what was said of it, at any moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from strays.apps.review.background import in_words, start_thread
from strays.apps.review.desk import Desk
from strays.apps.review.snapshot import Snapshot
from strays.detectors.sampling import evenly
from strays.errors import StraysError
from strays.jobs.report.layout import layout
from strays.jobs.report.points import MOST_POINTS
from strays.model.labels import WORD

# Of a corpus with more texts than points, these are the oddest; the others are spread evenly over it.
ODDEST = 5_000


class CorpusMap:
    """The map of a desk's corpus, laid out in a thread."""

    def __init__(self, desk: Desk, layout: Callable[..., np.ndarray] = layout) -> None:
        self._learner = desk.learner
        self._layout = layout
        self._places = _sample(desk.snapshot.generation.order)
        self._at: np.ndarray | None = None
        self._trouble: str | None = None
        start_thread(self._lay_out, "strays-map")

    def _lay_out(self) -> None:
        try:
            self._at = self._layout(self._learner.X[self._places], random_state=self._learner.random_state)
        except Exception as error:  # the desk works without a map
            self._trouble = f"the map could not be made: {in_words(error)}"

    def points(self, now: Snapshot) -> dict[str, Any] | None:
        """All points with their places; None while these are worked out."""
        if self._trouble:
            raise StraysError(self._trouble)
        if self._at is None:
            return None
        x, y = np.round(self._at.astype(np.float64), 4).T.tolist()
        return {"ids": [now.project.ids[place] for place in self._places], "x": x, "y": y} | self.values(now)

    def values(self, now: Snapshot) -> dict[str, Any]:
        """How odd each point is, from 0 to 1 by the logarithm of its rank, and its mark."""
        labels = now.verdicts.y[self._places].tolist()
        flagged = now.generation.ranking.flagged[self._places].tolist()
        value = 1 - np.log(now.generation.rank[self._places]) / np.log(max(len(now.project), 2))
        return {
            "generation": now.generation.number,
            "value": np.round(value, 3).tolist(),
            "mark": [WORD[label] or ("flagged" if flag else "") for label, flag in zip(labels, flagged, strict=True)],
        }


def _sample(order: np.ndarray) -> np.ndarray:
    """Places to show, from places ordered by oddness."""
    if len(order) <= MOST_POINTS:
        return np.sort(order)
    return np.sort(np.concatenate([order[:ODDEST], evenly(np.sort(order[ODDEST:]), MOST_POINTS - ODDEST)]))
