"""The corpora of the paper's experiments, read from a folder of parquet files that have text, label and split columns.

Such a file mixes nothing: every row keeps its original class, and the pollution protocol draws anomalies from the
classes that are not the normal one. The folder is given, or named by the environment variable STRAYS_DATA.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from strays.errors import DataError, UsageError
from strays.tables import open_table

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class CorpusSpec:
    """Which file a corpus is in, which class is normal, and which classes are anomalies.

    `spare` classes are drawn from only where the anomalies of a split run out.
    """

    file: str
    normal: str
    anomalies: tuple[str, ...]
    spare: tuple[str, ...] = ()


CORPORA = {
    "5.1": CorpusSpec("imdb_wiki_short.parquet", "imdb", ("wiki",), ("wiki_51_60",)),
    "5.2-ag": CorpusSpec("ag_news_titles.parquet", "sports", ("business", "scitech", "world")),
    "5.2-yelp": CorpusSpec("yelp_short.parquet", "star5", ("star1", "star2", "star3", "star4")),
    "5.2-rct": CorpusSpec(
        "rct_pmc_sentences.parquet", "conclusions", ("background", "methods", "objective", "results")
    ),
    "5.3": CorpusSpec(
        "zh_medical_titles.parquet",
        "question",
        (
            "essay_title",
            "essay_title_nonmed",
            "incomplete_question_synth",
            "news_title",
            "nonmedical_question",
            "product_name",
            "trial_criterion",
        ),
    ),
}


@dataclass(frozen=True, eq=False)
class LabelledCorpus:
    """The rows of one corpus, as arrays of one length; equal only to itself."""

    name: str
    spec: CorpusSpec
    texts: list[str]
    label: np.ndarray
    split: np.ndarray


def data_folder(given: str | None = None) -> Path:
    """The folder with the corpora: the one given, or STRAYS_DATA's."""
    name = given or os.environ.get("STRAYS_DATA")
    if not name:
        raise UsageError("which folder holds the corpora? Name it with --data or the environment variable STRAYS_DATA")
    if not Path(name).is_dir():
        raise UsageError(f"{name}: no such folder; expected the folder with the corpora's parquet files")
    return Path(name)


def load_corpus(name: str, folder: str | Path) -> LabelledCorpus:
    """One of CORPORA, checked to have the columns, splits and classes it should."""
    if name not in CORPORA:
        raise UsageError(f"no corpus is called {name!r}; expected one of {', '.join(CORPORA)}")
    spec = CORPORA[name]
    path = Path(folder) / spec.file
    if not path.exists():
        raise DataError(
            f"{path}: no such file, which holds the corpus of {name}; put it there, or have it made from public "
            "originals with strays study --download"
        )
    table = open_table(str(path))
    for column in ("text", "label", "split"):
        table.require_column(column, "corpus column")
    rows = table.read()
    columns = {name: rows.column(name).to_pylist() for name in ("text", "label", "split")}
    for column, cells in columns.items():
        row = next((i for i, cell in enumerate(cells) if not isinstance(cell, str)), None)
        if row is not None:
            raise DataError(f"{table.name}: row {row + 1} has {cells[row]!r} as its {column}; expected a string")
    label, split = (np.array(columns[column]) for column in ("label", "split"))
    missing = [wanted for wanted in (spec.normal, *spec.anomalies) if wanted not in label]
    if missing:
        raise DataError(
            f"{table.name}: no row is labelled {', '.join(map(repr, missing))}; its labels are "
            f"{', '.join(np.unique(label))}. Expected {spec.normal} (normal) and {', '.join(spec.anomalies)}"
        )
    for wanted in SPLITS:
        if wanted not in split:
            raise DataError(
                f"{table.name}: no row is in split {wanted!r}; its splits are {', '.join(np.unique(split))}"
            )
    return LabelledCorpus(name, spec, columns["text"], label, split)
