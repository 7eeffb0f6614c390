"""The section of docs/figures.md on what tuning the encoder gains, from the rows of benchmarks.tuning."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean

from benchmarks.common import RESULTS
from benchmarks.regret_page import TITLES
from benchmarks.speed_page import table
from strays.studies.rows import Row, RowFile

METRICS = ("auc_seen", "ap20_seen", "auc_unseen")
KINDS = {"all": "all", "half": "half of them"}


def section() -> str:
    """What tuned models rank better and worse on fresh texts."""
    rows = RowFile(RESULTS / "tuning.jsonl").read()
    cells: dict[tuple[str, str, float, int], list[Row]] = defaultdict(list)
    for row in rows:
        cells[row["corpus"], row["kinds"], row["pollution"], row["known"]].append(row)
    order = {name: i for i, name in enumerate(TITLES)}
    lines = [
        [TITLES[corpus], KINDS[kinds], _known(known, hidden), *(_pair(of, metric) for metric in METRICS), _used(of)]
        for (corpus, kinds, hidden, known), of in sorted(
            cells.items(), key=lambda cell: (order[cell[0][0]], cell[0][1:])
        )
    ]
    by_cell = [[gain for metric in ("auc_seen", "auc_unseen") for gain in _gain(of, metric)] for of in cells.values()]
    gains = [gain for of in by_cell for gain in of]
    used = [gain for of in by_cell for gain in of if any(of)]
    head = ["corpus", "kinds known", "known", "AUC", "AP", "AUC, other kinds", "share used"]
    seconds = [row["seconds_tuned"] for row in rows]
    return f"""## What does tuning gain?
Models without and with `tune=True` on the same texts: up to 3,000 presumed normal ones and the known anomalies; fresh
ones of the test splits are ranked, of the kinds that are known and of others. AUC, and average precision (AP) at 20 %
anomalies, in percent, without -> with. Share used: how much of what was learnt the held-out labels allowed, 0 for no
tuning. {_draws(rows)} a cell (`python -m benchmarks.tuning`):

{table(head, lines)}

Over these {len(cells)} cells the AUC of known and other kinds rises by {fmean(gains):.1f} points on average, and by
{fmean(used):.1f} where something of it is used; the smallest change is {min(gains):+.1f}. A fit took
{min(seconds):.0f} to {max(seconds):.0f} seconds on one busy core. What else was tried:
`python -m benchmarks.tuning --choose` and [LOG.md](../benchmarks/LOG.md).
"""


def _draws(rows: list[Row]) -> str:
    n = len({row["seed"] for row in rows})
    return "One draw" if n == 1 else f"Means of {n} draws"


def _known(known: int, hidden: float) -> str:
    return f"{known}, {hidden:.0%} hidden" if hidden else str(known)


def _pair(rows: list[Row], metric: str) -> str:
    if f"{metric}_plain" not in rows[0]:
        return ""
    plain, tuned = (100 * fmean(row[f"{metric}_{name}"] for row in rows) for name in ("plain", "tuned"))
    return f"{plain:.1f} -> {tuned:.1f}"


def _gain(rows: list[Row], metric: str) -> list[float]:
    """The mean gain over the seeds in points, in a list; an empty one where there are no such anomalies."""
    if f"{metric}_plain" not in rows[0]:
        return []
    return [100 * fmean(row[f"{metric}_tuned"] - row[f"{metric}_plain"] for row in rows)]


def _used(rows: list[Row]) -> str:
    return ", ".join(f"{row.get('share', 0):g}" for row in rows)
