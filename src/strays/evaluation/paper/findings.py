"""What the rows say of the paper's claims: who falls and who rises with pollution, who beats whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strays.evaluation.paper import printed
from strays.evaluation.paper.methods import CLASSIFIERS, METHODS, ONE_CLASS
from strays.evaluation.paper.rows import Row
from strays.evaluation.paper.tables import TITLES, Table, share, values, where

Every = dict[str, list[Row]]


@dataclass(frozen=True)
class Trend:
    """How a method changes from p = 0 to the highest p, seed by seed: mean difference and its 95 % half width."""

    study: str
    encoder: str
    method: str
    metric: str
    change: float
    half_width: float

    @property
    def verdict(self) -> str:
        """'rises' or 'falls' where the interval leaves out zero."""
        if abs(self.change) <= self.half_width:
            return "no clear change"
        return "rises" if self.change > 0 else "falls"

    def __str__(self) -> str:
        return f"{100 * self.change:+.1f} ± {100 * self.half_width:.1f}"


def trends(study: str, rows: list[Row], metric: str) -> list[Trend]:
    """The trend of every method and encoder that has rows at both ends."""
    found = []
    pollutions = [p for p in values(rows, "pollution") if p is not None]
    for encoder in values(rows, "encoder") if len(pollutions) > 1 else []:
        for method in METHODS:
            own = where(rows, encoder=encoder, method=method)
            pairs = _pairs(own, {"pollution": max(pollutions)}, {"pollution": 0.0})
            if len(pairs) > 1:
                change, half_width = interval([a[metric] - b[metric] for a, b in pairs])
                found.append(Trend(study, encoder, method, metric, change, half_width))
    return found


def _pairs(rows: list[Row], one: dict[str, Any], other: dict[str, Any]) -> list[tuple[Row, Row]]:
    """The rows of two conditions that share seed, known kind and encoder; a study half run has some without partner."""

    def by_run(wanted: dict[str, Any]) -> dict[tuple[Any, ...], Row]:
        return {(row["encoder"], row.get("known"), row["seed"]): row for row in where(rows, **wanted)}

    first, second = by_run(one), by_run(other)
    return [(first[run], second[run]) for run in first if run in second]


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Mean and half width of its 95 % interval, by Student's t; of one difference nothing is known."""
    from scipy.stats import t

    n = len(differences)
    if n == 1:
        return differences[0], float("inf")
    return float(np.mean(differences)), float(t.ppf(0.975, n - 1) * np.std(differences, ddof=1) / np.sqrt(n))


def claims(every: Every) -> Table:
    """What p does to each method, in our rows and in the paper's tables."""
    lines = []
    for study, rows in every.items():
        for of_map, of_auc in zip(trends(study, rows, "map"), trends(study, rows, "auc"), strict=True):
            name = METHODS[of_map.method].printed
            paper = printed.TABLES[study].get(name or "", {})
            printed_change = [
                f"{float(paper[m][-1].split()[0]) - float(paper[m][0].split()[0]):+.1f}" if paper else ""
                for m in ("map", "auc")
            ]
            line = [study, TITLES[of_map.method], of_map.encoder]
            for trend, change in zip((of_map, of_auc), printed_change, strict=True):
                line += [str(trend), trend.verdict, change]
            lines.append(line)
    header = ["study", "method", "encoder", "MAP", "", "paper's", "AUC", "", "paper's"]
    return Table("Change from p = 0 % to p = 8 %, in points, with its 95 % interval over the runs", header, lines)


def duels(every: Every, method: str = "ai-svdd") -> Table:
    """AI-SVDD less each classifier in AUC, paired by known kind and seed."""
    lines = []
    for corpus, rows in every.items():
        for test in ("seen", "unseen"):
            for p in sorted(values(rows, "pollution")):
                line = [corpus, test, share(p)]
                for other in CLASSIFIERS:
                    pairs = _pairs(rows, {"method": method, "pollution": p}, {"method": other, "pollution": p})
                    differences = [a[test]["auc"] - b[test]["auc"] for a, b in pairs if test in a]
                    if len(differences) > 1:
                        change, half_width = interval(differences)
                        winner = "even" if abs(change) <= half_width else "AI-SVDD" if change > 0 else TITLES[other]
                        line += [f"{100 * change:+.1f} ± {100 * half_width:.1f}", winner]
                if len(line) > 3:
                    lines.append(line)
    header = ["corpus", "test anomalies", "p"]
    for other in CLASSIFIERS:
        header += [f"AUC less {TITLES[other]}", "winner"]
    return Table("AI-SVDD (strays' settings) against classifiers, paired by known kind and run", header, lines)


def sentences(compared: Every, against: Every) -> list[str]:
    """The findings, one a line."""
    return [*_trend_sentences(compared), *_ranking_sentences(compared), *_duel_sentences(against)]


def _trend_sentences(compared: Every) -> list[str]:
    every = [trend for study, rows in compared.items() for trend in trends(study, rows, "auc")]
    if not every:
        return []
    blind = [trend for trend in every if trend.method in ONE_CLASS]
    count = Counter(trend.verdict for trend in blind)
    others = [f"{TITLES[t.method]} on {t.study} ({t.encoder}, {t})" for t in blind if t.verdict != "falls"]
    lines = [
        f"**One-class methods fall as p grows**: in AUC, {count['falls']} of {count.total()} pairs of method and "
        f"corpus fall clearly, {count['no clear change']} show no clear change, {count['rises']} rise."
        + (f" Not falling: {'; '.join(others)}." if others else "")
    ]
    for name in ("ai-svdd-paper", "ai-svdd"):
        words = "; ".join(f"{t.study} ({t.encoder}) {t}, {t.verdict}" for t in every if t.method == name)
        settings = METHODS[name].title.partition(", ")[2]
        lines.append(f"**AI-SVDD rises as p grows** ({settings}), in points of AUC: {words}.")
    return lines


def _ranking_sentences(compared: Every) -> list[str]:
    lines = []
    for study, rows in compared.items():
        encoder = values(rows, "encoder")[0]
        p = max(values(rows, "pollution"), key=lambda p: p or 0)
        score = {
            name: 100 * float(np.mean([row["auc"] for row in found]))
            for name in METHODS
            if (found := where(rows, method=name, pollution=p, encoder=encoder))
        }
        if "ai-svdd-paper" not in score:
            continue
        ranked = sorted(score, key=lambda name: -score[name])
        printed_ones = [name for name in ranked if METHODS[name].printed]
        lines.append(
            f"**{study}**{f' at p = {share(p)}' if p else ''}, AUC, encoder {encoder}: best is {TITLES[ranked[0]]} "
            f"({score[ranked[0]]:.1f}); AI-SVDD with the paper's settings ({score['ai-svdd-paper']:.1f}) is number "
            f"{1 + printed_ones.index('ai-svdd-paper')} of the paper's {len(printed_ones)} methods."
        )
    return lines


def _duel_sentences(against: Every) -> list[str]:
    lines = []
    for i, other in enumerate(CLASSIFIERS):
        for test, words in (("seen", "of the known kind"), ("unseen", "of kinds never seen")):
            wins = Counter(line[4 + 2 * i] for line in duels(against).rows if line[1] == test)
            if wins:
                lines.append(
                    f"**Against {TITLES[other]}**, test anomalies {words}: of {wins.total()} pairs of corpus and p, "
                    f"AI-SVDD wins {wins['AI-SVDD']}, the classifier {wins[TITLES[other]]}, {wins['even']} are even."
                )
    return lines
