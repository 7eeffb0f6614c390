"""Why a text scores as it does: which of its segments raise the score, and which kept texts it is like.

    effect of segment i = 2/3 (mean over j of T(text without j) - T(text without i))
                        + 1/3 (T(segment i alone) - mean over j of T(segment j alone))

how much less odd the text is without it than without another, and how much odder it is itself: the first alone prefers
rare but fitting words, the second short ones. (The whole text is no yardstick where the model was fitted on it: its
shortened forms are like a text the model knows, while it is scored as if the model did not.) Common words alone raise
nothing: a segment of these has no effect above 0.

What is odd is one of four things, decided in this order:

    parts      clauses so odd alone, beside the clauses of normal texts, that few normal texts have such a one
    nothing    the text is not odd
    all over   no segment stands out: the largest effect is small beside how far the text is from a usual one
    segments   those with the largest effects

All pieces are scored in one go, so that any encoder and any detector can be explained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from strays.errors import DataError
from strays.model.calibration import Calibration, Threshold
from strays.model.common_words import all_common
from strays.model.examples import Examples, Neighbour
from strays.model.form import UnusualForm
from strays.model.normal_parts import NormalParts
from strays.model.segments import has_clauses, split, trim_marks

# A clause is named if a normal text of as many clauses has one as odd with at most this chance, and if another clause
# of the text is ordinary: more than this share of the clauses of normal texts are as odd.
NAMED, ORDINARY = 0.02, 0.3
# A text that is not flagged and has a larger p-value than this is not odd.
NOT_ODD = 0.2
# A segment stands out if its effect is at least this share of how far the text scores above the median normal text.
STANDS_OUT = 0.15
# The form is named from this share on.
FORM_STANDS_OUT = 0.25
# Segments with an effect below this share of the largest are not marked.
FAINT = 0.15
# Characters of a part that are quoted in a sentence.
QUOTED = 60


@dataclass(frozen=True)
class Segment:
    """A piece text[start:end], and how much it raises the score, beside the other pieces."""

    start: int
    end: int
    text: str
    effect: float


@dataclass(frozen=True)
class OddPart:
    """A clause text[start:end] that is odd on its own, and its p-value among the clauses of normal texts."""

    start: int
    end: int
    text: str
    p_value: float


@dataclass(frozen=True)
class Explanation:
    """What a model says of one text and why; segments with the largest effect come first.

    `flagged` is None where that depends on what else is scored. `normal_copies` and `anomaly_copies` say how many of
    the kept texts are copies of this one, which are no neighbours. `odd_form` says in words what is unusual about
    the form of the text, where that makes much of the score.

    >>> segments = [Segment(6, 12, "winner", 2.0), Segment(0, 5, "dear", -2.0)]
    >>> explanation = Explanation("dear winner", 3.5, 0.01, True, segments, [], [])
    >>> explanation.in_words()
    'odder than about 99 % of the normal texts (score 3.50, p-value 0.01): flagged'
    >>> explanation.what_is_odd()
    'what makes it odd is mostly "winner"'
    >>> [explanation.strength(segment) for segment in explanation.segments]
    [1.0, 0.0]
    """

    text: str
    anomaly_score: float
    p_value: float
    flagged: bool | None
    segments: list[Segment]
    nearest_normals: list[Neighbour]
    nearest_anomalies: list[Neighbour]
    odd_parts: list[OddPart] = field(default_factory=list)
    odd_form: str = ""
    odd_all_over: bool = False
    nothing_odd: bool = False
    normal_copies: int = 0
    anomaly_copies: int = 0

    def strength(self, segment: Segment) -> float:
        """How strongly to mark a segment: 0 (not at all) to 1 (what is odd, or most of it)."""
        if self.odd_parts:
            return float(any(part.start == segment.start for part in self.odd_parts))
        strongest = max((segment.effect for segment in self.segments), default=0.0)
        if self.nothing_odd or self.odd_all_over or strongest <= 0:
            return 0.0
        strength = segment.effect / strongest
        return strength if strength >= FAINT else 0.0

    def in_words(self) -> str:
        """Score and p-value in a sentence."""
        verdict = {True: ": flagged", False: ": not flagged", None: ""}[self.flagged]
        return f"{rank_in_words(self.p_value)} (score {self.anomaly_score:.2f}, p-value {self.p_value:.2g}){verdict}"

    def what_is_odd(self) -> str:
        """What of the text is odd, in a sentence; it quotes the text."""
        if not self.odd_form:
            return self._odd_words()
        form = f"its form is unusual ({self.odd_form})"
        return form if self.odd_all_over and not self.odd_parts else f"{form}; {self._odd_words()}"

    def _odd_words(self) -> str:
        if self.odd_parts:
            parts, it = ("part is", "it is") if len(self.odd_parts) == 1 else ("parts are", "each is")
            quoted = " and ".join(_quoted(part.text) for part in self.odd_parts[:3])
            than = f"{_percent(max(part.p_value for part in self.odd_parts))} of the clauses of normal texts"
            return f"the odd {parts} {quoted}: alone, {it} odder for its length than {than}"
        if self.nothing_odd:
            return "nothing in it is odd"
        strongest = [segment for segment in self.segments if self.strength(segment) > 0.5][:3]
        if self.odd_all_over or not strongest:
            return "odd all over: no single part makes it odd"
        return f"what makes it odd is mostly {' and '.join(_quoted(segment.text) for segment in strongest)}"

    def copies(self) -> str:
        """How many copies of the text, equal or nearly so, the model keeps, in words; nothing if none."""
        kept = ((self.normal_copies, "texts presumed normal"), (self.anomaly_copies, "known anomalies"))
        found = [f"{n} of the {of} {'is' if n == 1 else 'are'} equal or nearly equal to it" for n, of in kept if n]
        return "; ".join(found)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data; every segment has its strength too."""
        segments = [asdict(segment) | {"strength": self.strength(segment)} for segment in self.segments]
        words = {"in_words": self.in_words(), "what_is_odd": self.what_is_odd(), "copies": self.copies()}
        return asdict(self) | {"segments": segments} | words


def explain_texts(
    texts: list[str],
    score: Callable[[list[str], np.ndarray], tuple[np.ndarray, np.ndarray]],
    calibration: Calibration,
    threshold: Threshold,
    examples: Examples,
    normal_parts: NormalParts,
    *,
    n_neighbours: int,
    unusual_forms: Callable[[list[str]], list[UnusualForm]],
) -> list[Explanation]:
    """Explain texts; `score` gives the embeddings and scores of all their pieces and is called once.

    It is told which are whole texts: of other pieces the form does not count. `unusual_forms` is given whole texts.
    """
    if not all(text.strip() for text in texts):
        raise DataError("there is no text to explain; expected one that is not blank")
    if not texts:
        return []
    spans = [split(text) for text in texts]
    parts = [[text, *pieces(text, of)] for text, of in zip(texts, spans, strict=True)]
    ends = np.cumsum([len(part) for part in parts])
    starts = np.r_[0, ends[:-1]]
    X, scores = score([piece for part in parts for piece in part], np.isin(np.arange(ends[-1]), starts))
    forms = unusual_forms(texts)
    found = []
    for text, of, form, first, end in zip(texts, spans, forms, starts, ends, strict=True):
        itself = scores[first : first + 1]
        p_value = float(calibration.p_value(itself)[0])
        flagged = None if threshold.together else bool(calibration.flagged(threshold, itself)[0])
        segments = effects(text, of, scores[first + 1 : end], normal_parts.common)
        odd_parts = _odd_parts(text, of, scores[first + 1 + len(of) : end], normal_parts)
        nothing_odd = not odd_parts and not flagged and p_value > NOT_ODD
        beyond_usual = float(itself[0]) - float(np.median(calibration.normal_scores))
        stands_out = segments and segments[0].effect >= max(STANDS_OUT * beyond_usual, 1e-12)
        form_stands_out = form.amount >= max(FORM_STANDS_OUT * beyond_usual, 1e-12)
        x = X[first]
        found.append(
            Explanation(
                text,
                anomaly_score=float(itself[0]),
                p_value=p_value,
                flagged=flagged,
                segments=segments,
                nearest_normals=examples.nearest(text, x, anomalies=False, n=n_neighbours),
                nearest_anomalies=examples.nearest(text, x, anomalies=True, n=n_neighbours),
                odd_parts=odd_parts,
                odd_all_over=not (odd_parts or nothing_odd or stands_out),
                odd_form=form.in_words() if form_stands_out and not nothing_odd else "",
                nothing_odd=nothing_odd,
                normal_copies=examples.n_copies(text, x, anomalies=False),
                anomaly_copies=examples.n_copies(text, x, anomalies=True),
            )
        )
    return found


def rank_in_words(p_value: float) -> str:
    """What a p-value says of a text."""
    if p_value > 0.5:
        return "as ordinary as most of the normal texts"
    return f"odder than {_percent(p_value)} of the normal texts"


def pieces(text: str, spans: list[tuple[int, int]]) -> list[str]:
    """What to score to tell the effects of segments: the text without each, then each alone."""
    return [_without(text, *span) for span in spans] + [text[start:end] for start, end in spans]


def effects(text: str, spans: list[tuple[int, int]], scores: np.ndarray, common: frozenset[str]) -> list[Segment]:
    """The segments of a text with their effects, from the scores of its pieces; the strongest first."""
    if not spans:
        return []
    without, alone = np.split(scores, 2)
    effect = 2 / 3 * (without.mean() - without) + 1 / 3 * (alone - alone.mean())
    segments = []
    for (start, end), own in zip(spans, effect.tolist(), strict=True):
        piece = text[start:end]
        segments.append(Segment(start, end, piece, min(own, 0.0) if all_common(piece, common) else own))
    return sorted(segments, key=lambda segment: -segment.effect)


def _odd_parts(text: str, spans: list[tuple[int, int]], alone: np.ndarray, normal: NormalParts) -> list[OddPart]:
    """The clauses that are odd alone, in order, if others are ordinary; `alone` are the scores of all."""
    if not spans or not has_clauses(text):
        return []
    parts = [text[start:end] for start, end in spans]
    p_values = normal.p_value_for_length(parts, alone)
    is_odd = (p_values * len(parts) <= NAMED) & [not all_common(part, normal.common) for part in parts]
    if is_odd.all() or normal.p_value(alone[~is_odd]).max() <= ORDINARY:
        return []
    return [OddPart(*spans[i], parts[i], float(p_values[i])) for i in np.flatnonzero(is_odd)]


def _percent(p_value: float) -> str:
    more = "more than" if p_value < 0.001 else "about"
    return f"{more} {min(99.9, 100 * (1 - p_value)):.3g} %"


def _quoted(part: str) -> str:
    part = " ".join(trim_marks(part).split())
    return f'"{part}"' if len(part) <= QUOTED else f'"{part[:QUOTED].rstrip()} ..."'


def _without(text: str, start: int, end: int) -> str:
    before, after = text[:start].rstrip(), text[end:].lstrip()
    space = " " if text[:start] != before or text[end:] != after else ""
    return f"{before}{space}{after}".strip()
