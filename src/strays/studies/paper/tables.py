"""Rows to tables: plain titles, headers and cells, which the terminal and the page render each in its way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from strays.studies.paper import printed
from strays.studies.paper.cases import OBJECTIVES
from strays.studies.paper.methods import CLASSIFIERS, METHODS
from strays.studies.paper.rows import Row
from strays.studies.paper.tuning import GRIDS, PARAMETERS, is_printed, ranked
from strays.studies.paper.unseen import METHODS_COMPARED

Every = dict[str, list[Row]]
# Settings of a grid that are shown from its top.
BEST = 3
TITLES = {name: method.title for name, method in (METHODS | CLASSIFIERS).items()}


@dataclass(frozen=True)
class Table:
    """A title, a header and rows of cells."""

    title: str
    header: list[str]
    rows: list[list[str]]

    def to_markdown(self) -> str:
        """As a pipe table; the title stands above it."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join([f"**{self.title}**", "", *("| " + " | ".join(line) + " |" for line in lines), ""])


def where(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """The rows with the given values, by seed or draw."""
    found = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    return sorted(found, key=lambda row: (row.get("seed") or 0, row.get("draw") or 0))


def values(rows: Iterable[Row], field: str) -> list[Any]:
    """The distinct values of a field, in an order that is not the rows': the default encoder, then by name or size."""
    return sorted({row[field] for row in rows}, key=lambda value: (value != "default", value or 0))


def percent(shares: Sequence[float]) -> str:
    """Mean (deviation) in percent, as the paper prints it; of one figure no deviation, of none nothing."""
    if len(shares) < 2:
        return "".join(f"{100 * value:.1f}" for value in shares)
    return f"{100 * fmean(shares):.1f} ({100 * pstdev(shares):.1f})"


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Mean and half width of its 95 % interval, by Student's t; of one difference nothing is known."""
    from scipy.stats import t

    n = len(differences)
    if n == 1:
        return differences[0], float("inf")
    return float(np.mean(differences)), float(t.ppf(0.975, n - 1) * np.std(differences, ddof=1) / np.sqrt(n))


def share(p: float) -> str:
    """A pollution in words."""
    return f"{100 * p:g} %"


def comparison(study: str, rows: list[Row]) -> list[Table]:
    """One table for each metric, the paper's figures above ours; 5.3, which has no pollution, in one table."""
    pollutions = values(rows, "pollution")
    if pollutions == [None]:
        return [_splits(study, rows)]
    return [
        *(_over_pollution(study, rows, metric, pollutions) for metric in printed.METRICS),
        _false_alarms(study, where(rows, pollution=pollutions[-1]), pollutions[-1]),
    ]


def _over_pollution(study: str, rows: list[Row], metric: str, pollutions: list[float]) -> Table:
    def paper(method: str) -> list[str]:
        return printed.TABLES[study][method][metric]

    def ours(found: list[Row]) -> list[str]:
        return [percent([row[metric] for row in where(found, pollution=p)]) for p in pollutions]

    header = ["method", "by", *(f"p = {share(p)}" for p in pollutions)]
    return Table(printed.METRICS[metric], header, _lines(rows, printed.TABLES[study], paper, ours))


def _false_alarms(study: str, rows: list[Row], pollution: float) -> Table:
    told = printed.FPR_AT_80_TPR.get(study, {})

    def paper(method: str) -> list[str]:
        return [f"{told[method]}"]

    def ours(found: list[Row]) -> list[str]:
        return [percent([row["fpr_at_80_tpr"] for row in found])]

    title = f"False positive rate at 80 % true positive rate, p = {share(pollution)}"
    return Table(title, ["method", "by", "FPR"], _lines(rows, told, paper, ours))


def _splits(study: str, rows: list[Row]) -> Table:
    metrics = {**printed.METRICS, "fpr_at_80_tpr": "FPR at 80 % TPR"}

    def paper(method: str) -> list[str]:
        return [printed.TABLES[study][method].get(metric, [""])[0] for metric in metrics]

    def ours(found: list[Row]) -> list[str]:
        return [percent([row[metric] for row in found]) for metric in metrics]

    header = ["method", "by", *metrics.values()]
    return Table("Random splits", header, _lines(rows, printed.TABLES[study], paper, ours))


def _lines(
    rows: list[Row],
    in_paper: Collection[str],
    paper: Callable[[str], list[str]],
    ours: Callable[[list[Row]], list[str]],
) -> list[list[str]]:
    """For each method the paper's line, where it has one, and a line for each encoder."""
    lines = []
    for name, method in METHODS.items():
        if method.printed and method.printed in in_paper and where(rows, method=name):
            lines.append([method.title, f"paper: {method.printed}", *paper(method.printed)])
        for encoder in values(rows, "encoder"):
            if found := where(rows, method=name, encoder=encoder):
                lines.append([method.title, f"strays, {encoder}", *ours(found)])
    return lines


def case_1(rows: list[Row]) -> Table:
    """The closed forms against gradient descent."""
    worst = {name: max(row[name] for row in rows) for name in ("eq1_error", "eq3_norm")}
    gap = max(row["eq4_loss"] - row["eq4_least"] for row in rows)
    least = min(row["eq3_least_eigenvalue"] for row in rows)
    return Table(
        f"Gradient descent against the closed forms, worst of {len(rows)} draws",
        ["objective", "what theory says", "what is left of the difference"],
        [
            ["Eq. 1", "W = (2/n X'X + λI)⁻¹ (2/n X'1c')", f"relative error {worst['eq1_error']:.1e}"],
            ["Eq. 3", f"W = 0: least eigenvalue {least:.2f} > 0", f"norm of W {worst['eq3_norm']:.1e}"],
            ["Eq. 4", "loss = least eigenvalue of the covariance", f"loss above it by at most {gap:.1e}"],
        ],
    )


def case_2(rows: list[Row]) -> Table:
    """The printed sizes and ratios beside those of many draws."""
    lines = []
    for name, title in OBJECTIVES.items():
        line = [title]
        for field, paper in zip(("size", "ratio"), printed.CASE_2.get(name, ("", "")), strict=True):
            drawn = [row[name][field] for row in rows]
            above = f"{fmean(value >= paper for value in drawn):.0%}" if paper else ""
            line += [f"{paper}", f"{fmean(drawn):.2f} ({pstdev(drawn):.2f})", above]
        lines.append(line)
    return Table(
        f"{len(rows)} draws: mean (deviation), and the share of draws at or above the printed figure",
        ["objective", "size, paper", "size", "at or above", "ratio, paper", "ratio", "at or above"],
        lines,
    )


def case_3(rows: list[Row]) -> Table:
    """How far each centre is from the truth."""
    names = {
        "blind": "mean of all points (Eq. 4, red)",
        "blind_without_anomalies": "mean of the points labelled normal",
        "taught": "with labels (Eq. 5, purple)",
    }
    lines = [
        [title, f"{fmean(drawn):.1f} ({pstdev(drawn):.1f})"]
        for name, title in names.items()
        if (drawn := [row[name] for row in rows])
    ]
    return Table(f"Distance from the true centre, {len(rows)} draws", ["centre", "mean (deviation)"], lines)


def tuning(corpus: str, rows: list[Row]) -> list[Table]:
    """For each method the best settings on the dev set, and where the paper's choice stands."""
    tables = []
    for encoder, method in product(values(rows, "encoder"), GRIDS):
        settings = ranked(where(rows, encoder=encoder), method)
        if not settings:
            continue
        names = [name for name in PARAMETERS if any(row[name] is not None for row in settings)]
        papers = [i for i, row in enumerate(settings) if is_printed(row, corpus)]
        places = {*range(min(BEST, len(settings))), *papers, len(settings) // 2, len(settings) - 1}
        lines = [
            [
                f"{i + 1}" + (", the paper's choice" if i in papers else ""),
                *(f"{settings[i][name]:g}" for name in names),
                f"{100 * settings[i]['auc']:.1f}",
                f"{100 * settings[i]['map']:.1f}",
            ]
            for i in sorted(places)
        ]
        header = ["place by AUC", *(name.replace("_", " ") for name in names), "dev AUC", "dev MAP"]
        title = f"{corpus}, {TITLES[method].partition(',')[0]}: {len(settings)} settings, encoder {encoder}"
        tables.append(Table(title, header, lines))
    return tables


def unseen(corpus: str, rows: list[Row]) -> list[Table]:
    """AUC and MAP of every method over p, on anomalies of the known kind and of others; mean over kinds and seeds."""
    pollutions = values(rows, "pollution")
    tests = [test for test in ("seen", "unseen") if any(test in row for row in rows)]
    tables = []
    for encoder, (metric, title) in product(values(rows, "encoder"), (("auc", "AUC"), ("map", "MAP"))):
        own = where(rows, encoder=encoder)
        lines = [
            [TITLES[method]]
            + [
                percent([row[test][metric] for row in where(own, method=method, pollution=p) if test in row])
                for test in tests
                for p in pollutions
            ]
            for method in METHODS_COMPARED
            if where(own, method=method)
        ]
        header = ["method", *(f"{test}, p = {share(p)}" for test in tests for p in pollutions)]
        title = f"{corpus}, {title}: mean (deviation) over known kinds and runs, encoder {encoder}"
        tables.append(Table(title, header, lines))
    return tables


def tables_of(study: str, rows: list[Row]) -> list[Table]:
    """All tables of one study."""
    kind, _, corpus = study.partition("-")
    if kind == "case":
        return [{"1": case_1, "2": case_2, "3": case_3}[corpus](rows)]
    if kind == "tuning":
        return tuning(corpus, rows)
    if kind == "unseen":
        return unseen(corpus, rows)
    return comparison(study, rows)
