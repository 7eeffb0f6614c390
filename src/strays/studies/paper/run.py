"""The job behind `strays study`: check everything first, run what is missing, make tables and the page of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from strays.errors import UsageError
from strays.studies.paper import studies, study_named
from strays.studies.paper.rows import Row, RowFile
from strays.studies.paper.study import Progress, Setting, no_progress, prepare_study, run_study
from strays.studies.paper.tables import Table, tables_of

if TYPE_CHECKING:
    from strays.encoders import LoadedEncoder


def titles() -> dict[str, str]:
    """Each study's name and what it is."""
    return {name: study.title for name, study in studies().items()}


def read_all(out: str | Path) -> dict[str, list[Row]]:
    """The rows of every study that has any."""
    rows = {name: RowFile(Path(out) / f"{name}.jsonl").read() for name in studies()}
    return {name: found for name, found in rows.items() if found}


def run_studies(
    names: Sequence[str],
    *,
    out: str,
    data: str | None = None,
    encoder: LoadedEncoder | None = None,
    runs: int = 5,
    download: bool = False,
    page: str | None = None,
    progress: Progress = no_progress,
) -> dict[str, list[Table]]:
    """Run the studies named ('all' for every one), write the page where asked; returns the tables of those studies."""
    if not names and not page:
        raise UsageError(f"which study? Expected all, or some of {', '.join(studies())}; or --page to draw the page")
    named = {name: study_named(name) for name in names if name != "all"}
    wanted = list((studies() if "all" in names else named).values())
    if page:
        from strays.studies.paper.page import check_page

        check_page(page)
        if not wanted and not read_all(out):
            raise UsageError(f"{out} holds no rows to make a page of; name a study to run, or its folder with --out")
    setting = Setting(Path(out), data, encoder, runs, progress=progress)
    corpora = list(dict.fromkeys(corpus for study in wanted for corpus in study.corpora))
    if download:
        from strays.studies.originals import make_where_missing

        with progress("making corpora from their originals"):
            make_where_missing(corpora, data)
    for corpus in corpora:
        setting.corpus(corpus)
    # All draws of all studies before the first study's work: what is wrong with the last shall not wait for hours.
    prepared = [(study, prepare_study(study, setting)) for study in wanted]
    tables = {study.name: tables_of(study.name, run_study(study, setting, start)) for study, start in prepared}
    if page:
        from strays.studies.paper.page import write_page

        write_page(read_all(out), page)
    return tables
