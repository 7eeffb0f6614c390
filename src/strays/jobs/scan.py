"""The main job: fit on a file, and rank the same file's rows by oddness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from strays.encoders import LoadedEncoder
from strays.jobs.alike import group_alike, rows_alike
from strays.jobs.columns import NormalValues
from strays.jobs.corpus import Corpus, read_corpus
from strays.jobs.score import OpenProgress, bars_in_turn, flag_rows, no_bar
from strays.model import RawScores, Scores, TextOutlierDetector
from strays.model.calibration import threshold
from strays.model.cascade_scorer import warn_of_share
from strays.model.contamination import Contamination
from strays.model.labels import parse_labels
from strays.tables import Table


@dataclass(frozen=True)
class Scan:
    """A scanned file: its model, its corpus, and one score for each row (NaN where a row has no text).

    `fitted_here` tells whether the model was fitted on the file itself and its labels, or comes from elsewhere.

    >>> import pyarrow as pa
    >>> class Letters:
    ...     def encode(self, texts):
    ...         return [[text.count(letter) for letter in "aeinorst"] for text in texts]
    >>> texts = [f"{animal} number {n}" for animal in ("cat", "dog", "hen") for n in range(20)]
    >>> scan = scan_table(Table.of(pa.table({"text": [*texts, "zzz"]})), Letters(), "lof")
    >>> [row["text"] for row in scan.to_dict(top=1)["oddest"]]
    ['zzz']
    """

    file: str
    model: TextOutlierDetector
    corpus: Corpus
    scores: Scores
    fitted_here: bool = True

    @property
    def contamination(self) -> Contamination | None:
        """The share of rows that are odd beyond chance; None where a file compared with itself cannot tell."""
        p_value = self.scores.p_value
        return None if self.fitted_here else self.model.calibration_.contamination(p_value[~np.isnan(p_value)])

    def oddest(self, top: int, *, known: bool = True) -> list[list[int]]:
        """The `top` oddest texts, each in a group with the rows like it, by their places in the corpus.

        With or without those labelled anomaly.
        """
        n = len(self.corpus.rows)
        score, y = self.scores.anomaly_score[self.corpus.rows], parse_labels(self.corpus.labels[:n], n)
        order = np.argsort(-score, kind="stable")
        order = order[known | (y[order] >= 0)]
        groups = group_alike(order, score, self.corpus.texts, y, copies_tie=self.model.detector_.copies_tie)
        return list(islice(groups, top))

    def to_dict(self, top: int) -> dict[str, Any]:
        """What was found, with the `top` oddest texts, as plain data; rows that are alike count as one text."""
        return {
            "file": self.file,
            "n_rows": self.corpus.n_rows,
            "n_without_text": self.corpus.n_without_text,
            "id_column": self.corpus.id_column,
            "n_flagged": int(self.scores.flagged.sum()),
            "flagged_are": str(self.model.threshold_),
            "beyond_chance": asdict(found) if (found := self.contamination) else None,
            "detector": self.model.info()["detector"]["name"],
            "fitted_on": asdict(self.model.summary_),
            "oddest": [self._ranked(group) for group in self.oddest(top)],
        }

    def _ranked(self, group: list[int]) -> dict[str, Any]:
        first, *alike = group
        row, ids = self.corpus.rows[first], self.corpus.ids
        return {
            "row": row + 1,
            "id": ids and ids[first],
            "anomaly_score": float(self.scores.anomaly_score[row]),
            "p_value": float(self.scores.p_value[row]),
            "flagged": bool(self.scores.flagged[row]),
            "label": self.corpus.labels[first] or None,
            "text": self.corpus.texts[first],
            **rows_alike([self.corpus.rows[i] for i in alike]),
        }


def scan_table(table: Table, encoder: LoadedEncoder, detector: str, **options: Any) -> Scan:
    """Fit on a table and score its own rows; takes the options of fit_table."""
    model, corpus = fit_table(table, encoder, detector, **options)
    model.warn_if_too_few()
    return Scan(table.name, model, corpus, _by_row(model, corpus, model.training_scores_[: len(corpus.rows)]))


def scan_with(
    model: TextOutlierDetector,
    table: Table,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    normal: NormalValues | None = None,
    id_column: str | None = None,
    strict: bool = False,
    progress: OpenProgress = no_bar,
) -> Scan:
    """Score the rows of a table with a model that was fitted elsewhere; labels are kept to measure it by."""
    corpus = read_corpus(
        table, text_column, label_column=label_column, normal=normal, id_column=id_column, strict=strict
    )
    with progress("scoring") as show:
        scores = model.anomaly_score(corpus.texts, progress=show)
    return Scan(table.name, model, corpus, _by_row(model, corpus, scores), fitted_here=False)


def _by_row(model: TextOutlierDetector, corpus: Corpus, scores: np.ndarray) -> Scores:
    by_row = np.full(corpus.n_rows, np.nan)
    by_row[corpus.rows] = scores
    return flag_rows(model, RawScores(by_row))


def fit_table(
    table: Table,
    encoder: LoadedEncoder,
    detector: str,
    *,
    form: bool = True,
    tune: bool = False,
    text_column: str | None = None,
    label_column: str | None = None,
    normal: NormalValues | None = None,
    id_column: str | None = None,
    known: Sequence[str] = (),
    seed: int = 0,
    keep_examples: int = 0,
    cascade: bool = False,
    strict: bool = False,
    progress: OpenProgress = no_bar,
    **rule: Any,
) -> tuple[TextOutlierDetector, Corpus]:
    """A model fitted on all rows of a table that have a text, and the corpus they make.

    A rule for flagging, as `set_threshold` takes it, may be given.
    """
    chosen = threshold(**rule) if rule else None  # what cannot be is refused now rather than after the work
    columns: dict[str, Any] = {"label_column": label_column, "normal": normal, "id_column": id_column}
    corpus = read_corpus(table, text_column, **columns, known=known, strict=strict)
    options: dict[str, Any] = {"keep_examples": keep_examples, "cascade": cascade, "form": form, "tune": tune}
    model = TextOutlierDetector(encoder, detector, random_state=seed, **options)
    with bars_in_turn(progress) as bar:
        (encoding := bar("encoding"))(0, None)
        bars: dict[str, Any] = {"progress": encoding, "fit_progress": bar("fitting"), "tune_progress": bar("tuning")}
        model.fit(corpus.texts, corpus.labels, threshold=chosen, **bars)
    if rule:
        model.set_threshold(**rule)  # which warns of a rule that can flag nothing
    if promise := model.info()["cascade"]:
        warn_of_share(promise["expected_share"])
    return model, corpus
