"""The appendix's parameter tuning: every setting of its grids, trained without pollution, measured on the dev set.

The paper does not say how often a setting was trained. One training alone says little of an unstable method: the best
of several hundred would be the luckiest. So every setting is trained once, and the best of each grid some times more;
the winner has the highest mean.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from strays.detectors import AISVDD, DeepSVDD
from strays.studies.paper.methods import fit_and_score
from strays.studies.paper.study import (
    SEEDS_APART,
    TRAININGS,
    Cell,
    Compute,
    Setting,
    Study,
    check_same_texts,
    joined,
    measure,
    missing_cells,
    without_curve,
)
from strays.studies.protocol import pollute
from strays.studies.rows import Row

# The grids as printed. Learning rate 0.001 and 3 epochs are fixed.
GRIDS: dict[str, dict[str, tuple[float | None, ...]]] = {
    "deep-svdd": {
        "hidden_size": (128, 256, 512, 1024),
        "latent_size": (32, 64, 128, 256),
        "batch_size": (32, 64, 128, 256),
        "weight_decay": (0.0, 1e-4, 1e-2, 1.0, 10.0),
    },
    "ai-svdd-paper": {
        "hidden_size": (128, 256, 512, 1024, 2048, 4096),
        "latent_size": (16, 32, 64, 128, 256, 512),
        "batch_size": (16, 32, 64, 128, 256, 512),
        "weight_decay": (None,),
    },
}
PRESETS = {"deep-svdd": DeepSVDD.from_paper, "ai-svdd-paper": AISVDD.from_paper}
# Settings of a grid that are trained again, until there are TRAININGS of each.
FINALISTS = 10
PARAMETERS = ("hidden_size", "latent_size", "batch_size", "weight_decay")


class Tuning(Study):
    """Both grids on one corpus.

    >>> Tuning("5.1").name
    'tuning-5.1'
    """

    def __init__(self, corpus: str) -> None:
        super().__init__(
            f"tuning-{corpus}",
            f"appendix: the grids of OC-SVDD and AI-SVDD, searched on the dev set of {corpus}",
            corpora=(corpus,),
        )
        self.corpus = corpus

    def cells(self, setting: Setting) -> list[Cell]:
        """Every setting of both grids once; once these are there, the best of each grid again."""
        same = {"study": self.name, "encoder": setting.encoder_name}
        first = [
            same | {"method": method} | dict(zip(PARAMETERS, values, strict=True)) | {"training": 0}
            for method, grid in GRIDS.items()
            for values in product(*(grid[name] for name in PARAMETERS))
        ]
        rows = self.own_rows(setting)
        if sum(row["training"] == 0 for row in rows) < len(first):
            return first
        again = [
            same | {name: finalist[name] for name in ("method", *PARAMETERS)} | {"training": training}
            for method in GRIDS
            for finalist in finalists(rows, method)
            for training in range(1, TRAININGS)
        ]
        return first + again

    def own_rows(self, setting: Setting) -> list[Row]:
        """The rows of this encoder; those of version 0.1, which do not count their trainings, are left out."""
        rows = self.file(setting).read()
        return [row for row in rows if row["encoder"] == setting.encoder_name and "training" in row]

    def prepare(self, setting: Setting) -> Callable[[], Compute]:
        """The work all settings share is encoding the training normals and the dev set."""
        corpus = setting.corpus(self.corpus)
        scenario = pollute(corpus, 0.0, 0)
        digest = scenario.digest(corpus)
        check_same_texts(self.file(setting), ("study",), {(self.name,): digest})
        train, dev = scenario.train, scenario.dev

        def start() -> Compute:
            X = setting.embeddings(corpus, {int(i) for i in (*train.rows, *dev.rows)})

            def compute(cell: Cell) -> Row:
                given = {name: cell[name] for name in PARAMETERS if cell[name] is not None}
                detector = PRESETS[cell["method"]](self.corpus, SEEDS_APART * cell["training"]).set_params(**given)
                [scores] = fit_and_score(detector, X[train.rows], None, X[dev.rows])
                return {"scenario": digest, **without_curve(measure(dev.y, scores))}

            return compute

        return start


def finalists(rows: list[Row], method: str) -> list[Row]:
    """The settings of a method that are trained again."""
    return ranked_once(rows, method)[:FINALISTS]


def ranked_once(rows: list[Row], method: str) -> list[Row]:
    """The settings of a method after one training, best by AUC on the dev set first, of equal ones the smaller."""
    return sorted((row for row in rows if row["method"] == method and row.get("training") == 0), key=_place)


def ranked(rows: list[Row], method: str) -> list[Row]:
    """The settings of a method, best first, each with the mean of its trainings; those trained once come last."""
    trainings: dict[tuple[float | None, ...], list[Row]] = {}
    for row in rows:
        if row["method"] == method and "training" in row:
            trainings.setdefault(tuple(row[name] for name in PARAMETERS), []).append(row)
    means = [found[0] | joined(found) for found in trainings.values()]
    return sorted(means, key=lambda row: (-row.get("trainings", 1), *_place(row)))


def _place(row: Row) -> tuple[float, ...]:
    return -row["auc"], *(row[name] or 0 for name in PARAMETERS)


def is_printed(row: Row, corpus: str) -> bool:
    """Whether a setting is the one the paper chose for a corpus."""
    preset = PRESETS[row["method"]](corpus, 0).get_params()
    return all(row[name] is None or row[name] == preset[name] for name in PARAMETERS)


def tuned_settings(setting: Setting, corpus: str) -> dict[str, dict[str, float]]:
    """The settings of the winner of each grid, once both were searched with this encoder."""
    study = Tuning(corpus)
    if missing_cells(study, setting):
        return {}
    best = {method: ranked(study.own_rows(setting), method)[0] for method in GRIDS}
    return {method: {name: row[name] for name in PARAMETERS if row[name] is not None} for method, row in best.items()}
