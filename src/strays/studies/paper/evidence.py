"""What the rows say of a figure, or of a difference of figures, run by run; and what the paper prints of the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Protocol

from strays.studies.paper import printed
from strays.studies.paper.methods import METHODS
from strays.studies.paper.summary import RowsByStudy, values
from strays.studies.protocol import POLLUTIONS
from strays.studies.rows import Row

# The paper's name of a method -> ours: with the settings that the paper prints, and with those of the grid's winner.
AS_PRINTED = {method.printed: name for name, method in METHODS.items() if method.printed and not method.grid}
TUNED = AS_PRINTED | {method.printed: name for name, method in METHODS.items() if method.printed and method.grid}
NETWORKS = tuple(name for name in TUNED if TUNED[name] != AS_PRINTED[name])

# Figures that are shares, shown in percent; all others are shown as they are.
SHARES = (*printed.METRICS, "fpr_at_80_tpr")

Run = tuple[Any, ...]


@dataclass(frozen=True)
class Figure:
    """One figure of every run of a study.

    `metric` is a field of the row, or a field of a field ("unseen.auc"); `method` is the paper's name of it, or ours
    where the paper has none; `choice` is the choice of choices.py that is made the other way.

    >>> Figure("5.1", "auc", "AI-SVDD", 0.08).is_share
    True
    """

    study: str
    metric: str
    method: str | None = None
    p: float | None = None
    choice: str | None = None

    @property
    def is_share(self) -> bool:
        """Whether it is shown in percent."""
        return self.metric.rpartition(".")[2] in SHARES


class Source(Protocol):
    """Where figures come from."""

    def runs(self, figure: Figure) -> dict[Run, float]:
        """The figure in every run that has it."""


class Rows:
    """Figures out of rows: of one encoder, or of the first of each study (the default where there are such rows).

    `names` says which of our methods stands for one of the paper's.
    """

    def __init__(self, every: RowsByStudy, names: dict[str, str], encoder: str | None = None) -> None:
        self.names = names
        self.encoder = encoder
        self._first: dict[str, str | None] = {}
        self._rows: dict[tuple[Any, ...], list[Row]] = {}
        for study, rows in every.items():
            self._first[study] = next(iter(encoders_of(rows)), None)
            for row in rows:
                if row.get("encoder") == (encoder or self._first[study]):
                    key = (study, row.get("method"), row.get("pollution"), row.get("choice"))
                    self._rows.setdefault(key, []).append(row)

    def encoders(self, studies: Iterable[str]) -> set[str | None]:
        """The encoders of the rows it reads."""
        return {self.encoder or self._first.get(study) for study in studies}

    def runs(self, figure: Figure) -> dict[Run, float]:
        """By seed or draw, and by kind of known anomalies where a study has several."""
        method = self.names.get(figure.method, figure.method) if figure.method else None
        found: dict[Run, float] = {}
        for row in self._rows.get((figure.study, method, figure.p, figure.choice), []):
            value: Any = row
            for field in figure.metric.split("."):
                value = value.get(field) if isinstance(value, dict) else None
            if value is not None:
                found[row.get("seed", row.get("draw")), row.get("known"), row.get("encoder")] = value
        return found


class Paper:
    """Figures that the paper prints: one run, its mean."""

    def runs(self, figure: Figure) -> dict[Run, float]:
        """One figure, or none where the paper has none."""
        if figure.choice:
            return {}
        if figure.study == "case-2":
            name, _, field = figure.metric.rpartition(".")
            told = dict(zip(("size", "ratio"), printed.CASE_2.get(name, ()), strict=False))
            return {(0,): told[field]} if field in told else {}
        if figure.metric == "fpr_at_80_tpr":
            rates = printed.FPR_AT_80_TPR.get(figure.study, {})
            return {(0,): rates[figure.method] / 100} if figure.method in rates and figure.p == POLLUTIONS[-1] else {}
        cells = printed.TABLES.get(figure.study, {}).get(figure.method or "", {}).get(figure.metric, [])
        place = POLLUTIONS.index(figure.p) if figure.p is not None else 0
        return {(0,): float(cells[place].split()[0]) / 100} if place < len(cells) else {}


@dataclass(frozen=True)
class Contrast:
    """Figures added and subtracted.

    >>> lead = figure("5.1", "auc", "AI-SVDD", 0.08) - figure("5.1", "auc", "OC-SVDD", 0.08)
    >>> [round(value, 3) for value in lead.samples(Paper())]
    [0.034]
    """

    terms: tuple[tuple[int, Figure], ...]

    def __sub__(self, other: Contrast) -> Contrast:
        return Contrast(self.terms + tuple((-sign, figure) for sign, figure in other.terms))

    def samples(self, source: Source) -> list[float]:
        """One value for each run that has all the figures; kinds of known anomalies count once, by their mean."""
        found = [(sign, source.runs(figure)) for sign, figure in self.terms]
        by_run: dict[Any, list[float]] = {}
        for key in found[0][1]:
            if all(key in runs for _, runs in found):
                by_run.setdefault(key[0], []).append(sum(sign * runs[key] for sign, runs in found))
        return [fmean(by_run[run]) for run in sorted(by_run)]


def figure(study: str, metric: str, method: str | None = None, p: float | None = None, choice: str = "") -> Contrast:
    """One figure, to subtract others from; a choice is looked up in the study of choices."""
    where = f"choices-{study}" if choice else study
    return Contrast(((1, Figure(where, metric, method, p, choice or None)),))


def encoders_of(rows: Iterable[Row]) -> list[str]:
    """The encoders that rows were made with, the default first; case studies have none."""
    return values([row for row in rows if "encoder" in row], "encoder")
