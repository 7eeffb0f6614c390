"""The page about the paper, made from rows alone: the same rows give the same page, byte for byte.

What a person wrote is in page.md beside this file, in sections; what the rows say is put in its places.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from strays.errors import UsageError
from strays.studies.paper import claims, details, duels, opening, tables, trends, tuning_tables
from strays.studies.paper.figures import figures_of, save, style
from strays.studies.paper.registry import titles
from strays.studies.paper.sketches import DRAWS, INSIDE, SKETCHES, motivation
from strays.studies.paper.study import TRAININGS
from strays.studies.paper.summary import ResultTable, RowsByStudy, comparisons, interval, of_kind
from strays.studies.paper.tuning import FINALISTS
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
    for name, draw in all_figures(every).items():
        save(draw, folder / f"{name}.svg")
    own = notes.read_text(encoding="utf-8") if notes.exists() else ""
    page.write_text(render(every, folder.name, own), encoding="utf-8")


def all_figures(every: RowsByStudy) -> dict[str, Callable[[], Any]]:
    """File name (without suffix) -> a function that draws it, for the whole page."""
    of_rows = {name: draw for study, rows in every.items() for name, draw in figures_of(study, rows).items()}
    return {**SKETCHES, **of_rows}


def render(every: RowsByStudy, folder: str, notes: str = "") -> str:
    """The page's Markdown; figures are linked from the folder, and notes on the rows come last."""
    section = _sections()

    def fill(name: str, study: str = "", **words: Any) -> str:
        if study:
            words |= {"study": study, "figures": _figures(study, every, folder), "tables": _tables(study, every)}
        return section[name].substitute(words)

    def studies(kind: str) -> list[str]:
        return [study for study in every if study.startswith(kind)]

    compared = comparisons(every)
    against = of_kind(every, "unseen")
    parts = [fill("intro")]
    if lines := opening.in_short(every):
        parts.append(fill("findings", findings=_bullets(lines)))
    if main := tables.main_table(every):
        named = "; ".join(f"{study} {_what(study)}" for study in compared)
        parts.append(fill("main", tables=main.to_markdown(), studies=named))
        parts.append(fill("claims", tables=claims.verdicts(every).to_markdown()))
    for name, words in (("figure-1", _missed()), ("figure-2", {})):
        parts.append(fill(name, figure=_link(name, folder), **words))
    if compared:
        parts.append(fill("studies", tables=trends.trend_table(compared).to_markdown()))
    parts += [fill("comparison", study, title=_what(study)) for study in compared]
    if other_ways := details.other_ways(every):
        parts.append(fill("choices", tables=_joined(details.choices(other_ways))))
    parts += _repeat(every, fill)
    if searched := tuning_tables.searched(every):
        shown = _joined([searched, *filter(None, [tuning_tables.gained(every)])])
        parts.append(fill("tuning", tables=shown, finalists=FINALISTS, trainings=TRAININGS))
    if studies("case-"):
        parts.append(fill("cases"))
    parts += [fill(study, study, **_case_figures(study, every[study])) for study in studies("case-")]
    if against:
        lists = [duels.duel_table(against, method) for method in duels.CONTENDERS]
        own = [_figures(study, every, folder) + _tables(study, every) for study in studies("unseen-")]
        won = _bullets(duels.duel_sentences(against))
        found = won + "\n\n" + _joined([table for table in lists if table.rows])
        parts.append(fill("unseen", tables=found, details="\n".join(own)))
    parts += [fill("differs"), notes]
    return "\n".join(part.rstrip() + "\n" for part in parts if part)


def _repeat(every: RowsByStudy, fill: Callable[..., str]) -> list[str]:
    """The section on whether rows repeat, where there is anything to say."""
    found = [rerun for rows in of_kind(every, "repeat").values() for rerun in details.reruns(rows)]
    spread = details.spread(every)
    parts = []
    if found or spread:
        tables_of_spread = _joined([spread] if spread else [])
        parts.append(fill("repeat", trainings=details.trainings_sentence(every), tables=tables_of_spread))
    if found:
        sentences = _bullets(details.repeat_sentences(found))
        parts.append(fill("reruns", sentences=sentences, table=details.repeat(found).to_markdown()))
    return parts


def _what(study: str) -> str:
    """What a comparison is of: its title without the number of its table."""
    return titles()[study].partition(": ")[2]


def _missed() -> dict[str, str]:
    """The figures that the words about Figure 1 mention."""
    sketch = motivation()
    by = {"without": "without labels", "with_labels": "with labels", "classifier": "classifier"}
    missed = {name: f"{sketch.missed(of)}" for name, of in by.items()}
    without, with_labels = (
        np.array([motivation(seed).missed(of) for seed in range(DRAWS)]) for of in ("without labels", "with labels")
    )
    over_draws = {
        "draws": f"{DRAWS}",
        "mean_without": f"{without.mean():.1f}",
        "mean_with": f"{with_labels.mean():.1f}",
        "fewer": f"{100 * (with_labels < without).mean():.0f} %",
        "more": f"{100 * (with_labels > without).mean():.0f} %",
    }
    return {**missed, **over_draws, "unseen": f"{len(sketch.unseen)}", "inside": f"{100 * INSIDE:g} %"}


def _sections() -> dict[str, Template]:
    """The parts of page.md, each opened by a comment with its name."""
    text = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    parts = re.split(r"<!-- ([\w-]+) -->\n", text)
    return {name: Template(body) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def _joined(several: list[ResultTable]) -> str:
    return "\n".join(table.to_markdown() for table in several)


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _tables(study: str, every: RowsByStudy) -> str:
    return _joined(tables.tables_of(study, every))


def _figures(study: str, every: RowsByStudy, folder: str) -> str:
    return "".join(f"{_link(name, folder)}\n\n" for name in figures_of(study, every[study]))


def _link(name: str, folder: str) -> str:
    return f"![{name.replace('-', ' ')}]({folder}/{name}.svg)"


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
        return {"closer": f"{100 * sum(closer) / len(closer):.0f} %"}
    return {}
