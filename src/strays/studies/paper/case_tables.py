"""The tables of the case studies."""

from __future__ import annotations

from statistics import fmean, pstdev

from strays.studies.paper import printed
from strays.studies.paper.cases import OBJECTIVES
from strays.studies.paper.summary import ResultTable
from strays.studies.rows import Row


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
            above = f"{100 * fmean(value >= paper for value in drawn):.0f} %" if paper else ""
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


CASE_TABLES = {"case-1": case_1, "case-2": case_2, "case-3": case_3}
