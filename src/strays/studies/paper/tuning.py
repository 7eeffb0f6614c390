"""The appendix's parameter tuning: every setting of its grids, trained without pollution, measured on the dev set."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from strays.detectors import AISVDD, DeepSVDD
from strays.studies.paper.methods import fit_and_score
from strays.studies.paper.study import Cell, Compute, Setting, Study, check_same_texts, measure, without_curve
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
        """Every setting of both grids."""
        return [
            {"study": self.name, "encoder": setting.encoder_name, "method": method}
            | dict(zip(PARAMETERS, values, strict=True))
            for method, grid in GRIDS.items()
            for values in product(*(grid[name] for name in PARAMETERS))
        ]

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
                detector = PRESETS[cell["method"]](self.corpus, 0).set_params(**given)
                [scores] = fit_and_score(detector, X[train.rows], None, X[dev.rows])
                return {"scenario": digest, **without_curve(measure(dev.y, scores))}

            return compute

        return start


def ranked(rows: list[Row], method: str) -> list[Row]:
    """The settings of a method, the highest AUC on the dev set first, of equal ones the smaller setting."""
    own = (row for row in rows if row["method"] == method)
    return sorted(own, key=lambda row: (-row["auc"], *(row[name] or 0 for name in PARAMETERS)))


def is_printed(row: Row, corpus: str) -> bool:
    """Whether a setting is the one the paper chose for a corpus."""
    preset = PRESETS[row["method"]](corpus, 0).get_params()
    return all(row[name] is None or row[name] == preset[name] for name in PARAMETERS)


def tuned_settings(setting: Setting, corpus: str) -> dict[str, dict[str, float]]:
    """For each grid that was searched whole with this encoder: the settings of its winner."""
    study = Tuning(corpus)
    rows = [row for row in study.file(setting).read() if row["encoder"] == setting.encoder_name]
    found = {}
    for method in GRIDS:
        order = ranked(rows, method)
        if len(order) == sum(cell["method"] == method for cell in study.cells(setting)):
            found[method] = {name: order[0][name] for name in PARAMETERS if order[0][name] is not None}
    return found
