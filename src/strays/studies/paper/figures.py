"""Rows to figures, as SVG: the ROC curves of the paper's Figure 3, quality over pollution, the case studies."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from strays.errors import StraysError
from strays.studies.paper import printed
from strays.studies.paper.cases import CASE_1_LAMBDA, CASE_1_STEPS, CURVE_STEP
from strays.studies.paper.methods import METHODS
from strays.studies.paper.study import ROC_GRID
from strays.studies.paper.summary import TITLES, share, values, where
from strays.studies.paper.unseen import METHODS_COMPARED
from strays.studies.protocol import POLLUTIONS
from strays.studies.rows import Row

BLUE, GREEN, RED = "#1f77b4", "#2ca02c", "#d62728"
COLORS = {
    "centroid": "#7f7f7f",
    "oc-svm": "#8c564b",
    "isolation-forest": GREEN,
    "lof": "#9467bd",
    "deep-svdd-tuned": BLUE,
    "deep-svdd": "#9ecae1",
    "ai-svdd-tuned": "#ff7f0e",
    "ai-svdd-paper": "#fdc086",
    "ai-svdd-sgd": "#e377c2",
    "ai-svdd": RED,
    "logistic": "#17becf",
    "mlp": BLUE,
}
# Of the paper's tables, dotted.
PRINTED = {"OC-SVDD": BLUE, "AI-SVDD": "#ff7f0e"}
# Not tuned here: dashed.
DASHED = ("deep-svdd", "ai-svdd-paper")
# From unpolluted to most polluted.
SHADES = ("#fdbb84", "#fc8d59", "#e34a33", "#b30000", "#4d0000")
STYLE = {
    "svg.hashsalt": "strays",  # the same rows make the same file
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e5e5",
    "legend.frameon": False,
    "legend.fontsize": 8,
}


def figures_of(study: str, rows: list[Row]) -> dict[str, Callable[[], Any]]:
    """File name (without suffix) -> a function that draws it, for one study."""
    kind, _, corpus = study.partition("-")
    if kind == "case":
        return {study: lambda: {"1": case_1, "2": case_2, "3": case_3}[corpus](rows)}
    if kind == "unseen":
        return {study: lambda: unseen(corpus, rows)}
    if kind in ("tuning", "choices", "repeat"):
        return {}
    drawn: dict[str, Callable[[], Any]] = {f"{study}-roc": lambda: roc(study, rows)}
    if len(values(rows, "pollution")) > 1:
        drawn[f"{study}-pollution"] = lambda: pollution(study, rows)
    return drawn


def save(draw: Callable[[], Any], path: Path) -> None:
    """Draw a figure into an SVG file."""
    with style():
        draw().savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    # Hundredths of a point are enough, and free of the last digits in which machines differ. Inside tags: labels stay.
    text = re.sub(
        r"\d+\.\d{3,}(?=[^<>]*>)", lambda number: f"{float(number.group()):.2f}", path.read_text(encoding="utf-8")
    )
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")


def style() -> AbstractContextManager[None]:
    """Matplotlib's settings for our figures; says how to get matplotlib where it is missing."""
    try:
        import matplotlib
    except ImportError as error:
        raise StraysError(
            "figures are drawn with matplotlib, which is not installed; get it with: pip install 'strays[study]'"
        ) from error
    context: AbstractContextManager[None] = matplotlib.rc_context(STYLE)
    return context


def roc(study: str, rows: list[Row]) -> Any:
    """Each method over p, and all methods at the highest p; for 5.3 all methods. A network that is tuned, only so."""
    encoder = values(rows, "encoder")[0]
    rows = where(rows, encoder=encoder)
    pollutions = values(rows, "pollution")
    highest = pollutions[-1]
    present = [name for name in METHODS if where(rows, method=name)]
    methods = [name for name in present if name not in {METHODS[other].grid for other in present}]
    n = len(methods) + 1 if len(pollutions) > 1 else 1
    figure, axes = panels(n, columns=3, size=(3.6, 2.9)) if n > 1 else panels(1, columns=1, size=(6.4, 3.6))
    for ax, method in zip(axes, methods if n > 1 else [], strict=False):
        for p, color in zip(pollutions, SHADES, strict=False):
            _curve(ax, where(rows, method=method, pollution=p), f"p = {share(p)}", color)
        ax.set_title(TITLES[method])
    for method in methods:
        _curve(axes[-1], where(rows, method=method, pollution=highest), TITLES[method], COLORS[method])
    axes[-1].set_title("all methods" + (f" at p = {share(highest)}" if highest else ""))
    for ax in axes:
        ax.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1.005))
    if n > 1:
        axes[0].legend(loc="lower right")
    _legend_below(figure, axes[-1])
    figure.suptitle(f"{study}: ROC curves, mean of {len(values(rows, 'seed'))} runs, encoder {encoder}")
    return figure


def _curve(ax: Any, rows: list[Row], label: str, color: str) -> None:
    """The mean ROC curve: at each true positive rate the mean false positive rate."""
    if rows:
        fpr = np.mean([row["roc_fpr"] for row in rows], axis=0)
        ax.plot([*fpr, 1], [*ROC_GRID, 1], label=label, color=color, lw=1.4)


def pollution(study: str, rows: list[Row]) -> Any:
    """MAP and AUC over p for every method and encoder, bands of one deviation, and the networks' printed figures."""
    encoders = values(rows, "encoder")
    figure, axes = panels(2 * len(encoders), columns=2, size=(4.6, 3.2))
    for i, encoder in enumerate(encoders):
        for ax, (metric, title) in zip(axes[2 * i :], (("map", "MAP"), ("auc", "AUC")), strict=False):
            for method in METHODS:
                if found := where(rows, encoder=encoder, method=method):
                    _over_p(ax, found, metric, method, band=method not in DASHED)
            for method, color in PRINTED.items():
                figures = [float(cell.split()[0]) for cell in printed.TABLES[study][method][metric]]
                ax.plot([100 * p for p in POLLUTIONS], figures, color=color, ls=":", lw=1.4, label=f"paper: {method}")
            ax.set(title=f"{title}, encoder {encoder}", xlabel="known anomalies, % of training normals")
    _legend_below(figure, axes[0])
    figure.suptitle(f"{study}: quality over the pollution of the training set")
    return figure


def _over_p(ax: Any, rows: list[Row], metric: str, method: str, *, band: bool = True) -> None:
    pollutions = values(rows, "pollution")
    drawn = [[100 * row[metric] for row in where(rows, pollution=p)] for p in pollutions]
    mean, deviation = np.array([np.mean(d) for d in drawn]), np.array([np.std(d) for d in drawn])
    x = [100 * p for p in pollutions]
    line = "--" if method in DASHED else "-"
    ax.plot(x, mean, color=COLORS[method], label=TITLES[method], marker="o", ms=3, lw=1.4, ls=line)
    if band:
        ax.fill_between(x, mean - deviation, mean + deviation, color=COLORS[method], alpha=0.12, lw=0)


def unseen(corpus: str, rows: list[Row]) -> Any:
    """AUC over p, on test anomalies of the known kind and of the others."""
    encoder = values(rows, "encoder")[0]
    tests = [test for test in ("seen", "unseen") if any(test in row for row in rows)]
    words = {"seen": "of the known kind", "unseen": "of kinds never seen"}
    figure, axes = panels(len(tests), columns=2, size=(4.6, 3.2))
    for ax, test in zip(axes, tests, strict=True):
        for method in METHODS_COMPARED:
            if found := [row | row[test] for row in where(rows, method=method, encoder=encoder) if test in row]:
                _over_p(ax, found, "auc", method, band=False)  # kinds differ far more than runs
        ax.set(title=f"test anomalies {words[test]}", xlabel="known anomalies, % of training normals", ylabel="AUC")
    _legend_below(figure, axes[0])
    figure.suptitle(f"{corpus}: one kind of anomaly known; mean over kinds and runs, encoder {encoder}")
    return figure


def case_1(rows: list[Row]) -> Any:
    """The first draw's gradient descent."""
    [first] = where(rows, draw=0)
    curves = first["curves"]
    figure, axes = panels(3, columns=3, size=(3.2, 2.6))
    steps = np.arange(0, CASE_1_STEPS, CURVE_STEP)
    axes[0].semilogy(steps, curves["eq1_error"], color=BLUE)
    axes[0].set(title="Eq. 1: distance to the closed form", xlabel="step")
    axes[1].semilogy(steps, curves["eq3_norm"], color=RED)
    axes[1].set(title=f"Eq. 3, λ = {CASE_1_LAMBDA}: norm of W", xlabel="step")
    axes[2].plot(steps, curves["eq4_loss"], color=GREEN, label="loss, with |W| = 1")
    axes[2].axhline(first["eq4_least"], color="black", lw=0.8, ls="--", label="least eigenvalue")
    axes[2].set(title="Eq. 4: loss", xlabel="step")
    axes[2].legend()
    figure.suptitle("Case I: gradient descent on a linear layer")
    return figure


def case_2(rows: list[Row]) -> Any:
    """The first draw's points and where the three maps put them."""
    [first] = where(rows, draw=0)
    figure, axes = panels(4, columns=4, size=(2.8, 2.8))
    titles = {"input": "input", "eq1": "Eq. 1, centre 2 m", "eq4": "Eq. 4", "ai-svdd": "AI-SVDD"}
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        points = first["points"][name]
        ax.scatter(*np.transpose(points["normal"]), s=8, color=BLUE, label="normal", alpha=0.6, lw=0)
        ax.scatter(*np.transpose(points["anomaly"]), s=36, color=GREEN, marker="x", label="anomaly")
        ax.scatter(*points["center"], s=36, color=RED, marker="+", label="centre")
        ax.set(title=title, aspect="equal")
        ax.set_adjustable("datalim")
    axes[0].legend(loc="best")
    figure.suptitle("Case II: where a linear layer puts a Gaussian and anomalies on a circle (one draw)")
    return figure


def case_3(rows: list[Row]) -> Any:
    """The first draw's points and centres."""
    [first] = where(rows, draw=0)
    points = first["points"]
    figure, [ax] = panels(1, columns=1, size=(5.2, 4.2))
    ax.scatter(*np.transpose(points["normal"]), s=14, color=BLUE, label="normal")
    ax.scatter(*np.transpose(points["bad"]), s=14, color="#8c564b", label="bad, labelled normal")
    ax.scatter(*np.transpose(points["anomaly"]), s=30, color=GREEN, marker="x", label="anomaly")
    ax.scatter(0, 0, s=70, color="#ffbf00", edgecolor="black", lw=0.5, label="true centre")
    ax.scatter(*points["blind"], s=70, color=RED, label="centre without labels (Eq. 4)")
    ax.scatter(*points["taught"], s=70, color="#9467bd", label="centre with labels (Eq. 5)")
    ax.legend(loc="lower right")
    figure.suptitle("Case III: the centre with and without labels (one draw)")
    return figure


def _legend_below(figure: Any, ax: Any) -> None:
    """One legend for the whole figure, under its panels, where it hides no curve."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=int(figure.get_figwidth() // 2.3))


def panels(n: int, columns: int, size: tuple[float, float]) -> tuple[Any, list[Any]]:
    """A figure of n panels, each of the given size in inches."""
    from matplotlib.figure import Figure

    lines = -(-n // columns)
    figure = Figure(figsize=(size[0] * columns, size[1] * lines + 0.8), layout="constrained", facecolor="white")
    axes = figure.subplots(lines, columns, squeeze=False).flatten().tolist()
    for ax in axes[n:]:
        ax.set_axis_off()
    return figure, axes[:n]
