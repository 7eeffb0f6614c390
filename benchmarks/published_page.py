"""The section of docs/figures.md on published data sets, from the rows of benchmarks.published."""

from __future__ import annotations

from statistics import fmean

from benchmarks.common import RESULTS
from benchmarks.published import SETS
from benchmarks.speed_page import table
from strays.studies.rows import RowFile

# As printed in Table 1 of arXiv 2601.17786, in the order of SETS.
PRINTED = {
    "FATE (MiniLM), printed": (10, (82.2, 77.9, 95.2, 55.6, 67.7, 83.3, 64.2)),
    "OpenAI-large and LUNAR, printed": (0, (97.7, 98.3, 71.8, 57.3, 71.9, 96.5, 77.0)),
    "MCA2 (three OpenAI encoders), printed": (0, (98.6, 99.0, 88.7, 63.6, 73.8, 95.3, 79.7)),
}
OURS = {
    "nearest normals": ("nearest", 0),
    "`auto`, `form=False`": ("auto, form=False", 0),
    "`auto`": ("auto", 0),
    "`auto`, ten known": ("auto", 10),
}


def section() -> str:
    """How the latest version ranks them, beside what others print."""
    every = RowFile(RESULTS / "published.jsonl").read()
    rows = [row for row in every if row["made_by"] == every[-1]["made_by"]]
    lines, versions = [], len({row["made_by"] for row in every})
    for name, (method, known) in OURS.items():
        found = [[row[method] for row in rows if (row["set"], row["known"]) == (of, known)] for of in SETS]
        lines.append(_line(name, known, [100 * fmean(aucs) for aucs in found]))
    lines += [_line(name, known, list(aucs)) for name, (known, aucs) in PRINTED.items()]
    return f"""## How does it rank on published sets?
AUC in percent on seven sets by the split of arXiv 2601.17786 (70 % of the normal texts are trained on, five seeds).
Settings were chosen on other corpora. These were read with {versions} versions of the ranking, and every run is kept
(`python -m benchmarks.published`; what each version had: [LOG.md](../benchmarks/LOG.md)):

{table(["method", "known", *SETS.values(), "mean"], lines)}

Where the normal texts are about anything (tweets: OLID, Hate), what is offensive is hardly farther from them than they
are from each other: without labels no method here ranks it well.
"""


def _line(name: str, known: int, aucs: list[float]) -> list[str]:
    return [name, str(known), *(f"{auc:.1f}" for auc in aucs), f"{fmean(aucs):.1f}"]
