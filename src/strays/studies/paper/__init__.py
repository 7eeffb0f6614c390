"""The paper, run again: its tables, figures and case studies write rows, and a page is made of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strays.errors import UsageError

if TYPE_CHECKING:
    from strays.studies.paper.study import Study


def studies() -> dict[str, Study]:
    """All studies by name, in the paper's order."""
    from strays.studies.paper.cases import CASES
    from strays.studies.paper.comparison import Comparison
    from strays.studies.paper.tuning import Tuning
    from strays.studies.paper.unseen import Unseen

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
    ]
    return {study.name: study for study in every}


def study_named(name: str) -> Study:
    """One of the studies."""
    every = studies()
    if name not in every:
        raise UsageError(f"no study is called {name!r}; expected one of {', '.join(every)}")
    return every[name]
