"""What a study is, and how one runs: cells to compute, each once, whatever interrupts.

A study lists its cells (which method, which pollution, which seed, ...). Running it computes the cells that have no row
yet and appends one row for each, so that an interrupted study resumes; tables and figures are made from the rows alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from strays.encoders import LoadedEncoder
from strays.errors import DataError, UsageError
from strays.jobs.metrics import evaluate, roc_points
from strays.studies.corpora import LabelledCorpus, data_folder, load_corpus
from strays.studies.embeddings import embed
from strays.studies.protocol import RUNS
from strays.studies.rows import Row, RowFile

Cell = dict[str, Any]
Compute = Callable[[Cell], Row]
Progress = Callable[[str], AbstractContextManager[Callable[[int, int | None], None]]]
# From the seed of one training of a run to the next.
SEEDS_APART = 1000
# How often a method that has a seed is trained in every run: one training alone says little of an unstable method.
TRAININGS = 5
# The true positive rates at which rows keep the ROC curve.
ROC_GRID = np.linspace(0, 1, 51)
METRICS = ("map", "recall_at_5", "auc", "fpr_at_80_tpr")
# What a row says of overfitting: the normals' median squared distance to the centre, in the test set over training.
TEST_TO_TRAIN = "test_to_train"


def no_progress(what: str) -> AbstractContextManager[Callable[[int, int | None], None]]:
    """A progress bar that shows nothing."""
    return nullcontext(lambda done, total=None: None)


@dataclass(frozen=True)
class Setting:
    """What a study runs with: the folder of rows, the folder of corpora, the encoder, and how many runs.

    A run draws its own anomalies; `trainings` is how often it trains a method that has a seed.

    >>> Setting(Path("rows"), data="corpora").runs
    5
    """

    out: Path
    data: str | None = None
    encoder: LoadedEncoder | None = None
    runs: int = RUNS
    trainings: int = TRAININGS
    progress: Progress = no_progress

    @property
    def encoder_name(self) -> str:
        """The encoder as rows and tables call it: its name, of a folder the last part, and what was set by hand."""
        settings = self._encoder.settings.to_dict()
        name = settings.pop("name")
        if settings["precision"] == "full":  # as studies are run
            del settings["precision"]
        given = [f"{key}={value}" for key, value in settings.items() if value is not None]
        return " ".join([Path(name).name if Path(name).is_dir() else name, *given])

    @property
    def fingerprint(self) -> str:
        """What rows keep of the encoder's weights and settings."""
        return self._encoder.fingerprint[:12]

    def is_same_encoder(self, fingerprint: str) -> bool:
        """Whether a row's fingerprint is this encoder's, as it is now or as version 0.1 had it."""
        return fingerprint in (self.fingerprint, self._encoder.fingerprint_0_1[:12])

    @property
    def _encoder(self) -> LoadedEncoder:
        if self.encoder is None:
            raise UsageError("this study reads texts and needs an encoder")
        return self.encoder

    def corpus(self, name: str) -> LabelledCorpus:
        """One of the paper's corpora from the data folder, checked."""
        return load_corpus(name, data_folder(self.data))

    def embeddings(self, corpus: LabelledCorpus, rows: set[int]) -> np.ndarray:
        """The corpus's embeddings, from the cache where they are there."""
        with self.progress(f"encoding {corpus.name}") as progress:
            return embed(corpus, rows, self._encoder, progress=progress)


class Study(ABC):
    """One table, figure or case of the paper: a name, a title and cells.

    >>> class Squares(Study):
    ...     def cells(self, setting):
    ...         return [{"n": n} for n in range(3)]
    ...
    ...     def prepare(self, setting):
    ...         return lambda: lambda cell: {"square": cell["n"] ** 2}
    >>> run_study(Squares("squares", "a table of squares"), Setting(Path("rows")))
    [{'n': 0, 'square': 0}, {'n': 1, 'square': 1}, {'n': 2, 'square': 4}]
    """

    def __init__(self, name: str, title: str, corpora: tuple[str, ...] = ()) -> None:
        self.name = name
        self.title = title
        self.corpora = corpora

    @abstractmethod
    def cells(self, setting: Setting) -> list[Cell]:
        """What to compute: the fields that tell one row from another."""

    @abstractmethod
    def prepare(self, setting: Setting) -> Callable[[], Compute]:
        """Draw and check all that can be, and do no work yet.

        Returns the function that does the work all cells share, such as encoding, and hands out the one that computes
        what a cell's row holds besides the cell.
        """

    def file(self, setting: Setting) -> RowFile:
        """Where the rows are."""
        return RowFile(setting.out / f"{self.name}.jsonl")


def prepare_study(study: Study, setting: Setting) -> Callable[[], Compute]:
    """All that can be checked before the work: the study's own draws, and that older rows are of the same encoder."""
    file = study.file(setting)
    for row in file.read() if study.corpora else ():
        if row["encoder"] == setting.encoder_name and not setting.is_same_encoder(row["fingerprint"]):
            raise DataError(
                f"{file.path} has rows of another encoder that is called {row['encoder']} too (fingerprint "
                f"{row['fingerprint']}, here {setting.fingerprint}). Name another folder with {{out}}",
                param="out",
            )
    return study.prepare(setting)


def run_study(study: Study, setting: Setting, start: Callable[[], Compute] | None = None) -> list[Row]:
    """Compute what is missing, and return all rows of the study; `start` is what was prepared, if it has been."""
    start = start or prepare_study(study, setting)
    file = study.file(setting)
    compute: Compute | None = None
    while missing := missing_cells(study, setting):
        compute = compute or start()
        stamp = {"fingerprint": setting.fingerprint} if study.corpora else {}
        with setting.progress(f"study {study.name}") as progress:
            for i, cell in enumerate(missing, 1):
                file.append(cell | stamp | compute(cell))
                progress(i, len(missing))
    return file.read()


def missing_cells(study: Study, setting: Setting) -> list[Cell]:
    """The cells without a row. Some studies have further cells once the first are there."""
    cells = study.cells(setting)
    done = {_key(cells[0], row) for row in study.file(setting).read()}
    return [cell for cell in cells if _key(cell, cell) not in done]


def check_same_texts(file: RowFile, fields: tuple[str, ...], digests: dict[tuple[Any, ...], str]) -> None:
    """Raise where finished rows were drawn from other texts than the ones at hand."""
    for row in file.read():
        here = digests.get(tuple(row[field] for field in fields))
        if here is not None and row["scenario"] != here:
            raise DataError(
                f"{file.path} has rows drawn from other texts (scenario {row['scenario']}, here {here}): the corpus "
                "has changed. Name another folder with {out}, or delete that file",
                param="out",
            )


def measure(y: np.ndarray, scores: np.ndarray) -> Row:
    """The metrics of a test set, and its ROC curve at fixed true positive rates."""
    result = evaluate(y, scores)
    roc = roc_points(y, scores)
    # At a rate the curve reaches by a vertical rise, the lowest false positive rate counts.
    rising = np.maximum.accumulate(roc.tpr + 1e-12 * np.arange(len(roc.tpr)))
    fpr = np.interp(ROC_GRID, rising, roc.fpr)
    return {
        # A network that collapsed scores all rows alike.
        **({"collapsed": 1} if np.ptp(scores) == 0 else {}),
        "n": result.n,
        "n_anomalies": result.n_anomalies,
        "map": round(result.map, 6),
        "recall_at_5": round(result.recall_at_5, 6),
        "auc": round(result.auc, 6),
        "fpr_at_80_tpr": round(result.fpr_at_80_tpr, 6),
        "roc_fpr": [round(float(value), 4) for value in fpr],
    }


def joined(measured: list[Row]) -> Row:
    """One row of several trainings: their mean, and in `spread` their deviations; of one training just its figures."""
    if len(measured) == 1:
        return measured[0]
    first = measured[0]
    row: Row = {"trainings": len(measured), "n": first["n"], "n_anomalies": first["n_anomalies"]}
    if n_collapsed := sum(one.get("collapsed", False) for one in measured):
        row["collapsed"] = n_collapsed
    for name in METRICS:
        row[name] = round(fmean(one[name] for one in measured), 6)
    row["spread"] = {name: round(pstdev(one[name] for one in measured), 6) for name in METRICS}
    if of_those := [one[TEST_TO_TRAIN] for one in measured if TEST_TO_TRAIN in one]:
        row[TEST_TO_TRAIN] = round(fmean(of_those), 4)
    if "roc_fpr" in first:
        curve = np.mean([one["roc_fpr"] for one in measured], axis=0)
        row["roc_fpr"] = [round(float(value), 4) for value in curve]
    return row


def without_curve(measured: Row) -> Row:
    """The metrics alone, where no ROC curve is drawn."""
    return {name: value for name, value in measured.items() if name != "roc_fpr"}


def _key(cell: Cell, row: Row) -> tuple[Any, ...]:
    return tuple(row.get(field) for field in cell)
