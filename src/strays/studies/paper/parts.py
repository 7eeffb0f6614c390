"""A statement of the paper and its parts: each a contrast of figures and the rule that judges it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from strays.studies.paper.evidence import NETWORKS, Contrast, Figure, Paper, Source
from strays.studies.paper.rules import ABOVE, CONVERGED, FAILS, HOLDS, UNCLEAR, Above, joined
from strays.studies.paper.summary import interval


@dataclass(frozen=True)
class Finding:
    """What came out for a part of a statement; `text` is its figure with the interval, `samples` what was judged."""

    part: Part | NotAll
    verdict: str
    text: str = ""
    samples: tuple[float, ...] = ()

    def is_contrary(self, chances: int) -> bool:
        """Whether it clearly does not hold, even as one of several chances to be wrong."""
        if self.verdict != FAILS or isinstance(self.part, NotAll) or not self.samples:
            return self.verdict == FAILS
        rule = self.part.rule
        return rule.verdict(*rule.bounds(self.samples, chances)) == FAILS


@dataclass(frozen=True)
class Part:
    """One thing that a statement says: a contrast, and the rule that judges it.

    `group` is what parts of one statement are counted by where there are many: the other method, say.

    >>> from strays.studies.paper.evidence import TUNED, Rows, figure
    >>> lead = figure("5.1", "auc", "AI-SVDD", 0.08) - figure("5.1", "auc", "OC-SVDD", 0.08)
    >>> rows = [{"method": method, "pollution": 0.08, "seed": seed, "auc": auc + seed / 1000}
    ...         for seed in range(3) for method, auc in (("ai-svdd-tuned", 0.9), ("deep-svdd-tuned", 0.88))]
    >>> finding = Part("AUC", lead).judge(Rows({"5.1": rows}, TUNED))
    >>> finding.verdict, finding.text
    ('holds', '+2.0 ± 0.0')
    """

    label: str
    contrast: Contrast
    rule: Above = ABOVE
    group: str = ""

    @property
    def figures(self) -> list[Figure]:
        """The figures it rests on."""
        return [figure for _, figure in self.contrast.terms]

    @property
    def has_networks(self) -> bool:
        """Whether it is about OC-SVDD or AI-SVDD, which have settings to tune."""
        return has_networks(self.figures)

    def judge(self, source: Source) -> Finding | None:
        """The verdict; nothing where no run has all the figures. Of one run nothing can be said."""
        samples = self.contrast.samples(source)
        if not samples:
            return None
        if len(samples) == 1:
            return Finding(self, UNCLEAR, f"{self.show(samples[0])}, one run")
        low, high = self.rule.bounds(samples)
        if self.rule.over == "draws":
            text = f"{self.show(low)} to {self.show(high)}"
        else:
            mean, half_width = interval(samples)
            text = f"{self.show(mean)} ± {self.show(half_width, sign='')}"
        return Finding(self, self.rule.verdict(low, high), text, tuple(samples))

    def in_paper(self) -> Finding | None:
        """What the paper's own means say, which come without an interval."""
        samples = self.contrast.samples(Paper())
        if not samples:
            return None
        value = round(samples[0], 6)  # what subtracting printed figures adds to their digits is not theirs
        return Finding(self, self.rule.verdict(value, value), self.show(value))

    def show(self, value: float, sign: str | None = None) -> str:
        """A value as it is read: points for shares, with a sign where it is a difference."""
        sign = ("+" if len(self.contrast.terms) > 1 else "") if sign is None else sign
        if self.figures[0].is_share:
            return f"{100 * value:{sign}.1f}"
        return f"{value:{sign}.2f}" if abs(value) > CONVERGED else f"{value:{sign}.0e}"


@dataclass(frozen=True)
class NotAll:
    """That several parts do not hold together: 'no method is best throughout'."""

    label: str
    parts: tuple[Part, ...]
    group: str = ""

    @property
    def figures(self) -> list[Figure]:
        """The figures it rests on."""
        return [figure for part in self.parts for figure in part.figures]

    @property
    def has_networks(self) -> bool:
        """Whether it is about OC-SVDD or AI-SVDD."""
        return has_networks(self.figures)

    def judge(self, source: Source) -> Finding | None:
        """Holds where one of the parts is clearly contrary, fails where all hold; nothing where a part has no rows."""
        return self._opposite([part.judge(source) for part in self.parts])

    def in_paper(self) -> Finding | None:
        """What the paper's own means say."""
        return self._opposite([part.in_paper() for part in self.parts])

    def _opposite(self, findings: list[Finding | None]) -> Finding | None:
        found = [finding.verdict for finding in findings if finding]
        if len(found) < len(findings):
            return None
        verdict = joined(found)
        return Finding(self, {HOLDS: FAILS, FAILS: HOLDS}.get(verdict, UNCLEAR))


@dataclass(frozen=True)
class Statement:
    """Something the paper says: where, in short words, and in which parts.

    >>> from strays.studies.paper.evidence import figure
    >>> said("5.1", "AI-SVDD overfits", Part("distance", figure("5.1", "test_to_train", "AI-SVDD", 0.0))).studies
    {'5.1'}
    """

    place: str
    words: str
    parts: tuple[Part | NotAll, ...]

    @property
    def studies(self) -> set[str]:
        """The studies whose rows it needs."""
        return {figure.study for part in self.parts for figure in part.figures}

    @property
    def has_networks(self) -> bool:
        """Whether it is about OC-SVDD or AI-SVDD, which have settings to tune."""
        return any(part.has_networks for part in self.parts)


def said(place: str, words: str, *parts: Part | NotAll | Iterable[Part | NotAll]) -> Statement:
    """A statement of parts, given one by one or several at once."""
    found = [[part] if isinstance(part, Part | NotAll) else part for part in parts]
    return Statement(place, words, tuple(part for several in found for part in several))


def has_networks(figures: Iterable[Figure]) -> bool:
    """Whether one of the figures is of a network, which has settings to tune."""
    return any(figure.method in NETWORKS for figure in figures)
