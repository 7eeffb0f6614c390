"""The corpora of the paper's experiments and further ones, read from a folder of parquet files with columns text, label
and split.

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
    """Which file a corpus is in, which class is normal, and which classes are anomalies (none named: all others).

    `spare` classes are drawn from only where the anomalies of a split run out. `groups` makes one class of all labels
    that hold a piece of text: the first pair (piece, class) that fits counts.

    >>> CORPORA["5.1"]
    CorpusSpec(file='imdb_wiki_short.parquet', normal='imdb', anomalies=('wiki',), spare=('wiki_51_60',), groups=())
    """

    file: str
    normal: str
    anomalies: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    groups: tuple[tuple[str, str], ...] = ()


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
# Not in the paper: what else the detectors are compared on.
FURTHER_CORPORA = {
    "banking": CorpusSpec("banking77.parquet", "card", groups=(("card", "card"),)),
    "bbc": CorpusSpec("bbc_news.parquet", "business"),
    "csabstruct": CorpusSpec("csabstruct.parquet", "result"),
    "email": CorpusSpec("email_spamassassin.parquet", "ham"),
    "newsgroups": CorpusSpec(
        "newsgroups20.parquet",
        "rec",
        groups=(
            *((f"{name}.", name) for name in ("comp", "rec", "sci", "misc")),
            ("politics", "politics"),
            ("religion", "religion"),
            ("atheism", "religion"),
        ),
    ),
    "polarity": CorpusSpec("rt_polarity.parquet", "pos"),
}


@dataclass(frozen=True, eq=False)
class LabelledCorpus:
    """The rows of one corpus, as arrays of one length; equal only to itself.

    >>> spec = CorpusSpec("pets.parquet", normal="cat")
    >>> corpus = LabelledCorpus("pets", spec, ["a", "b"], np.array(["cat", "dog"]), np.array(["train", "train"]))
    >>> corpus.kinds
    ['dog']
    """

    name: str
    spec: CorpusSpec
    texts: list[str]
    label: np.ndarray
    split: np.ndarray

    @property
    def kinds(self) -> list[str]:
        """The classes of anomalies."""
        if self.spec.anomalies:
            return list(self.spec.anomalies)
        return sorted(set(self.label.tolist()) - {self.spec.normal, *self.spec.spare})


def data_folder(given: str | None = None) -> Path:
    """The folder with the corpora: the one given, or STRAYS_DATA's."""
    name = given or os.environ.get("STRAYS_DATA")
    if not name:
        raise UsageError(
            "which folder holds the corpora? Name it with {data} or the environment variable STRAYS_DATA", param="data"
        )
    if not Path(name).is_dir():
        raise UsageError(f"{name}: no such folder; expected the folder with the corpora's parquet files")
    return Path(name)


def load_corpus(name: str, folder: str | Path) -> LabelledCorpus:
    """One of CORPORA or FURTHER_CORPORA, checked to have the columns, splits and classes it should."""
    known = CORPORA | FURTHER_CORPORA
    if name not in known:
        raise UsageError(f"no corpus is called {name!r}; expected one of {', '.join(known)}")
    spec = known[name]
    path = Path(folder) / spec.file
    if not path.exists():
        raise DataError(
            f"{path}: no such file, which holds the corpus of {name}; put it there, or have it made from public "
            "originals with {download}",
            param="download",
        )
    table = open_table(str(path))
    for column in ("text", "label", "split"):
        table.require_column(column)
    rows = table.read()
    columns = {name: rows.column(name).to_pylist() for name in ("text", "label", "split")}
    for column, cells in columns.items():
        row = next((i for i, cell in enumerate(cells) if not isinstance(cell, str)), None)
        if row is not None:
            raise DataError(f"{table.name}: row {row + 1} has {cells[row]!r} as its {column}; expected a string")
    classes = [next((to for piece, to in spec.groups if piece in cell), cell) for cell in columns["label"]]
    label, split = np.array(classes), np.array(columns["split"])
    missing = [wanted for wanted in (spec.normal, *spec.anomalies) if wanted not in label]
    if missing:
        raise DataError(
            f"{table.name}: no row is labelled {', '.join(map(repr, missing))}; its labels are "
            f"{', '.join(np.unique(label))}. Expected {spec.normal} (normal) and "
            f"{', '.join(spec.anomalies) or 'others'}"
        )
    for wanted in SPLITS:
        if wanted not in split:
            raise DataError(
                f"{table.name}: no row is in split {wanted!r}; its splits are {', '.join(np.unique(split))}"
            )
    return LabelledCorpus(name, spec, columns["text"], label, split)
