"""From a file to a page: fit on it or score it by a model, gather the facts, write them as one file of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from strays.errors import DataError, UsageError
from strays.jobs.corpus import read_corpus
from strays.jobs.report.facts import facts
from strays.jobs.report.page import render, require_jinja
from strays.jobs.scan import Scan
from strays.jobs.score import OpenProgress, flag_rows
from strays.model import TextOutlierDetector
from strays.tables import Table, complete_file

# The oddest texts shown where nobody says how many, and the texts of each kind a model keeps to compare them with.
SHOWN_TEXTS, KEPT_EXAMPLES = 50, 2000
# More are no page any more.
MOST_SHOWN = 1000


def check_page(out: str, source: str, *, besides: str | None = None) -> None:
    """Raise, before any work is done, if the page could not be written where it is wanted, beside other output."""
    require_jinja()
    target = Path(out)
    if besides is not None and (out == besides or target.absolute() == Path(besides).absolute()):
        raise UsageError(f"{out}: the rows are written there too; name another file for the page")
    if out == "-":
        return
    if target.is_dir():
        raise DataError(f"{out}: is a folder; expected the name of a file for the page")
    if not target.absolute().parent.is_dir():
        raise DataError(f"{out}: there is no folder {target.parent}; make it first")
    if target.exists() and Path(source).exists() and target.samefile(source):
        raise UsageError(f"{out}: is the input itself; write to another file")


def judge_table(
    model: TextOutlierDetector,
    table: Table,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    strict: bool = False,
    progress: OpenProgress,
) -> Scan:
    """The rows of a table scored by a model from elsewhere; labels are kept to judge it by."""
    if label_column is not None:
        table.require_column(label_column, param="label_column")
    column = table.text_column(text_column, besides=(label_column,))
    corpus = read_corpus(table, column, label_column=label_column, strict=strict)
    scores = np.full(corpus.n_rows, np.nan)
    with progress("scoring") as show:
        scores[corpus.rows] = model.anomaly_score(corpus.texts, progress=show)
    return Scan(table.name, model, corpus, flag_rows(model, scores))


def write_report(found: Scan, out: str, *, progress: OpenProgress, **options: Any) -> dict[str, Any]:
    """Write the page of a scan; takes the options of `facts` and returns the facts."""
    gathered = facts(found, progress=progress, **options)
    with progress("writing"):
        page = render(gathered).encode("utf-8")
        with complete_file(out) as file:
            file.write(page)
    return gathered


def without_map(gathered: dict[str, Any]) -> dict[str, Any]:
    """The facts for a reader of JSON: all but the map's long lists."""
    return {key: value for key, value in gathered.items() if key != "map"}
