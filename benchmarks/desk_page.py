"""The figures in docs/review.md, from the results alone: `python -m benchmarks.desk_page`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from benchmarks import left_to_find, more_labels
from benchmarks.common import RESULTS, marked
from benchmarks.labelling import BINS, LOOKS, WAYS
from benchmarks.speed_page import REPO, results, table
from strays.apps.review.estimate import RemainingAnomalies, estimate_remaining
from strays.studies.rows import Row, RowFile

PAGE = REPO / "docs" / "review.md"
NAMES = {
    "5.2-ag": "AG titles",
    "5.2-rct": "trial abstracts",
    "5.2-yelp": "Yelp reviews",
    "newsgroups": "newsgroups",
    "banking": "banking questions",
    "email-160": "mails cut to 160 characters",
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


def intervals(measured: list[Row]) -> Iterator[tuple[RemainingAnomalies | None, int]]:
    """What the desk shows as still hidden at every look, None where it shows a reason, and the truth."""
    middle = 10 ** ((BINS[1:] + BINS[:-1]) / 2)
    for row in measured:
        if row.get("way", "desk") == "desk":
            p, hit = (np.array(column) for column in list(zip(*row["judged"], strict=True))[1:])
            for look, counts in row["open"].items():
                n = int(look)
                shown = estimate_remaining(p[:n], np.where(hit[:n] == 1, -1, 1), np.repeat(middle, counts))
                left = row["n_anomalies"] - row["found"][look]
                yield shown if isinstance(shown, RemainingAnomalies) else None, left


def held(measured: list[Row]) -> tuple[int, int, int]:
    """At how many looks the interval holds the truth, is shown, and how many looks there are."""
    looks = list(intervals(measured))
    shown = [(found, left) for found, left in looks if found]
    return sum(found.low <= left <= found.high for found, left in shown), len(shown), len(looks)


def estimate_table() -> str:
    """How often the estimate is shown, and right, on large and on small piles."""
    small, piles = RowFile(left_to_find.RESULT).read(), {}
    piles["10,000 texts, 2 % anomalies"] = rows()
    for normals in sorted({row["normals"] for row in small}):
        part = [row for row in small if row["normals"] == normals]
        piles[f"{part[0]['n_texts']:,} texts, {part[0]['n_anomalies']} anomalies"] = part
    lines = []
    for name, part in piles.items():
        inside, shown, looks = held(part)
        off = [found.estimate - left for found, left in intervals(part) if found]
        wide = [found.high - found.low for found, _ in intervals(part) if found]
        lines.append([name, str(looks), str(shown), str(inside), f"{np.mean(off):+.1f}", f"{np.mean(wide):.0f}"])
    header = ["piles", "looks", "estimate shown", "holds the truth", "mean of estimate less truth", "mean width"]
    return table(header, lines)


def more_labels_table() -> str:
    """AUC and MAP with the first ten known anomalies and after more verdicts, by this version and by 0.1."""
    measured, lines = RowFile(more_labels.RESULT).read(), []
    both = [row for row in measured if "before" in row["quality"]]
    for where in ("fresh", "unjudged"):
        groups = [("this version", "now", measured), ("0.1", "before", both)]
        if len(both) < len(measured):
            groups.insert(1, ("this version", "now", both))
        for name, version, part in groups:
            cells = [row["quality"][version] for row in part if row["quality"][version]["0"][where]]
            for measure in ("auc", "map") if cells else ():
                value = np.array([[cell[str(k)][where][measure] for k in more_labels.LOOKS] for cell in cells])
                worst = (value[:, 1:] - value[:, :1]).min()
                means = [f"{mean:.1f}" for mean in value.mean(axis=0)]
                lines.append([where, name, measure.upper(), str(len(cells)), *means, f"{worst:+.1f}"])
    looks = [f"{k} more" for k in more_labels.LOOKS[1:]]
    return table(["rows", "by", "", "piles", "ten known", *looks, "worst change"], lines)


def packages_table() -> str:
    """What 60 verdicts after ten known strays do in large piles, and what as many known at random would have done."""
    rows = [row for row in results("packages.json")["rows"] if row["way"] in ("half", "desk")]
    lines, names = [], {"half": ("fresh", ("ten", "verdicts", "sample")), "desk": ("unjudged", ("ten", "verdicts"))}
    for way, (where, by) in names.items():
        part = [row for row in rows if row["way"] == way and f"auc_{where}_ten" in row]
        for row in part:
            cells = [[f"{100 * row[f'{measure}_{where}_{of}']:.1f}" for of in by] for measure in ("auc", "map")]
            found = f"{row['found']} of {results('packages.json')['verdicts']}"
            lines.append([where, row["section"], found, *(value for cell in cells for value in [*cell, ""][:3])])
    header = [
        "rows",
        "section",
        "found",
        "AUC, ten known",
        "after",
        "at random",
        "MAP, ten known",
        "after",
        "at random",
    ]
    return table(header, lines)


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
    seeds = len({row["seed"] for row in measured})
    return f"""Anomalies found in {LAST} verdicts among 2 % anomalies, with the corpus's own labels as the person;
mean (deviation) of {seeds} draws (`python -m benchmarks.labelling`):

{labelling_table(measured)}

As the mean over single piles rather than over corpora the last figure is {ratio_of_piles(found, "desk", "fixed"):.2f}.
Where the oddest texts are hits, as here, the desk asks about little else and finds what oddest first with refits finds
({ratio(found, "desk", "oddest"):.3f} times as much); its other questions are for piles where the oddest are not what
one looks for ([LOG](../benchmarks/LOG.md)).

The interval for what is still hidden is meant to hold the truth 9 times of 10. It is shown only once the anomalies run
out, which on most large piles is after more than {LAST} verdicts (`python -m benchmarks.labelling` and
`benchmarks.left_to_find`):

{estimate_table()}

More verdicts make the model better on average, not on every pile: AUC and MAP in percent with ten known anomalies and
after more verdicts, on fresh texts and on those of the pile that nobody has judged in the end, and the worst change
from the ten in any pile (`python -m benchmarks.more_labels`). Of the pile, the desk has asked about what later models
rank high, so that the comparison there favours the ten. 0.1 was given the same labels:

{more_labels_table()}

What a search finds is easier and of fewer kinds than the rest, which shows where far more is hidden than was judged: in
20,000 package descriptions (`python -m benchmarks.packages`). So the ten tell strays how much the found ones stand for.
`fresh` is the half of a pile that the desk never saw, `at random` what as many strays are worth that are known without
a search:

{packages_table()}

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
