"""What benchmarks.packages found, in the words of the README's opening and of docs/figures.md."""

from __future__ import annotations

from statistics import fmean, pstdev
from typing import Any

from benchmarks.speed_page import results, table
from strays.studies.rows import Row

STORY = "games"  # the section of the README's opening


def found() -> Any:
    """The result, with its date, the release and the rows."""
    return results("packages.json")


def values(section: str, way: str, metric: str) -> list[float]:
    """A metric of every draw of a section."""
    return [row[metric] for row in found()["rows"] if (row["section"], row["way"]) == (section, way)]


def percent(section: str, way: str, metric: str) -> str:
    """The mean of a metric over the draws, in percent."""
    return f"{100 * fmean(values(section, way, metric)):.1f}"


def with_deviation(section: str, way: str, metric: str) -> str:
    """As `61.5 (2.0)`, in percent; the deviation is that of the draws, where there are several."""
    draws = values(section, way, metric)
    return percent(section, way, metric) + (f" ({100 * pstdev(draws):.1f})" if len(draws) > 1 else "")


def story() -> str:
    """The README's commands, with what each gives."""
    none, ten = map(_outcome, ("none", "ten"))
    found_at_desk = fmean(values(STORY, "desk", "found"))
    desk = f"in the browser: {found_at_desk:.0f} more games in {found()['verdicts']} verdicts"
    return f"""```sh
strays scan packages.csv                       # {none}
strays scan packages.csv --known known.txt     # {ten}
strays review packages.csv --known known.txt   # {desk}
```
"""


def _outcome(way: str) -> str:
    lowest, highest = (100 * edge(values(STORY, way, "map")) for edge in (min, max))
    spread = f" ({lowest:.0f} to {highest:.0f})" if round(lowest) < round(highest) else ""
    first = 100 * fmean(values(STORY, way, "precision_at_50"))
    return f"MAP {percent(STORY, way, 'map')} %{spread}; of the first 50 rows {first:.0f} % are games"


def quality_table() -> str:
    """Every section that was tried, without and with ten known strays."""
    piles: dict[str, Row] = {row["section"]: row for row in found()["rows"] if row["way"] == "ten"}
    pairs = [(metric, way) for metric in ("map", "auc", "precision_at_50") for way in ("none", "ten")]
    lines = [
        [
            section,
            f"{row['strays']:,} of {row['texts']:,}",
            f"{len(values(section, 'ten', 'map'))}",
            *(with_deviation(section, way, metric) for metric, way in pairs),
        ]
        for section, row in piles.items()
    ]
    means = [f"{100 * fmean(fmean(values(name, way, metric)) for name in piles):.1f}" for metric, way in pairs]
    lines.append(["mean of the sections", "", "", *means])
    header = ["section", "strays", "draws", "MAP", "with ten", "AUC", "with ten", "first 50", "with ten"]
    return table(header, lines)


def desk_words() -> str:
    """What a person finds at the desk, in every draw that was measured; nothing where none was."""
    found_in = [f"{row['found']} ({row['section']})" for row in found()["rows"] if row["way"] == "desk"]
    if not found_in:
        return ""
    return f"""
A person who starts with the ten and judges {found()["verdicts"]} texts at the review desk, with the section as the
person, finds so many more: {", ".join(found_in)}.
"""


def section() -> str:
    """The section of docs/figures.md."""
    facts = found()
    return f"""## Do ten examples find the rest?
Strays are the one-line descriptions of one section of {facts["release"]}, hidden among 19,000 of other
sections (`apt-cache dumpavail`: {facts["packages"]:,} packages, {facts["descriptions"]:,} different descriptions;
{facts["date"]}). Without labels nothing tells a game from a library: other texts are odder. Ten known strays
say what to look for. All sections that were tried, in percent, of the rows that are not the ten; mean (deviation)
of the draws, each with its own pile and its own ten. "First 50" is the share of strays among the first 50 rows
(`python -m benchmarks.packages`):

{quality_table()}
{desk_words()}
Sections with too few packages to rank (education has 22) were not tried. The lists of packages change from week to
week, and the figures with them.
"""
