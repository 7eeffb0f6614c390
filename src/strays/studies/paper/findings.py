"""What the rows say of the paper's claims: who falls and who rises with pollution, who beats whom."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from strays.studies.paper import printed
from strays.studies.paper.duels import duel_sentences
from strays.studies.paper.methods import METHODS, ONE_CLASS
from strays.studies.paper.summary import TITLES, ResultTable, RowsByStudy, interval, share, values, where
from strays.studies.protocol import POLLUTIONS
from strays.studies.rows import Row


@dataclass(frozen=True)
class Trend:
    """How a method changes from p = 0 to the highest p, seed by seed: mean difference and its 95 % half width.

    >>> trend = Trend("5.1", "default", "lof", "auc", change=-0.021, half_width=0.004)
    >>> trend.verdict, str(trend)
    ('falls', '-2.10 ± 0.40')
    """

    study: str
    encoder: str
    method: str
    metric: str
    change: float
    half_width: float

    @property
    def verdict(self) -> str:
        """'rises' or 'falls' where the interval leaves out zero; of one run nothing can be said."""
        if self.half_width == float("inf"):
            return "one run"
        if abs(self.change) <= self.half_width:
            return "no clear change"
        return "rises" if self.change > 0 else "falls"

    def __str__(self) -> str:
        return f"{100 * self.change:+.2f} ± {100 * self.half_width:.2f}"


def trends(study: str, rows: list[Row], metric: str) -> list[Trend]:
    """The trend of every method and encoder that has rows at both ends."""
    found = []
    pollutions = [p for p in values(rows, "pollution") if p is not None]
    for encoder, method in product(values(rows, "encoder"), METHODS) if len(pollutions) > 1 else ():
        own = where(rows, encoder=encoder, method=method)
        last, first = (
            {row["seed"]: row[metric] for row in where(own, pollution=p)} for p in (pollutions[-1], pollutions[0])
        )
        differences = [last[seed] - first[seed] for seed in last if seed in first]
        if differences:
            found.append(Trend(study, encoder, method, metric, *interval(differences)))
    return found


def claims(every: RowsByStudy) -> ResultTable:
    """What p does to each method, in our rows and in the paper's tables."""
    lines = []
    for study, rows in every.items():
        for of_map, of_auc in zip(trends(study, rows, "map"), trends(study, rows, "auc"), strict=True):
            paper = printed.TABLES[study].get(METHODS[of_map.method].printed or "", {})
            line = [study, TITLES[of_map.method], of_map.encoder]
            for trend in (of_map, of_auc):
                ends = [float(cell.split()[0]) for cell in paper.get(trend.metric, [])]
                line += [str(trend), trend.verdict, f"{ends[-1] - ends[0]:+.1f}" if ends else ""]
            lines.append(line)
    header = ["study", "method", "encoder", "MAP", "", "paper's", "AUC", "", "paper's"]
    return ResultTable(
        "Change from the lowest to the highest p, in points, with its 95 % interval over runs", header, lines
    )


def sentences(compared: RowsByStudy, against: RowsByStudy) -> list[str]:
    """The findings, one a line."""
    return [*_trend_sentences(compared), *_ranking_sentences(compared), *duel_sentences(against)]


def _trend_sentences(compared: RowsByStudy) -> list[str]:
    every = [trend for study, rows in compared.items() for trend in trends(study, rows, "auc")]
    if not every:
        return []
    blind = [trend for trend in every if trend.method in ONE_CLASS]
    count = Counter(trend.verdict for trend in blind)
    others = sorted({f"{TITLES[t.method]} on {t.study}" for t in blind if t.verdict != "falls"})
    lines = [
        f"**One-class methods are worse when the training set is polluted**: from the lowest to the highest p, AUC "
        f"falls clearly in {count['falls']} of {count.total()} combinations of method, corpus and encoder, rises "
        f"clearly in {count['rises']}." + (f" No clear change: {'; '.join(others)}." if others else "")
    ]
    for name in [name for name, method in METHODS.items() if method.sees_labels]:
        own = [trend for trend in every if trend.method == name]
        if own:
            count = Counter(trend.verdict for trend in own)
            words = "; ".join(f"{t.study}, {t.encoder} {t}" for t in own)
            lines.append(
                f"**AI-SVDD is better when it has more known anomalies**, {TITLES[name].partition(', ')[2]}: from the "
                f"lowest to the highest p, AUC rises clearly in {count['rises']} of {count.total()} combinations of "
                f"corpus and encoder, falls clearly in {count['falls']} ({words})."
            )
    return lines


def _ranking_sentences(compared: RowsByStudy) -> list[str]:
    lines = []
    for study, rows in compared.items():
        encoder, p = values(rows, "encoder")[0], values(rows, "pollution")[-1]
        score = mean_scores(where(rows, encoder=encoder, pollution=p), "auc")
        of_paper = [name for name in score if METHODS[name].printed in printed.TABLES[study]]
        if "ai-svdd-paper" in of_paper:
            best = max(score, key=lambda name: score[name])
            above = sum(score[name] > score["ai-svdd-paper"] for name in of_paper)
            lines.append(
                f"**{study}**{f' at p = {share(p)}' if p else ''}, mean AUC, encoder {encoder}: highest in its table "
                f"is {TITLES[best]} ({100 * score[best]:.1f}); of the {len(of_paper)} methods the paper compares "
                f"there, {above or 'none'} {'is' if above < 2 else 'are'} above AI-SVDD with the paper's settings "
                f"({100 * score['ai-svdd-paper']:.1f})."
            )
    return lines


def mean_scores(rows: list[Row], metric: str) -> dict[str, float]:
    """The mean of a metric for each method that has rows."""
    return {name: fmean(row[metric] for row in found) for name in METHODS if (found := where(rows, method=name))}


@dataclass(frozen=True)
class Statement:
    """Something the paper says of its tables: which of its methods is best on a study, at some p, by some metrics.

    >>> STATEMENTS[0].words
    '5.1: OC-SVDD is best without pollution'
    """

    words: str
    study: str
    best: str
    pollutions: tuple[float | None, ...]
    metrics: tuple[str, ...] = ("map", "recall_at_5", "auc")
    among: tuple[str, ...] = tuple(name for name, method in METHODS.items() if method.printed)


THREE = ("centroid", "deep-svdd", "ai-svdd-paper")
STATEMENTS = (
    Statement("5.1: OC-SVDD is best without pollution", "5.1", "deep-svdd", (0.0,), among=THREE),
    Statement("5.1: AI-SVDD is best at p = 8 %", "5.1", "ai-svdd-paper", (0.08,), among=THREE),
    Statement("AG: LOF is best below p = 8 %", "5.2-ag", "lof", (0.0, 0.01, 0.02, 0.04)),
    Statement("AG: AI-SVDD is best at p = 8 %", "5.2-ag", "ai-svdd-paper", (0.08,)),
    Statement("Yelp: AI-SVDD is best from p = 4 %", "5.2-yelp", "ai-svdd-paper", (0.04, 0.08)),
    Statement(
        "RCT: AI-SVDD is best by MAP and AUC once p > 0", "5.2-rct", "ai-svdd-paper", POLLUTIONS[1:], ("map", "auc")
    ),
    Statement("5.3: AI-SVDD is best", "5.3", "ai-svdd-paper", (None,)),
)


def statements(every: RowsByStudy) -> ResultTable:
    """Who is best by mean among the paper's methods, where the paper says who is; a line for each encoder."""
    lines = []
    for said in STATEMENTS:
        for encoder in values(every.get(said.study, []), "encoder"):
            others = []
            n = 0
            for p, metric in product(said.pollutions, said.metrics):
                rows = where(every[said.study], encoder=encoder, pollution=p)
                score = {name: value for name, value in mean_scores(rows, metric).items() if name in said.among}
                if said.best in score:
                    n += 1
                    best = max(score, key=lambda name: score[name])
                    if score[best] > score[said.best]:
                        others.append(TITLES[best])
            if n:
                holds = "yes" if not others else "no" if len(others) == n else f"in {n - len(others)} of {n}"
                who = ", ".join(f"{name} ({count})" for name, count in Counter(others).most_common())
                lines.append([said.words, encoder, holds, who])
    header = ["the paper says", "encoder", "holds here", "best instead (cells of p and metric)"]
    return ResultTable("Further statements of the paper, by the mean over runs of its own methods", header, lines)
