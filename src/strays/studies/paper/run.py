"""The job behind `strays study`: check everything, run what is missing, make tables and the page from the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from strays.encoders import LoadedEncoder
from strays.errors import UsageError
from strays.studies.originals import make_where_missing
from strays.studies.paper.comparison import Comparison
from strays.studies.paper.page import check_page, write_page
from strays.studies.paper.registry import read_all, studies, study_named
from strays.studies.paper.study import TRAININGS, Progress, Setting, no_progress, prepare_study, run_study
from strays.studies.paper.summary import ResultTable
from strays.studies.paper.tables import tables_of
from strays.studies.paper.tuning import Tuning, tuned_settings
from strays.studies.protocol import RUNS


def run_studies(
    names: Sequence[str],
    *,
    out: str,
    data: str | None = None,
    encoder: LoadedEncoder | None = None,
    runs: int = RUNS,
    trainings: int = TRAININGS,
    download: bool = False,
    page: str | None = None,
    progress: Progress = no_progress,
    say: Callable[[str], None] = lambda note: None,
) -> dict[str, list[ResultTable]]:
    """Run the studies named ('all' for every one), write the page if asked; returns the tables of those studies.

    Tuning comes first: what it finds is used by the others. `say` is told what they go without.
    """
    if not names and not page:
        expected = f"all, or some of {', '.join(studies())}; or {{page}} to make the page"
        raise UsageError(f"which study? Expected {expected}", param="page")
    named = {name: study_named(name) for name in names if name != "all"}
    wanted = list((studies() if "all" in names else named).values())
    if page:
        check_page(page)
        if not wanted and not read_all(out):
            raise UsageError(
                f"{out} holds no rows to make a page of; name a study to run, or the folder of rows with {{out}}",
                param="out",
            )
    setting = Setting(Path(out), data, encoder, runs, trainings, progress)
    corpora = list(dict.fromkeys(corpus for study in wanted for corpus in study.corpora))
    if download:
        with progress("making corpora from their originals"):
            make_where_missing(corpora, data)
    for corpus in corpora:
        setting.corpus(corpus)
    # All studies draw before the first one works: a mistake in the last must not show after hours.
    prepared = [(study, prepare_study(study, setting)) for study in wanted]
    for study, start in sorted(prepared, key=lambda pair: not isinstance(pair[0], Tuning)):
        if isinstance(study, Comparison) and not tuned_settings(setting, study.name):
            say(
                f"{study.name}: tuned networks are left out, since {out} has no whole tuning of this encoder; "
                f"run tuning-{study.name} to have them"
            )
        run_study(study, setting, start)
    every = read_all(out)
    if page:
        write_page(every, page)
    return {study.name: tables_of(study.name, every) for study in wanted}
