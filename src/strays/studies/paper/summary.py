"""What tables, figures and findings share: picking rows, means and intervals, and a table of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from strays.studies.paper.methods import CLASSIFIERS, METHODS
from strays.studies.rows import Row

RowsByStudy = dict[str, list[Row]]
TITLES = {name: method.title for name, method in (METHODS | CLASSIFIERS).items()}


@dataclass(frozen=True)
class ResultTable:
    """A title, a header and rows of cells; the terminal and the page render them each in its way.

    >>> print(ResultTable("AUC", ["method", "p = 0 %"], [["LOF", "86.6 (0.0)"]]).to_markdown())
    **AUC**
    <BLANKLINE>
    | method | p = 0 % |
    | --- | --- |
    | LOF | 86.6 (0.0) |
    <BLANKLINE>
    """

    title: str
    header: list[str]
    rows: list[list[str]]

    def to_markdown(self) -> str:
        """As a pipe table; the title stands above it."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join([f"**{self.title}**", "", *("| " + " | ".join(line) + " |" for line in lines), ""])


def of_kind(every: RowsByStudy, kind: str) -> RowsByStudy:
    """The rows of the studies NAME-CORPUS of one name, by corpus.

    >>> of_kind({"tuning-5.1": [{"auc": 0.9}], "5.1": []}, "tuning")
    {'5.1': [{'auc': 0.9}]}
    """
    return {name.removeprefix(f"{kind}-"): rows for name, rows in every.items() if name.startswith(f"{kind}-")}


def comparisons(every: RowsByStudy) -> RowsByStudy:
    """The rows of the paper's own tables, by study."""
    return {name: rows for name, rows in every.items() if name.startswith("5.")}


def same_runs(rows: Iterable[Row], others: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Each row with the one of the same seed among the others, where there is one.

    >>> same_runs([{"seed": 0}, {"seed": 1}], [{"seed": 1, "auc": 0.9}])
    [({'seed': 1}, {'seed': 1, 'auc': 0.9})]
    """
    by_seed = {row["seed"]: row for row in others}
    return [(row, by_seed[row["seed"]]) for row in rows if row["seed"] in by_seed]


def where(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """The rows with the given values, by seed or draw."""
    found = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    return sorted(found, key=lambda row: (row.get("seed") or 0, row.get("draw") or 0))


def values(rows: Iterable[Row], field: str) -> list[Any]:
    """The distinct values of a field, in an order that is not the rows': the default encoder, then by name or size."""
    return sorted({row[field] for row in rows}, key=lambda value: (value != "default", value or 0))


def first_encoders(every: RowsByStudy) -> str:
    """In words, which encoder the rows that come first in every table are of.

    >>> first_encoders({"5.1": [{"encoder": "other"}, {"encoder": "default"}], "5.3": [{"encoder": "m3e-small"}]})
    'encoder default for 5.1; encoder m3e-small for 5.3'
    """
    studies: dict[str, list[str]] = {}
    for study, rows in comparisons(every).items():
        studies.setdefault(values(rows, "encoder")[0], []).append(study)
    return "; ".join(f"encoder {name} for {', '.join(own)}" for name, own in studies.items())


def percent(shares: Sequence[float]) -> str:
    """Mean (deviation) in percent, as the paper prints it; of one figure no deviation, of none nothing."""
    if len(shares) < 2:
        return "".join(f"{100 * value:.1f}" for value in shares)
    return f"{100 * fmean(shares):.1f} ({100 * pstdev(shares):.1f})"


def interval(differences: Sequence[float], chances: int = 1) -> tuple[float, float]:
    """Mean and half width of its 95 % interval, by Student's t; of one difference nothing is known.

    Of several `chances` to be wrong, the interval is so wide that all together miss in 5 % at most (Bonferroni).
    """
    from scipy.stats import t

    n = len(differences)
    if n == 1:
        return differences[0], float("inf")
    half_width = t.ppf(1 - 0.025 / chances, n - 1) * np.std(differences, ddof=1) / np.sqrt(n)
    return float(np.mean(differences)), float(half_width)


def points(differences: Sequence[float]) -> str:
    """Mean difference in percentage points with its 95 % interval, and an arrow where the interval leaves out zero.

    >>> points([0.010, 0.011, 0.012])
    '+1.1 ± 0.2 ▲'
    """
    mean, half_width = interval(differences)
    if half_width == float("inf"):
        return f"{100 * mean:+.1f}"
    arrow = "" if abs(mean) <= half_width else " ▲" if mean > 0 else " ▼"
    return f"{100 * mean:+.1f} ± {100 * half_width:.1f}{arrow}"


def share(p: float) -> str:
    """A pollution in words."""
    return f"{100 * p:g} %"
