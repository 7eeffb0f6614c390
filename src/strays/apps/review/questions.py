"""Which texts to ask a person about next, and why each.

There are four kinds of questions, of which none is the best everywhere:

    odd        the highest score: finds anomalies as long as the model knows what to look for
    unsure     the score midway between those of the normals and of the anomalies judged so far: shows where to stop
    different  of the odd ones, the text farthest from all that was judged: finds what the model does not know of
    group      of the texts of an unusual form, one whose nearest neighbours among these are closest, away from all that
               was judged: finds anomalies that vouch for each other, such as messages made from a template

Each kind is asked as often as it is likely to be the one that finds most: its chance of a hit is drawn from a Beta
distribution of its hits and misses so far, and the highest draw asks (Thompson sampling; Thompson 1933). Where the
oddest texts are anomalies, nearly all questions are about the oddest; where they are not, others get their turn. Older
answers count for less, because the model has learnt since.

Of near copies, which score exactly the same, one is asked about at a time: the next one once the model has learnt the
answer, and may rank it elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strays.detectors.kernel_ridge import squared_distances
from strays.detectors.sampling import evenly
from strays.jobs.alike import first_of_tied

# Why a text is asked about, by kind, in words for the person who is asked.
WHY = {
    "odd": "among the oddest that nobody has judged",
    "unsure": "between what was called normal and what was called an anomaly",
    "different": "odd, and unlike all that has been judged so far",
    "group": "one of a close group of texts of an unusual form",
}
# Hits and misses that each kind starts with, and how many answers ago one counts half; chosen on dev corpora, after an
# earlier choice had been seen on some test piles; see benchmarks/LOG.md.
PRIOR = {"odd": (4, 4), "unsure": (1, 19), "different": (1, 19), "group": (1, 19)}
HALF_LIFE = 40
# `different` looks among this many of the oddest open texts, and this share of all; away from at most this many judged
# ones.
POOL, POOL_SHARE, MOST_JUDGED = 500, 1 / 7, 2000
# How closely a text lies in a group is told by so many neighbours. A judged text is one of the group if it would be
# among so many, and its squared distance is at most so many times the mean one of the former.
N_ALIKE, N_GROUP, REACH = 5, 20, 2.0


@dataclass(frozen=True)
class Question:
    """A text to ask about, by its place in the corpus, and the kind of reason: a key of WHY.

    >>> scores, y = np.array([0.1, 0.9, 0.5]), np.array([0, 0, 1])
    >>> hits = [("odd", True)] * 200
    >>> choose_questions(scores, np.eye(3), y, y == 0, 1, answers=hits, rng=np.random.default_rng(0))
    [Question(place=1, why='odd')]
    """

    place: int
    why: str


def choose_questions(
    scores: np.ndarray,
    X: np.ndarray,
    y: np.ndarray,
    open_: np.ndarray,
    n: int,
    *,
    answers: Sequence[tuple[str, bool]],
    rng: np.random.Generator,
    later: np.ndarray | None = None,
    form: np.ndarray | None = None,
) -> list[Question]:
    """The next n texts to ask about, in the order to ask in.

    `scores` and embeddings `X` are of all texts; `y` is what people said (+1 normal, -1 anomaly, 0 nothing); `open_`
    says which texts may be asked about; `answers` are the kinds of the questions so far, oldest first, and whether each
    found an anomaly; `later` says which are asked about only where no others are left; `form` is how unusual the form
    of each text is, where that is known.
    """
    rows = np.flatnonzero(open_)
    by_score = rows[np.argsort(-scores[rows], kind="stable")]
    waits = np.zeros(len(rows), dtype=bool) if later is None else later[by_score]
    by_score, waiting = by_score[~waits], by_score[waits]
    by_edge = by_score[np.argsort(np.abs(scores[by_score] - _edge(scores, y)), kind="stable")]
    next_of = {"odd": iter(by_score), "unsure": iter(by_edge)}
    pool = min(POOL, math.ceil(POOL_SHARE * len(by_score)))
    judged = evenly(np.flatnonzero(y), MOST_JUDGED)
    away = _Away(X, by_score[:pool], judged)
    by_form = by_score[:0] if form is None else by_score[np.argsort(-form[by_score], kind="stable")]
    groups = _Groups(X, by_form[:pool], judged)
    chances = _chances(answers)
    asked: dict[int, str] = {}
    while len(asked) < min(n, len(by_score)):
        draws = {kind: rng.beta(*hits_and_misses) for kind, hits_and_misses in chances.items()}
        kind = max(draws, key=lambda kind: draws[kind])
        row = away.farthest() if kind == "different" else groups.closest() if kind == "group" else None
        if row is None:
            kind = kind if kind in next_of else "odd"
            row = next(int(row) for row in next_of[kind] if row not in asked)
        asked[row] = kind
        away.add(row)
        groups.add(row)
    asked |= dict.fromkeys(waiting[: n - len(asked)].tolist(), "odd")
    return [Question(row, kind) for row, kind in asked.items()]


def near_copies(scores: np.ndarray, open_: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """Which open texts score the same as another one that is asked about first, or is judged and not learnt yet.

    >>> scores, none = np.array([0.5, 0.9, 0.9, 0.9]), np.zeros(4, dtype=bool)
    >>> near_copies(scores, ~none, fresh=none)
    array([False, False,  True,  True])
    """
    rows = np.flatnonzero(open_ | fresh)
    by_score = rows[np.lexsort((~fresh[rows], -scores[rows]))]
    found = np.zeros(len(scores), dtype=bool)
    found[by_score[~first_of_tied(scores[by_score])]] = True
    return found & open_


def _chances(answers: Sequence[tuple[str, bool]]) -> dict[str, tuple[float, float]]:
    """Hits and misses of each kind, those it starts with included."""
    found = {kind: [float(hits), float(misses)] for kind, (hits, misses) in PRIOR.items()}
    for age, (kind, hit) in enumerate(reversed(answers)):
        found[kind][0 if hit else 1] += 0.5 ** (age / HALF_LIFE)
    return {kind: (hits, misses) for kind, (hits, misses) in found.items()}


def _edge(scores: np.ndarray, y: np.ndarray) -> float:
    """The score midway between the median normal and the median anomaly judged; the highest where one is missing."""
    if not (y > 0).any() or not (y < 0).any():
        return float(scores.max(initial=0.0))
    return float((np.median(scores[y > 0]) + np.median(scores[y < 0])) / 2)


class _Away:
    """How far, squared, some candidates are from all that was judged or is about to be asked."""

    def __init__(self, X: np.ndarray, candidates: np.ndarray, judged: np.ndarray) -> None:
        self.X = X
        self.candidates = candidates
        self.distance = np.full(len(candidates), np.inf)
        if len(candidates) and len(judged):
            self.distance = squared_distances(X[candidates], X[judged]).min(axis=1)

    def add(self, row: int) -> None:
        apart = ((self.X[self.candidates] - self.X[row]) ** 2).sum(axis=1)
        self.distance = np.minimum(self.distance, apart)
        self.distance[self.candidates == row] = -1  # gone, also where others lie in the same place

    def farthest(self) -> int | None:
        """The candidate farthest away, of equally far ones the oddest; None where all have gone."""
        if self.distance.max(initial=-1) < 0:
            return None
        return int(self.candidates[self.distance.argmax()])


class _Groups(_Away):
    """How close some candidates are to those among them that are most like them."""

    def __init__(self, X: np.ndarray, candidates: np.ndarray, judged: np.ndarray) -> None:
        super().__init__(X, candidates, judged)
        self.width = self.reach = np.full(len(candidates), np.inf)
        if len(candidates) > N_GROUP:
            squares = squared_distances(X[candidates], X[candidates])
            np.fill_diagonal(squares, np.inf)
            nearest = np.partition(squares, (N_ALIKE - 1, N_GROUP - 1), axis=1)
            self.width = nearest[:, :N_ALIKE].mean(axis=1)
            self.reach = np.minimum(nearest[:, N_GROUP - 1], REACH * self.width)

    def closest(self) -> int | None:
        """The candidate in the closest group that nothing judged is part of; None where there is none."""
        width = np.where(self.distance > self.reach, self.width, np.inf)
        if not np.isfinite(width).any():
            return None
        return int(self.candidates[width.argmin()])
