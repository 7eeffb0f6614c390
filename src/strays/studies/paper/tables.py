"""Rows to tables, the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import product
from statistics import fmean, pstdev

from strays.studies.paper import printed
from strays.studies.paper.cases import OBJECTIVES
from strays.studies.paper.methods import METHODS
from strays.studies.paper.summary import TITLES, ResultTable, percent, share, values, where
from strays.studies.paper.tuning import GRIDS, PARAMETERS, is_printed, ranked
from strays.studies.paper.unseen import METHODS_COMPARED
from strays.studies.rows import Row

# Settings of a grid that are shown from its top.
BEST = 3


def comparison(study: str, rows: list[Row]) -> list[ResultTable]:
    """One table for each metric, the paper's figures above ours; 5.3, which has no pollution, in one table."""
    pollutions = values(rows, "pollution")
    if pollutions == [None]:
        return [_splits(study, rows)]
    return [
        *(_over_pollution(study, rows, metric, pollutions) for metric in printed.METRICS),
        _false_alarms(study, where(rows, pollution=pollutions[-1]), pollutions[-1]),
    ]


def _over_pollution(study: str, rows: list[Row], metric: str, pollutions: list[float]) -> ResultTable:
    def paper(method: str) -> list[str]:
        return printed.TABLES[study][method][metric]

    def ours(found: list[Row]) -> list[str]:
        return [percent([row[metric] for row in where(found, pollution=p)]) for p in pollutions]

    header = ["method", "by", *(f"p = {share(p)}" for p in pollutions)]
    return ResultTable(printed.METRICS[metric], header, _lines(rows, printed.TABLES[study], paper, ours))


def _false_alarms(study: str, rows: list[Row], pollution: float) -> ResultTable:
    told = printed.FPR_AT_80_TPR.get(study, {})

    def paper(method: str) -> list[str]:
        return [f"{told[method]}"]

    def ours(found: list[Row]) -> list[str]:
        return [percent([row["fpr_at_80_tpr"] for row in found])]

    title = f"False positive rate at 80 % true positive rate, p = {share(pollution)}"
    return ResultTable(title, ["method", "by", "FPR"], _lines(rows, told, paper, ours))


def _splits(study: str, rows: list[Row]) -> ResultTable:
    metrics = {**printed.METRICS, "fpr_at_80_tpr": "FPR at 80 % TPR"}

    def paper(method: str) -> list[str]:
        return [printed.TABLES[study][method].get(metric, [""])[0] for metric in metrics]

    def ours(found: list[Row]) -> list[str]:
        return [percent([row[metric] for row in found]) for metric in metrics]

    header = ["method", "by", *metrics.values()]
    return ResultTable("Random splits", header, _lines(rows, printed.TABLES[study], paper, ours))


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


def case_1(rows: list[Row]) -> ResultTable:
    """The closed forms against gradient descent."""
    worst = {name: max(row[name] for row in rows) for name in ("eq1_error", "eq3_norm")}
    gap = max(row["eq4_loss"] - row["eq4_least"] for row in rows)
    least = min(row["eq3_least_eigenvalue"] for row in rows)
    return ResultTable(
        f"Gradient descent against the closed forms, worst of {len(rows)} draws",
        ["objective", "what theory says", "what is left of the difference"],
        [
            ["Eq. 1", "W = (2/n X'X + λI)⁻¹ (2/n X'1c')", f"relative error {worst['eq1_error']:.1e}"],
            ["Eq. 3", f"W = 0: least eigenvalue {least:.2f} > 0", f"norm of W {worst['eq3_norm']:.1e}"],
            ["Eq. 4", "loss = least eigenvalue of the covariance", f"loss above it by at most {gap:.1e}"],
        ],
    )


def case_2(rows: list[Row]) -> ResultTable:
    """The printed sizes and ratios beside those of many draws."""
    lines = []
    for name, title in OBJECTIVES.items():
        line = [title]
        for field, paper in zip(("size", "ratio"), printed.CASE_2.get(name, ("", "")), strict=True):
            drawn = [row[name][field] for row in rows]
            above = f"{fmean(value >= paper for value in drawn):.0%}" if paper else ""
            line += [f"{paper}", f"{fmean(drawn):.2f} ({pstdev(drawn):.2f})", above]
        lines.append(line)
    return ResultTable(
        f"{len(rows)} draws: mean (deviation), and the share of draws at or above the printed figure",
        ["objective", "size, paper", "size", "at or above", "ratio, paper", "ratio", "at or above"],
        lines,
    )


def case_3(rows: list[Row]) -> ResultTable:
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
    return ResultTable(f"Distance from the true centre, {len(rows)} draws", ["centre", "mean (deviation)"], lines)


def tuning(corpus: str, rows: list[Row]) -> list[ResultTable]:
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
        tables.append(ResultTable(title, header, lines))
    return tables


def unseen(corpus: str, rows: list[Row]) -> list[ResultTable]:
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
        tables.append(ResultTable(title, header, lines))
    return tables


def tables_of(study: str, rows: list[Row]) -> list[ResultTable]:
    """All tables of one study."""
    kind, _, corpus = study.partition("-")
    if kind == "case":
        return [{"1": case_1, "2": case_2, "3": case_3}[corpus](rows)]
    if kind == "tuning":
        return tuning(corpus, rows)
    if kind == "unseen":
        return unseen(corpus, rows)
    return comparison(study, rows)
