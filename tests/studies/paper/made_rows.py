"""Rows of every kind of study, made up so that what tables and the page must say of them is known."""

from __future__ import annotations

from itertools import product

import numpy as np

from strays.studies.corpora import CORPORA
from strays.studies.paper.cases import CASES
from strays.studies.paper.choices import CHOICES
from strays.studies.paper.methods import METHODS
from strays.studies.paper.tuning import GRIDS, PARAMETERS, finalists
from strays.studies.paper.unseen import METHODS_COMPARED
from strays.studies.protocol import POLLUTIONS
from strays.studies.rows import Row

TUNED = {
    "deep-svdd-tuned": {"hidden_size": 256, "latent_size": 32, "batch_size": 128, "weight_decay": 1.0},
    "ai-svdd-tuned": {"hidden_size": 128, "latent_size": 16, "batch_size": 512},
}


def measured(auc: float) -> Row:
    curve = [round(float(x), 4) for x in np.linspace(0, 1, 51)]
    metrics = {"map": auc / 2, "recall_at_5": auc / 3, "auc": auc, "fpr_at_80_tpr": 1 - auc}
    return {"n": 105, "n_anomalies": 5, **metrics, "roc_fpr": curve}


def trained(method: str) -> Row:
    """What a row of several trainings has besides its metrics."""
    settings: Row = {"settings": TUNED[method]} if method in TUNED else {}
    if not METHODS[method].random:
        return settings
    return settings | {"trainings": 5, "spread": {"map": 0.01, "recall_at_5": 0.01, "auc": 0.02, "fpr_at_80_tpr": 0.01}}


def comparison_rows(study: str, slope: dict[str, float], encoders: tuple[str, ...] = ("default",)) -> list[Row]:
    """Rows in which a method's AUC moves by its slope from the lowest to the highest p, with a little noise by seed."""
    rng = np.random.default_rng(0)
    return [
        {"study": study, "encoder": encoder, "method": method, "pollution": p, "seed": seed}
        | trained(method)
        | measured(0.7 + 0.01 * list(METHODS).index(method) + slope.get(method, 0.0) * p / 0.08 + 0.001 * rng.random())
        for encoder, seed, p, method in product(encoders, range(5), POLLUTIONS, METHODS)
    ]


def unseen_rows(study: str) -> list[Row]:
    kinds = CORPORA["5.2-ag"].anomalies
    return [
        {"study": study, "encoder": encoder, "method": method, "known": kind, "pollution": p, "seed": seed}
        | {"seen": measured(0.8 + 0.01 * i + seed / 1000), "unseen": measured(0.8 - 0.01 * i + seed / 1000)}
        for encoder, seed, kind, p, (i, method) in product(
            ("default", "another"), range(2), kinds, POLLUTIONS[1:], enumerate(METHODS_COMPARED)
        )
    ]


def choice_rows(corpus: str, compared: list[Row], by: dict[str, float]) -> list[Row]:
    """Rows of the other way, above those of the comparison by a number for each choice, give or take 0.01."""
    return [
        {name: value for name, value in row.items() if name != "roc_fpr"}
        | {"study": f"choices-{corpus}", "choice": name}
        | {metric: row[metric] + more + 0.01 * (row["seed"] - 2) for metric in ("auc", "map")}
        for name, more in by.items()
        for row in compared
        if row["encoder"] == "default"
        and row["method"] in CHOICES[name].methods
        and row["pollution"] in CHOICES[name].pollutions
    ]


def repeat_rows(by: dict[tuple[str, int, float], dict[str, float]]) -> list[Row]:
    """One training of two methods at every p; each way to run adds its numbers to the AUC of a method."""
    return [
        {"study": "repeat-5.1", "encoder": "default", "method": method, "pollution": p}
        | {"kernels": kernels, "threads": threads, "noise": noise}
        | measured(0.7 + p + added.get(method, 0.0))
        for (kernels, threads, noise), added in by.items()
        for method, p in product(("lof", "ai-svdd-paper"), POLLUTIONS)
    ]


def tuning_rows(corpus: str = "5.1", encoder: str = "default") -> list[Row]:
    """Every setting a little better than the one before it; the first two of each grid collapsed.

    Of the finalists, the last is the best when they are trained again.
    """
    rows = [
        {"study": f"tuning-{corpus}", "encoder": encoder, "method": method}
        | dict(zip(PARAMETERS, values, strict=True))
        | {"training": 0}
        | (measured(0.501 + i / 2000) if i > 1 else measured(0.5) | {"collapsed": 1})
        for method, grid in GRIDS.items()
        for i, values in enumerate(product(*(grid[name] for name in PARAMETERS)))
    ]
    again = [
        row | measured(row["auc"] + 0.01 * i) | {"training": training}
        for method in GRIDS
        for i, row in enumerate(finalists(rows, method))
        for training in range(1, 5)
    ]
    return [{name: value for name, value in row.items() if name != "roc_fpr"} for row in rows + again]


def every_row() -> dict[str, list[Row]]:
    """Rows of every kind of study."""
    slope = {"lof": -0.1, "deep-svdd-tuned": -0.05, "deep-svdd": -0.05, "centroid": -0.02, "oc-svm": -0.02}
    rising = {"ai-svdd-tuned": 0.1, "ai-svdd": 0.1}
    compared = comparison_rows("5.1", slope | rising, ("another", "default"))
    splits = [row | {"study": "5.3", "pollution": None} for row in comparison_rows("5.3", {}) if row["pollution"] == 0]
    return {
        "5.1": compared,
        "5.3": splits,
        **{case.name: [{"study": case.name, "draw": i} | case.compute(i) for i in range(3)] for case in CASES},
        "unseen-5.2-ag": unseen_rows("unseen-5.2-ag"),
        "tuning-5.1": tuning_rows(),
        "choices-5.1": choice_rows("5.1", compared, {"batches": 0.05, "start": 0.0, "oc-center": -0.1}),
        "repeat-5.1": repeat_rows(
            {
                ("Haswell", 1, 0.0): {},
                ("Haswell", 2, 0.0): {"ai-svdd-paper": 0.0009},
                ("Haswell", 1, 1e-7): {"ai-svdd-paper": -0.02},
                ("Zen", 1, 0.0): {"ai-svdd-paper": 0.003, "lof": 0.001},
            }
        ),
    }
