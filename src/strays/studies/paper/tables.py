"""Rows to tables, the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import product
from statistics import fmean

from strays.studies.paper import details, printed
from strays.studies.paper.case_tables import CASE_TABLES
from strays.studies.paper.methods import METHODS
from strays.studies.paper.summary import (
    TITLES,
    ResultTable,
    RowsByStudy,
    comparisons,
    first_encoders,
    percent,
    share,
    values,
    where,
)
from strays.studies.paper.tuning import PRESETS
from strays.studies.paper.tuning_tables import best_settings, searched, setting_words
from strays.studies.paper.unseen import METHODS_COMPARED
from strays.studies.protocol import POLLUTIONS
from strays.studies.rows import Row

COLUMNS = ("method", "settings", "by")
# A line of the main table that has no rows yet: the paper leaves its encoder as it is.
NEXT = "AI-SVDD, encoder trained on the BC-Loss"


def main_table(every: RowsByStudy) -> ResultTable | None:
    """MAP / AUC of the two networks at the lowest and the highest p of every comparison, printed and ours."""
    compared = comparisons(every)
    columns = [
        (study, encoder, p)
        for study, rows in compared.items()
        for encoder in values(rows, "encoder")[:1]
        for p in sorted({values(rows, "pollution")[0], values(rows, "pollution")[-1]}, key=lambda p: p or 0)
    ]

    def paper(method: str) -> list[str]:
        cells = []
        for study, _, p in columns:
            place = POLLUTIONS.index(p) if p in POLLUTIONS else 0
            found = printed.TABLES[study][method]
            cells.append(" / ".join(found[metric][place].split()[0] for metric in ("map", "auc")))
        return cells

    def ours(name: str) -> list[str]:
        cells = []
        for study, encoder, p in columns:
            rows = where(compared[study], encoder=encoder, pollution=p, method=name)
            means = (f"{100 * fmean(row[metric] for row in rows):.1f}" for metric in ("map", "auc") if rows)
            cells.append(" / ".join(means))
        return cells

    lines = []
    for name in ("deep-svdd-tuned", "deep-svdd", "ai-svdd-tuned", "ai-svdd-paper", "ai-svdd"):
        title, _, settings = TITLES[name].partition(", ")
        if name in ("deep-svdd-tuned", "ai-svdd-tuned"):
            lines.append([title, "printed in the paper", *paper(METHODS[name].printed or "")])
        if any(cells := ours(name)):
            lines.append([title, settings, *cells])
    title, _, settings = NEXT.partition(", ")
    lines.append([title, settings, *["not run yet"] * len(columns)])
    header = [f"{study}" + ("" if p is None else f", p = {share(p)}") for study, _, p in columns]
    return (
        ResultTable(f"MAP / AUC, {first_encoders(every)}", ["method", "settings", *header], lines) if columns else None
    )


def comparison(study: str, rows: list[Row]) -> list[ResultTable]:
    """The settings, then one table for each metric, the paper's figures above ours; 5.3 has one table for all."""
    pollutions = values(rows, "pollution")
    if pollutions == [None]:
        return [_settings(study, rows), _splits(study, rows)]
    return [
        _settings(study, rows),
        *(_over_pollution(study, rows, metric, pollutions) for metric in printed.METRICS),
        _false_alarms(study, where(rows, pollution=pollutions[-1]), pollutions[-1]),
    ]


def _settings(study: str, rows: list[Row]) -> ResultTable:
    """The numbers behind "tuned here" and "the paper's numbers"."""
    lines = []
    for name, method in METHODS.items():
        title, _, settings = method.title.partition(", ")
        if name in PRESETS:
            lines.append([title, settings, "", setting_words(PRESETS[name](study, 0).get_params())])
        for encoder in values(rows, "encoder") if method.grid else ():
            if own := where(rows, method=name, encoder=encoder):
                lines.append([title, settings, encoder, setting_words(own[0]["settings"])])
    header = ["method", "settings", "encoder", "hidden / latent / batch size, weight decay"]
    return ResultTable("Settings of the networks", header, lines)


def _over_pollution(study: str, rows: list[Row], metric: str, pollutions: list[float]) -> ResultTable:
    def paper(method: str) -> list[str]:
        found = printed.TABLES[study][method][metric]
        return [found[POLLUTIONS.index(p)] for p in pollutions]

    def ours(found: list[Row]) -> list[str]:
        return [percent([row[metric] for row in where(found, pollution=p)]) for p in pollutions]

    header = [*COLUMNS, *(f"p = {share(p)}" for p in pollutions)]
    return ResultTable(printed.METRICS[metric], header, _lines(rows, printed.TABLES[study], paper, ours))


def _false_alarms(study: str, rows: list[Row], pollution: float) -> ResultTable:
    told = printed.FPR_AT_80_TPR.get(study, {})

    def paper(method: str) -> list[str]:
        return [f"{told[method]}"]

    def ours(found: list[Row]) -> list[str]:
        return [percent([row["fpr_at_80_tpr"] for row in found])]

    title = f"False positive rate at 80 % true positive rate, p = {share(pollution)}"
    return ResultTable(title, [*COLUMNS, "FPR"], _lines(rows, told, paper, ours))


def _splits(study: str, rows: list[Row]) -> ResultTable:
    metrics = {**printed.METRICS, "fpr_at_80_tpr": "FPR at 80 % TPR"}

    def paper(method: str) -> list[str]:
        return [printed.TABLES[study][method].get(metric, [""])[0] for metric in metrics]

    def ours(found: list[Row]) -> list[str]:
        return [percent([row[metric] for row in found]) for metric in metrics]

    header = [*COLUMNS, *metrics.values()]
    return ResultTable("Random splits", header, _lines(rows, printed.TABLES[study], paper, ours))


def _lines(
    rows: list[Row],
    in_paper: Collection[str],
    paper: Callable[[str], list[str]],
    ours: Callable[[list[Row]], list[str]],
) -> list[list[str]]:
    """The paper's line above the first of the methods it stands for, and a line for each method and encoder."""
    lines = []
    left = set(in_paper)
    for name, method in METHODS.items():
        title, _, settings = method.title.partition(", ")
        if method.printed in left and where(rows, method=name):
            left.remove(method.printed)
            lines.append([title, "", f"paper: {method.printed}", *paper(method.printed)])
        for encoder in values(rows, "encoder"):
            if found := where(rows, method=name, encoder=encoder):
                lines.append([title, settings, f"strays, {encoder}", *ours(found)])
    return lines


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


def tables_of(study: str, every: RowsByStudy) -> list[ResultTable]:
    """All tables of one study; choices stand beside the rows of their comparison."""
    rows = every.get(study, [])
    kind, _, corpus = study.partition("-")
    if not rows:
        return []
    if kind == "case":
        return [CASE_TABLES[study](rows)]
    if kind == "tuning":
        return [*filter(None, [searched({study: rows})]), *best_settings(corpus, rows)]
    if kind == "unseen":
        return unseen(corpus, rows)
    if kind == "choices":
        return details.choices(details.other_ways({study: rows, corpus: every.get(corpus, [])}))
    if kind == "repeat":
        return [details.repeat(details.reruns(rows))]
    return comparison(study, rows)
