"""Tables behind the main ones: the choices the paper leaves open, and whether rows repeat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from statistics import fmean, pstdev

from strays.studies.paper.choices import CHOICES
from strays.studies.paper.methods import METHODS
from strays.studies.paper.summary import (
    TITLES,
    ResultTable,
    RowsByStudy,
    comparisons,
    interval,
    of_kind,
    points,
    same_runs,
    share,
    values,
    where,
)
from strays.studies.rows import Row

# Two rows agree if their AUC differs by at most this.
AGREES = 0.001


@dataclass(frozen=True)
class OtherWay:
    """A choice made the other way on one corpus, less the same runs as strays makes it, run by run.

    >>> OtherWay("5.1", "default", "batches", "ai-svdd-paper", 0.02, [0.04, 0.05, 0.06], [0.1, 0.1, 0.1]).verdict
    'better'
    """

    corpus: str
    encoder: str
    choice: str
    method: str
    pollution: float
    auc: list[float]
    map: list[float]

    @property
    def verdict(self) -> str:
        """'better' or 'worse' by AUC where the interval over runs leaves out zero."""
        mean, half_width = interval(self.auc)
        return "unclear" if abs(mean) <= half_width else "better" if mean > 0 else "worse"


def other_ways(every: RowsByStudy) -> list[OtherWay]:
    """Every row of a study of choices, paired with the row of the comparison of the same run."""
    found = []
    for corpus, rows in of_kind(every, "choices").items():
        cells = product(values(rows, "encoder"), CHOICES, METHODS, values(rows, "pollution"))
        for encoder, choice, method, p in cells:
            same = {"encoder": encoder, "method": method, "pollution": p}
            pairs = same_runs(where(rows, choice=choice, **same), where(every.get(corpus, []), **same))
            if pairs:
                auc, of_map = ([other[name] - our[name] for other, our in pairs] for name in ("auc", "map"))
                found.append(OtherWay(corpus, encoder, choice, method, p, auc, of_map))
    return found


def choices(found: list[OtherWay]) -> list[ResultTable]:
    """What was chosen with how often the other way is better, and the differences by AUC and by MAP."""
    if not found:
        return []
    chosen = []
    for name, choice in CHOICES.items():
        verdicts = [way.verdict for way in found if way.choice == name]
        if verdicts:
            counts = [f"{verdicts.count(verdict)}" for verdict in ("better", "worse", "unclear")]
            chosen.append([choice.title, choice.ours, choice.other, *counts])
    header = ["choice", "strays", "the other way", "better", "worse", "unclear"]
    title = "Choices, and in how many cells of the next table the other way is clearly better or worse by AUC"
    return [
        ResultTable(title, header, chosen),
        *(_differences(found, metric, words) for metric, words in (("auc", "AUC"), ("map", "MAP"))),
    ]


def _differences(found: list[OtherWay], metric: str, words: str) -> ResultTable:
    places = list(dict.fromkeys((way.corpus, way.encoder) for way in found))
    cell = {
        (way.choice, way.method, way.pollution, (way.corpus, way.encoder)): points(getattr(way, metric))
        for way in found
    }
    lines = [
        [CHOICES[choice].title, TITLES[method], share(p), *(cell.get((choice, method, p, at), "") for at in places)]
        for choice, method, p in product(CHOICES, METHODS, sorted({way.pollution for way in found}))
        if any((choice, method, p, at) in cell for at in places)
    ]
    header = ["choice", "method", "p", *(f"{corpus}, {encoder}" for corpus, encoder in places)]
    return ResultTable(f"{words} of the other way less {words} of strays' way, in points", header, lines)


@dataclass(frozen=True)
class Rerun:
    """Rows of one way to run and the same rows of another: differences in AUC by method and p.

    >>> Rerun("2 threads for 1", {("lof", 0.0): 0.0, ("ai-svdd", 0.0): -0.02}).agreeing("ai-svdd")
    (0, 1)
    """

    title: str
    difference: dict[tuple[str, float], float]

    def of(self, method: str | None = None) -> list[float]:
        """The sizes of the differences of one method, or of all."""
        return [abs(value) for (name, _), value in self.difference.items() if method in (None, name)]

    def agreeing(self, method: str | None = None) -> tuple[int, int]:
        """How many rows agree, and how many there are."""
        sizes = self.of(method)
        return sum(size <= AGREES + 1e-9 for size in sizes), len(sizes)


def reruns(rows: list[Row]) -> list[Rerun]:
    """On every kind of processor more threads and noise against neither, and the kinds of processor in pairs."""
    found = []
    for encoder in values(rows, "encoder"):
        own = where(rows, encoder=encoder)
        of_encoder = "" if encoder == "default" else f", encoder {encoder}"
        first = {}
        for kernels in values(own, "kernels"):
            ways = sorted({(row["noise"], row["threads"]) for row in where(own, kernels=kernels)})
            first[kernels] = (kernels, *ways[0])
            for noise, threads in ways[1:]:
                words = f"noise of {noise:g}" if noise else f"{threads} threads for {ways[0][1]}"
                title = f"{words} on {kernels}{of_encoder}"
                found.append(_rerun(own, first[kernels], (kernels, noise, threads), title))
        for one, other in combinations(first, 2):
            found.append(_rerun(own, first[one], first[other], f"{other} for {one}{of_encoder}"))
    return [rerun for rerun in found if rerun.difference]


def _rerun(rows: list[Row], one: tuple[str, float, int], other: tuple[str, float, int], title: str) -> Rerun:
    before, after = (
        {
            (row["method"], row["pollution"]): row["auc"]
            for row in where(rows, kernels=kernels, noise=noise, threads=threads)
        }
        for kernels, noise, threads in (one, other)
    )
    return Rerun(title, {cell: after[cell] - before[cell] for cell in sorted(before) if cell in after})


def repeat_sentences(found: list[Rerun]) -> list[str]:
    """For each way to run again how many rows agree, and where the largest difference is."""
    lines = []
    for rerun in found:
        agreeing, n = rerun.agreeing()
        (method, p), largest = max(rerun.difference.items(), key=lambda item: abs(item[1]))
        where_largest = f"the largest difference is {100 * abs(largest):.2f} ({TITLES[method]} at p = {share(p)})"
        lines.append(
            f"**{rerun.title}**: {agreeing} of {n} rows agree within {100 * AGREES:g} AUC points; "
            f"{where_largest if largest else 'all are equal'}."
        )
    return lines


def repeat(found: list[Rerun]) -> ResultTable:
    """For each method and way to run again: how many rows agree, and the largest difference."""

    def cell(rerun: Rerun, method: str | None) -> str:
        agreeing, n = rerun.agreeing(method)
        return f"{agreeing} of {n}; {100 * max(rerun.of(method)):.2f}" if n else ""

    methods = [name for name in METHODS if any(rerun.of(name) for rerun in found)]
    lines = [[TITLES[name], *(cell(rerun, name) for rerun in found)] for name in methods]
    lines.append(["all methods", *(cell(rerun, None) for rerun in found)])
    title = f"Rows that agree within {100 * AGREES:g} AUC points, of how many; largest difference in points"
    return ResultTable(title, ["method", *(rerun.title for rerun in found)], lines)


def _compared(every: RowsByStudy) -> Iterator[tuple[str, str, list[Row]]]:
    """Each comparison and encoder with its rows."""
    for study, rows in comparisons(every).items():
        for encoder in values(rows, "encoder"):
            yield study, encoder, where(rows, encoder=encoder)


def spread(every: RowsByStudy) -> ResultTable | None:
    """The deviation of AUC over the trainings of a run beside the deviation over runs; nothing where rows have none."""
    places = [place for place in _compared(every) if any("spread" in row for row in place[2])]
    lines = []
    for name in METHODS:
        line = [TITLES[name]]
        for _, _, rows in places:
            own = [row for row in where(rows, method=name) if "spread" in row]
            within = [row["spread"]["auc"] for row in own]
            over = [pstdev(row["auc"] for row in where(own, pollution=p)) for p in values(own, "pollution")]
            line.append(f"{100 * fmean(within):.1f} / {100 * fmean(over):.1f}" if own else "")
        if any(line[1:]):
            lines.append(line)
    header = ["method", *(f"{study}, {encoder}" for study, encoder, _ in places)]
    title = "Deviation of AUC in points: over the trainings of one run / over the means of the runs; mean over p"
    return ResultTable(title, header, lines) if lines else None


def trainings_sentence(every: RowsByStudy) -> str:
    """How many trainings stand behind the rows of methods with a seed, and how many of them collapsed."""
    rows = [row for _, _, own in _compared(every) for row in own if METHODS[row["method"]].random]
    counts = sorted({row.get("trainings", 1) for row in rows})
    if not counts:
        return ""
    n_collapsed = sum(row.get("collapsed", 0) for row in rows)
    n_trained = sum(row.get("trainings", 1) for row in rows)
    several = (
        "Each is the mean of its trainings and carries, as `spread`, their deviation; the mean varies less than one "
        "training does. "
        if counts[0] > 1
        else ""
    )
    return (
        f"The tables of the studies have {len(rows):,} rows of methods with a seed, of "
        f"{' or '.join(map(str, counts))} training{'s' * (counts != [1])} each. {several}"
        f"Of the {n_trained:,} trainings {f'{n_collapsed:,}' if n_collapsed else 'none'} collapsed, that is, gave all "
        "texts one score."
    )
