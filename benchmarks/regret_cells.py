"""Rows of benchmarks.regret as cells: what every method reaches in each, and how far `auto` is from the best."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from strays.studies.rows import Row, RowFile

KINDS = ("seen", "unseen")
WITHOUT_FORM = "auto, form=False"
OWN = ("auto", WITHOUT_FORM)
LEARN_FROM_LABELS = (*OWN, "ai-svdd", "deep-sad", "hypersphere", "logistic")


@dataclass(frozen=True)
class Cell:
    """Means over the seeds, in percent, of every method by name."""

    corpus: str
    known: int
    pollution: float
    kind: str
    auc: dict[str, float]
    ap: dict[str, float]

    def values(self, metric: str) -> dict[str, float]:
        """`auc` or `ap`."""
        return self.auc if metric == "auc" else self.ap

    def regret(self, metric: str = "auc") -> float:
        """The best single method less `auto`; negative where `auto` is better than all of them."""
        values = self.values(metric)
        return max(value for method, value in values.items() if method not in OWN) - values["auto"]

    def best(self, metric: str = "auc") -> str:
        """The best single method."""
        values = {method: value for method, value in self.values(metric).items() if method not in OWN}
        return max(values, key=lambda method: values[method])


def read(folder: Path) -> list[Row]:
    """All rows of a folder."""
    return [row for path in sorted(folder.glob("*.jsonl")) for row in RowFile(path).read()]


def cells_of(rows: list[Row]) -> list[Cell]:
    """Every cell that all methods which learn from labels have been measured in, with the same seeds each."""
    found: dict[tuple[str, float, int], dict[int, dict[str, Row]]] = defaultdict(lambda: defaultdict(dict))
    unlabelled: dict[tuple[str, float, int], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        found[row["corpus"], row["pollution"], row["known"]][row["seed"]][row["method"]] = row
        if row["known"] == 0:
            unlabelled[row["corpus"], row["pollution"], row["seed"]][row["method"]] = row
    out = []
    for (corpus, pollution, known), seeds in found.items():
        # What learns from no labels was measured without any.
        complete = [unlabelled[corpus, pollution, seed] | methods for seed, methods in sorted(seeds.items())]
        methods = set.intersection(*(set(by_method) for by_method in complete))
        if not all(method in by_method for by_method in seeds.values() for method in LEARN_FROM_LABELS):
            continue
        for kind in KINDS:
            if all(f"auc_{kind}" in by_method["auto"] for by_method in complete):
                mean = {
                    metric: {
                        name: 100 * float(np.mean([by_method[name][f"{metric}_{kind}"] for by_method in complete]))
                        for name in sorted(methods)
                    }
                    for metric in ("auc", "ap")
                }
                out.append(Cell(corpus, int(known), float(pollution), kind, mean["auc"], mean["ap"]))
    return sorted(out, key=lambda cell: (cell.corpus, cell.kind, cell.pollution, cell.known))
