"""Rows to tables: plain titles, headers and cells, which the terminal and the page render each in its way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from strays.evaluation.paper import printed
from strays.evaluation.paper.cases import OBJECTIVES
from strays.evaluation.paper.methods import CLASSIFIERS, METHODS
from strays.evaluation.paper.rows import Row
from strays.evaluation.paper.tuning import GRIDS, PARAMETERS, chosen, is_printed

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
    """The distinct values of a field, in the order the rows bring them."""
    return list(dict.fromkeys(row[field] for row in rows))


def percent(shares: Sequence[float]) -> str:
    """Mean (deviation) in percent, as the paper prints it; nothing where there is nothing."""
    return f"{100 * fmean(shares):.1f} ({100 * pstdev(shares):.1f})" if shares else ""


def share(p: float) -> str:
    """A pollution in words."""
    return f"{100 * p:g} %"


def comparison(study: str, rows: list[Row]) -> list[Table]:
    """One table for each metric, the paper's figures above ours; 5.3, which has no pollution, in one table."""
    pollutions = sorted(values(rows, "pollution"), key=lambda p: p or 0)
    if pollutions == [None]:
        metrics = {**printed.METRICS, "fpr_at_80_tpr": "FPR at 80 % TPR"}
        lines = _lines(
            study,
            rows,
            lambda method: [printed.TABLES[study][method].get(metric, [""])[0] for metric in metrics],
            lambda found: [percent([row[metric] for row in found]) for metric in metrics],
        )
        return [Table("five random splits", ["method", "by", *metrics.values()], lines)]
    tables = [
        Table(
            title,
            ["method", "by", *(f"p = {share(p)}" for p in pollutions)],
            _lines(
                study,
                rows,
                lambda method, metric=metric: printed.TABLES[study][method][metric],  # type: ignore[misc]
                lambda found, metric=metric: [  # type: ignore[misc]
                    percent([row[metric] for row in where(found, pollution=p)]) for p in pollutions
                ],
            ),
        )
        for metric, title in printed.METRICS.items()
    ]
    highest = where(rows, pollution=max(pollutions))
    tables.append(
        Table(
            f"False positive rate at 80 % true positive rate, p = {share(max(pollutions))}",
            ["method", "by", "FPR"],
            _lines(
                study,
                highest,
                lambda method: [f"{printed.FPR_AT_80_TPR[study][method]}"],
                lambda found: [percent([row["fpr_at_80_tpr"] for row in found])],
                only_printed=printed.FPR_AT_80_TPR.get(study, {}),
            ),
        )
    )
    return tables


def _lines(
    study: str,
    rows: list[Row],
    of_paper: Callable[[str], list[str]],
    of_rows: Callable[[list[Row]], list[str]],
    only_printed: Iterable[str] | None = None,
) -> list[list[str]]:
    """For each method the paper's line, where it has one, and a line for each encoder."""
    has = set(printed.TABLES[study] if only_printed is None else only_printed)
    lines = []
    for name, method in METHODS.items():
        if method.printed in has and where(rows, method=name):
            lines.append([method.title, f"paper: {method.printed}", *of_paper(method.printed)])
        for encoder in values(rows, "encoder"):
            if found := where(rows, method=name, encoder=encoder):
                lines.append([method.title, f"strays, {encoder}", *of_rows(found)])
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
        line = [f"{title}, centre 2 m" if name == "eq1" else title]
        for field, paper in zip(("size", "ratio"), printed.CASE_2[name], strict=True):
            drawn = [row[name][field] for row in rows]
            above = fmean(value >= paper for value in drawn)
            line += [f"{paper}", f"{fmean(drawn):.2f} ({pstdev(drawn):.2f})", f"{above:.0%}"]
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


def tuning(corpus: str, rows: list[Row], best: int = 3) -> list[Table]:
    """For each method the best settings on the dev set, and where the paper's choice stands."""
    tables = []
    for method in GRIDS:
        ranked = chosen(rows, method)
        if not ranked:
            continue
        names = [name for name in PARAMETERS if any(row[name] is not None for row in ranked)]
        places = [*range(min(best, len(ranked))), *(i for i, row in enumerate(ranked) if is_printed(row, corpus))]
        middle = len(ranked) // 2
        lines = [
            [
                f"{i + 1}" + (", the paper's choice" if is_printed(ranked[i], corpus) else ""),
                *(f"{ranked[i][name]:g}" for name in names),
                f"{100 * ranked[i]['auc']:.1f}",
                f"{100 * ranked[i]['map']:.1f}",
            ]
            for i in sorted({*places, middle, len(ranked) - 1})
        ]
        header = ["place by AUC", *(name.replace("_", " ") for name in names), "dev AUC", "dev MAP"]
        tables.append(Table(f"{TITLES[method]}: {len(ranked)} settings on {corpus}", header, lines))
    return tables


def unseen(corpus: str, rows: list[Row]) -> list[Table]:
    """AUC and MAP of every method over p, on anomalies of the known kind and of others; mean over kinds and seeds."""
    pollutions = sorted(values(rows, "pollution"))
    tests = [test for test in ("seen", "unseen") if any(test in row for row in rows)]
    tables = []
    for metric, title in (("auc", "AUC"), ("map", "MAP")):
        lines = [
            [TITLES[method]]
            + [
                percent([row[test][metric] for row in where(rows, method=method, pollution=p) if test in row])
                for test in tests
                for p in pollutions
            ]
            for method in values(rows, "method")
        ]
        header = ["method", *(f"{test}, p = {share(p)}" for test in tests for p in pollutions)]
        tables.append(Table(f"{title} on {corpus}, mean (deviation) over known kinds and runs", header, lines))
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
