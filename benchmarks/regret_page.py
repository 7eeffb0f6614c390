"""docs/regret.md and its figures, from the rows of benchmarks.regret alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.regret_cells import KINDS, OWN, Cell, cells_of, read
from strays.studies.corpora import CORPORA, FURTHER_CORPORA
from strays.studies.paper.figures import save

PAGE = Path(__file__).parent.parent / "docs" / "regret.md"
TITLES = {
    "5.1": "film reviews among encyclopedia sentences (5.1)",
    "5.2-ag": "AG news titles (5.2)",
    "5.2-yelp": "Yelp reviews (5.2)",
    "5.2-rct": "sentences of trial abstracts (5.2)",
    "5.3": "Chinese medical questions (5.3, m3e-small)",
    "banking": "banking intents",
    "bbc": "BBC news",
    "csabstruct": "sentences of computer science abstracts",
    "email": "e-mail, spam",
    "newsgroups": "20 Newsgroups",
    "polarity": "film review polarity",
}
INTRODUCTION = """# Quality against the number of labels

Made from the rows in `benchmarks/results/regret` by `python -m benchmarks.regret --page`. A cell is a corpus, a number
of known anomalies, a share of anomalies among the training texts that nobody has labelled, and test anomalies of kinds
seen in training or unseen; its value is the mean of three seeds, each with its own draw of texts, labels and kinds. Up
to 3,000 training normals; test splits; default encoder, m3e-small for Chinese. Average precision (AP) is that of a test
set with 5 % anomalies. **Regret** is the best of {n_singles} single detectors in a cell, whichever that is (nobody
knows beforehand), less `auto`. Users' `auto` reads the form of the texts, too; `auto, form=False` sees what the single
detectors see.

Over {n_cells} cells the mean regret of `auto` is **{auc:.2f} AUC** and **{ap:.2f} AP** points; below zero it is better
than picking the best single detector for each cell. The worst cell costs {worst:.1f} AUC points: {where}, where {best}
is best.
"""
SHOWN = {
    "auto": "#d62728",
    "ai-svdd": "#ff7f0e",
    "deep-sad": "#8c564b",
    "logistic": "#17becf",
    "nearest": "#1f77b4",
    "centroid": "#7f7f7f",
}


def write(results: Path, page: Path = PAGE) -> None:
    """Make the page and one figure for every corpus."""
    cells = cells_of(read(results))
    figures = page.with_suffix("")
    figures.mkdir(exist_ok=True)
    for corpus in sorted({cell.corpus for cell in cells}):
        save(curves(cells, corpus), figures / f"{corpus}.svg")
    page.write_text(text(cells), encoding="utf-8")


def curves(cells: list[Cell], corpus: str) -> Callable[[], Any]:
    """AUC and average precision against the number of known anomalies, for test anomalies seen and unseen."""

    def draw() -> Any:
        from matplotlib.figure import Figure

        of = [cell for cell in cells if cell.corpus == corpus and cell.pollution == 0]
        kinds = [kind for kind in KINDS if any(cell.kind == kind for cell in of)]
        figure = Figure(figsize=(7.2, 2.5 * len(kinds)), layout="constrained")
        axes = figure.subplots(len(kinds), 2, squeeze=False)
        for i, kind in enumerate(kinds):
            for j, metric in enumerate(("auc", "ap")):
                ax = axes[i][j]
                series = [cell for cell in of if cell.kind == kind]
                for method, color in SHOWN.items():
                    there = [cell for cell in series if method in cell.auc]
                    ax.plot(
                        [position(cell.known) for cell in there],
                        [cell.values(metric)[method] for cell in there],
                        color=color,
                        label=method,
                        linewidth=2.2 if method == "auto" else 1.1,
                        marker="o",
                        markersize=3,
                        zorder=3 if method == "auto" else 2,
                    )
                ax.set_xticks([position(cell.known) for cell in series], [str(cell.known) for cell in series])
                ax.set_title(f"{'AUC' if metric == 'auc' else 'average precision'}, kinds {kind}")
                ax.set_xlabel("known anomalies")
        axes[0][0].legend(loc="lower right", ncols=2)
        return figure

    return draw


def position(known: int) -> float:
    """Where a number of known anomalies stands on the axis: evenly for a ratio, with room for none."""
    return float(np.log10(known)) if known else -0.6


def text(cells: list[Cell]) -> str:
    """The page."""
    auc, ap = ([cell.regret(metric) for cell in cells] for metric in ("auc", "ap"))
    worst = max(cells, key=lambda cell: cell.regret())
    singles = sorted(set.intersection(*(set(cell.auc) for cell in cells if cell.known)) - set(OWN))
    lines = [
        INTRODUCTION.format(
            n_singles=len(singles),
            n_cells=len(cells),
            auc=np.mean(auc),
            ap=np.mean(ap),
            worst=worst.regret(),
            where=name_of(worst),
            best=worst.best(),
        ),
        "## Mean and worst regret of each detector",
        "| detector | mean AUC | worst AUC | mean AP | worst AP |",
        "|---|---|---|---|---|",
        *table_of_methods(cells, [*OWN, *singles]),
        "",
        "## By known anomalies",
        "| known | unlabelled | cells | mean AUC regret | worst | mean AP regret |",
        "|---|---|---|---|---|---|",
        *table_of_labels(cells),
        "",
        "## Where labels cost something",
        *harm(cells),
        "",
        "## The curves",
        "Training data without hidden anomalies. The blind detectors (nearest, centroid) are level lines.",
        "",
    ]
    for corpus in [*CORPORA, *FURTHER_CORPORA]:
        if any(cell.corpus == corpus for cell in cells):
            lines += [
                f"### {TITLES[corpus]}",
                f"![Quality against known anomalies on {corpus}](regret/{corpus}.svg)",
                "",
            ]
    return "\n".join(lines)


def name_of(cell: Cell) -> str:
    """A cell in words."""
    polluted = f", {cell.pollution:.0%} unlabelled anomalies" if cell.pollution else ""
    return f"{cell.corpus} with {cell.known} known{polluted}, kinds {cell.kind}"


def table_of_methods(cells: list[Cell], methods: list[str]) -> list[str]:
    """Regret of every method against the best single one."""
    rows = []
    for method in methods:
        regrets = []
        for metric in ("auc", "ap"):
            own = np.array([max_single(cell, metric) - cell.values(metric)[method] for cell in cells])
            regrets += [f"{own.mean():.2f}", f"{own.max():.1f}"]
        rows.append((float(regrets[0]), f"| {method} | {' | '.join(regrets)} |"))
    return [line for _, line in sorted(rows)]


def max_single(cell: Cell, metric: str) -> float:
    """The best single method's value."""
    return cell.values(metric)["auto"] + cell.regret(metric)


def table_of_labels(cells: list[Cell]) -> list[str]:
    """Regret of `auto` for every number of labels and share of pollution."""
    lines = []
    for pollution in sorted({cell.pollution for cell in cells}):
        for known in sorted({cell.known for cell in cells if cell.pollution == pollution}):
            of = [cell for cell in cells if (cell.known, cell.pollution) == (known, pollution)]
            auc, ap = (np.array([cell.regret(metric) for cell in of]) for metric in ("auc", "ap"))
            lines.append(
                f"| {known} | {pollution:.0%} | {len(of)} | {auc.mean():.2f} | {auc.max():.1f} | {ap.mean():.2f} |"
            )
    return lines


def harm(cells: list[Cell]) -> list[str]:
    """Cells where `auto` with 10 and more labels is below itself with none, or with 100 and more below logistic."""
    by_place = {(cell.corpus, cell.known, cell.pollution, cell.kind): cell for cell in cells}
    below_none = [
        (cell, cell.auc["auto"] - by_place[cell.corpus, 0, cell.pollution, cell.kind].auc["auto"])
        for cell in cells
        if cell.known >= 10
    ]
    below_logistic = [
        (cell, cell.auc["auto"] - cell.auc["logistic"]) for cell in cells if cell.known >= 100 and cell.kind == "seen"
    ]
    lines = []
    for pairs, title in (
        (below_none, "With 10 or more known anomalies `auto` is more than 1 AUC point below itself with none"),
        (below_logistic, "With 100 or more of seen kinds it is more than 1 AUC point below logistic regression"),
    ):
        bad = sorted((pair for pair in pairs if pair[1] < -1), key=lambda pair: pair[1])
        places = "; ".join(f"{name_of(cell)} ({difference:.1f})" for cell, difference in bad) or "nowhere"
        lines.append(f"- {title} in {len(bad)} of {len(pairs)} cells: {places}.")
    return lines
