"""The figures in docs/review.md, from the results alone: `python -m benchmarks.desk_page`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from benchmarks.common import RESULTS, marked
from benchmarks.labelling import BINS, LOOKS, WAYS
from benchmarks.speed_page import REPO, results, table
from strays.apps.review.estimate import estimate_remaining
from strays.studies.rows import Row, RowFile

PAGE = REPO / "docs" / "review.md"
NAMES = {
    "5.2-ag": "AG titles",
    "5.2-rct": "trial abstracts",
    "5.2-yelp": "Yelp reviews",
    "newsgroups": "newsgroups",
    "banking": "banking questions",
}
LAST = str(LOOKS[-1])


def rows() -> list[Row]:
    return RowFile(RESULTS / "labelling.jsonl").read()


def found_by(measured: list[Row]) -> dict[str, dict[str, list[int]]]:
    """Anomalies found after all verdicts, by corpus and way, one for each seed in order."""
    found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(measured, key=lambda row: int(row["seed"])):
        found[row["corpus"]][row["way"]].append(row["found"][LAST])
    return found


def ratio(found: dict[str, dict[str, list[int]]], way: str, to: str) -> float:
    """How many times what `to` finds `way` finds: the mean over the corpora of ratios of means over the seeds."""
    return float(np.mean([np.mean(ways[way]) / np.mean(ways[to]) for ways in found.values()]))


def ratio_of_piles(found: dict[str, dict[str, list[int]]], way: str, to: str) -> float:
    """The same, as the mean over single piles."""
    return float(np.mean([np.divide(ways[way], ways[to]) for ways in found.values()]))


def intervals(measured: list[Row]) -> Iterator[tuple[int, int, int, int]]:
    """(verdicts, lower end, upper end, truth) of what the desk shows as still hidden."""
    middle = 10 ** ((BINS[1:] + BINS[:-1]) / 2)
    for row in measured:
        if row["way"] == "desk":
            p, hit = (np.array(column) for column in list(zip(*row["judged"], strict=True))[1:])
            for look, counts in row["open"].items():
                n = int(look)
                shown = estimate_remaining(p[:n], np.where(hit[:n] == 1, -1, 1), np.repeat(middle, counts))
                if shown:
                    yield n, shown.low, shown.high, row["n_anomalies"] - row["found"][look]


def held(measured: list[Row]) -> tuple[int, int]:
    """How many of how many intervals hold the truth."""
    inside = [low <= truth <= high for _, low, high, truth in intervals(measured)]
    return sum(inside), len(inside)


def labelling_table(measured: list[Row]) -> str:
    found = found_by(measured)
    hidden = {row["corpus"]: (row["n_anomalies"], row["n_texts"]) for row in measured}
    lines = [
        [
            NAMES.get(corpus, corpus),
            f"{hidden[corpus][0]} of {hidden[corpus][1]:,}",
            *(f"{np.mean(ways[way]):.1f} ({np.std(ways[way], ddof=1):.1f})" for way in WAYS),
            f"{np.mean(ways['desk']) / np.mean(ways['fixed']):.2f}",
        ]
        for corpus, ways in found.items()
    ]
    mean = [f"{np.mean([np.mean(ways[way]) for ways in found.values()]):.1f}" for way in WAYS]
    lines.append(["mean", "", *mean, f"{ratio(found, 'desk', 'fixed'):.2f}"])
    header = ["corpus", "anomalies", "ranked once", "oddest first, refits", "the desk", "desk / ranked once"]
    return table(header, lines)


def figures() -> str:
    measured, desk = rows(), results("desk.json")
    found = found_by(measured)
    busy, hasty = desk["busy_refit_seconds"], desk["hasty_refit_seconds"]
    inside, of = held(measured)
    seeds = len({row["seed"] for row in measured})
    return f"""Anomalies found in {LAST} verdicts among 2 % anomalies, with the corpus's own labels as the person;
mean (deviation) of {seeds} draws (`python -m benchmarks.labelling`):

{labelling_table(measured)}

As the mean over single piles rather than over corpora the last figure is {ratio_of_piles(found, "desk", "fixed"):.2f}.
Where the oddest texts are hits, as here, the desk asks about little else and finds what oddest first with refits finds
({ratio(found, "desk", "oddest"):.3f} times as much); its other questions are for piles where the oddest are not what
one looks for ([LOG](../benchmarks/LOG.md)).

The interval for what is still hidden, meant to hold the truth 9 times of 10, held it in {inside} of {of} looks at these
piles, after {", ".join(map(str, LOOKS[:-1]))} and {LAST} verdicts. It is wide, because a person who looks at the oddest
texts learns little about the others.

On {desk["rows"]:,} texts and {desk["machine"]["cores"]} cores a verdict is answered in {desk["busy_ms"]["p95"]:.0f} ms
(95th percentile) while the model is being fitted, which takes {busy["median"]:.1f} s in the median and
{busy["max"]:.1f} s at most, at a verdict every {desk["pause_seconds"]} s; at one every {desk["hasty_seconds"]} s it is
{desk["hasty_ms"]["p95"]:.0f} ms, and {hasty["median"]:.1f} s and {hasty["max"]:.1f} s for a fit
(`python -m benchmarks.desk`).
"""


def page() -> str:
    """What the page should be."""
    return marked(PAGE.read_text(encoding="utf-8"), "figures", figures())


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
