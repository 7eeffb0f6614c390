"""The page about the paper, made from rows alone: the same rows give the same page, byte for byte.

What a person wrote is in page.md beside this file, in sections; what the rows say is put in its places.
"""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import Any

from strays.errors import UsageError
from strays.studies.paper import duels, findings, tables
from strays.studies.paper.figures import figures_of, save, style
from strays.studies.paper.summary import RowsByStudy, interval
from strays.studies.rows import Row


def check_page(path: str) -> None:
    """Raise where the page or its figures could not be written, before any work is done."""
    if Path(path).suffix != ".md":
        raise UsageError(f"{{page}} is {path}; expected a file name that ends in .md", param="page")
    with style():
        pass


def write_page(every: RowsByStudy, path: str) -> None:
    """Write the page, and its figures into a folder of its name beside it.

    What there is to say of these rows alone (how they were made, of what) is taken from a file beside the page,
    NAME.notes.md, where there is one.
    """
    page = Path(path)
    notes = page.with_suffix(".notes.md")
    folder = page.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for study, rows in every.items():
        for name, draw in figures_of(study, rows).items():
            save(draw, folder / f"{name}.svg")
    own = notes.read_text(encoding="utf-8") if notes.exists() else ""
    page.write_text(render(every, folder.name, own), encoding="utf-8")


def render(every: RowsByStudy, folder: str, notes: str = "") -> str:
    """The page's Markdown; figures are linked from the folder, and notes on the rows follow the findings."""
    section = _sections()
    compared = {study: rows for study, rows in every.items() if study.startswith("5.")}
    unseen = [study for study in every if study.startswith("unseen-")]
    against = {study.removeprefix("unseen-"): every[study] for study in unseen}
    tuned = [study for study in every if study.startswith("tuning-")]

    def fill(name: str, study: str = "", **words: Any) -> str:
        if study:
            rows = every[study]
            words |= {"study": study, "figures": _figures(study, rows, folder), "tables": _tables(study, rows)}
        return section[name].substitute(words)

    parts = [fill("intro")]
    if lines := findings.sentences(compared, against):
        parts.append(fill("findings", findings="\n".join(f"- {line}" for line in lines)))
    if notes:
        parts.append(notes)
    parts += [fill("comparison", study) for study in compared]
    if compared:
        verdicts = [findings.claims(compared).to_markdown(), findings.statements(compared).to_markdown()]
        parts.append(fill("claims", tables="\n".join(verdicts)))
    cases = [study for study in every if study.startswith("case-")]
    if cases:
        parts.append(fill("cases"))
    parts += [fill(study, study, **_case_figures(study, every[study])) for study in cases]
    if against:
        lists = [duels.duel_table(against, method).to_markdown() for method in ("ai-svdd", "ai-svdd-paper")]
        details = [_figures(study, every[study], folder) + _tables(study, every[study]) for study in unseen]
        parts.append(fill("unseen", tables="\n".join(lists), details="\n".join(details)))
    if tuned:
        parts.append(fill("tuning", tables="\n".join(_tables(study, every[study]) for study in tuned)))
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _sections() -> dict[str, Template]:
    """The parts of page.md, each opened by a comment with its name."""
    text = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    parts = re.split(r"<!-- ([\w-]+) -->\n", text)
    return {name: Template(body) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def _tables(study: str, rows: list[Row]) -> str:
    return "\n".join(table.to_markdown() for table in tables.tables_of(study, rows))


def _figures(study: str, rows: list[Row], folder: str) -> str:
    return "".join(f"![{name.replace('-', ' ')}]({folder}/{name}.svg)\n\n" for name in figures_of(study, rows))


def _case_figures(study: str, rows: list[Row]) -> dict[str, str]:
    """The figures that the words about a case study mention."""
    if study == "case-2":
        change, half_width = interval([row["ai-svdd"]["ratio"] - row["eq4"]["ratio"] for row in rows])
        return {
            "mean_size": f"{sum(row['eq1_at_mean']['size'] for row in rows) / len(rows):.2f}",
            "difference": f"{change:+.2f} ± {half_width:.2f}",
            "known": f"{sum(row['ai-svdd_on_known']['ratio'] for row in rows) / len(rows):.2f}",
        }
    if study == "case-3":
        closer = [row["taught"] < min(row["blind"], row["blind_without_anomalies"]) for row in rows]
        return {"closer": f"{sum(closer) / len(closer):.0%}"}
    return {}
