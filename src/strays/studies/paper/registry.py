"""The studies by name."""

from __future__ import annotations

from pathlib import Path

from strays.errors import UsageError
from strays.studies.paper.cases import CASES
from strays.studies.paper.choices import Choices
from strays.studies.paper.comparison import Comparison
from strays.studies.paper.repeat import Repeat
from strays.studies.paper.study import Study
from strays.studies.paper.tuning import Tuning
from strays.studies.paper.unseen import Unseen
from strays.studies.rows import Row, RowFile


def studies() -> dict[str, Study]:
    """All studies by name, in the paper's order."""
    comparisons = (
        Comparison("5.1", "table 1, figure 3: text quality filtering, IMDB against WikiText-2"),
        Comparison("5.2-ag", "table 2: unknown class detection, sports titles of AG news"),
        Comparison("5.2-yelp", "table 2: unknown class detection, five-star reviews of Yelp"),
        Comparison("5.2-rct", "table 2: unknown class detection, conclusions of trial abstracts"),
        Comparison("5.3", "table 3: medical questions in Chinese, five random splits", pollutions=(None,)),
    )
    names = [study.name for study in comparisons]
    every: list[Study] = [
        *comparisons,
        *CASES,
        *(Unseen(name) for name in names if name != "5.3"),
        *(Tuning(name) for name in names),
        *(Choices(name) for name in names if name != "5.3"),
        Repeat("5.1"),
    ]
    return {study.name: study for study in every}


def study_named(name: str) -> Study:
    """One of the studies."""
    every = studies()
    if name not in every:
        raise UsageError(f"no study is called {name!r}; expected one of {', '.join(every)}")
    return every[name]


def titles() -> dict[str, str]:
    """Each study's name and what it is."""
    return {name: study.title for name, study in studies().items()}


def read_all(out: str | Path) -> dict[str, list[Row]]:
    """The rows of every study that has any in the folder `out`."""
    rows = {name: RowFile(Path(out) / f"{name}.jsonl").read() for name in studies()}
    return {name: found for name, found in rows.items() if found}
