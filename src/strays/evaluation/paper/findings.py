"""What the rows say of the paper's claims: who falls and who rises with pollution, who beats whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

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
    for encoder, method in product(values(rows, "encoder"), METHODS) if len(pollutions) > 1 else ():
        own = where(rows, encoder=encoder, method=method)
        last, first = (
            {row["seed"]: row[metric] for row in where(own, pollution=p)} for p in (pollutions[-1], pollutions[0])
        )
        differences = [last[seed] - first[seed] for seed in last if seed in first]
        if differences:
            found.append(Trend(study, encoder, method, metric, *interval(differences)))
    return found


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
            paper = printed.TABLES[study].get(METHODS[of_map.method].printed or "", {})
            line = [study, TITLES[of_map.method], of_map.encoder]
            for trend in (of_map, of_auc):
                ends = [float(cell.split()[0]) for cell in paper.get(trend.metric, [])]
                line += [str(trend), trend.verdict, f"{ends[-1] - ends[0]:+.1f}" if ends else ""]
            lines.append(line)
    header = ["study", "method", "encoder", "MAP", "", "paper's", "AUC", "", "paper's"]
    return Table("Change from the lowest to the highest p, in points, with its 95 % interval over runs", header, lines)


@dataclass(frozen=True)
class Duel:
    """A method less a classifier in AUC, on one corpus, kind of test and p: mean over runs and its 95 % half width."""

    corpus: str
    encoder: str
    test: str
    pollution: float
    method: str
    other: str
    lead: float
    half_width: float

    @property
    def winner(self) -> str:
        """'AI-SVDD' or the classifier where the interval leaves out zero."""
        if abs(self.lead) <= self.half_width:
            return "even"
        return "AI-SVDD" if self.lead > 0 else TITLES[self.other]


def duels(every: Every, method: str) -> list[Duel]:
    """A method against each classifier. Known kinds share their normals, so that a run counts once: its mean."""
    found = []
    for corpus, rows in every.items():
        settings = product(values(rows, "encoder"), ("seen", "unseen"), values(rows, "pollution"), CLASSIFIERS)
        for encoder, test, p, other in settings:
            own = [row for row in where(rows, encoder=encoder, pollution=p) if test in row]
            ours, theirs = (
                {(row["seed"], row["known"]): row[test]["auc"] for row in where(own, method=name)}
                for name in (method, other)
            )
            by_seed: dict[int, list[float]] = {}
            for run in [run for run in ours if run in theirs]:
                by_seed.setdefault(run[0], []).append(ours[run] - theirs[run])
            if by_seed:
                lead = interval([fmean(differences) for differences in by_seed.values()])
                found.append(Duel(corpus, encoder, test, p, method, other, *lead))
    return found


def duel_table(every: Every, method: str) -> Table:
    """All duels of a method; one line for corpus, test and p."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for duel in duels(every, method):
        key = (duel.corpus, duel.encoder, duel.test, share(duel.pollution))
        lines.setdefault(key, []).extend([f"{100 * duel.lead:+.1f} ± {100 * duel.half_width:.1f}", duel.winner])
    header = ["corpus", "encoder", "test anomalies", "p"]
    for other in CLASSIFIERS:
        header += [f"AUC less {TITLES[other]}", "winner"]
    return Table(
        f"{TITLES[method]}, against classifiers; mean over known kinds, interval over runs",
        header,
        [[*key, *cells] for key, cells in lines.items()],
    )


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
        f"**The paper's claim that one-class methods fall as p grows**: in AUC, of {count.total()} combinations of "
        f"method, corpus and encoder {count['falls']} fall clearly, {count['no clear change']} show no clear change, "
        f"{count['rises']} rise." + (f" Not falling: {'; '.join(others)}." if others else "")
    ]
    for name in [name for name, method in METHODS.items() if method.told]:
        own = [trend for trend in every if trend.method == name]
        if not own:
            continue
        count = Counter(trend.verdict for trend in own)
        words = "; ".join(f"{t.study} ({t.encoder}) {t}" for t in own)
        lines.append(
            f"**Its claim that AI-SVDD rises as p grows**, with {TITLES[name].partition(', ')[2]}: of {count.total()} "
            f"combinations of corpus and encoder {count['rises']} rise clearly in AUC, {count['no clear change']} show "
            f"no clear change, {count['falls']} fall ({words})."
        )
    return lines


def _ranking_sentences(compared: Every) -> list[str]:
    lines = []
    for study, rows in compared.items():
        encoder, p = values(rows, "encoder")[0], values(rows, "pollution")[-1]
        score = {
            name: 100 * fmean(row["auc"] for row in found)
            for name in METHODS
            if (found := where(rows, method=name, pollution=p, encoder=encoder))
        }
        ranking = sorted(score, key=lambda name: -score[name])
        of_paper = [name for name in ranking if METHODS[name].printed in printed.TABLES[study]]
        if "ai-svdd-paper" in of_paper:
            lines.append(
                f"**{study}**{f' at p = {share(p)}' if p else ''}, mean AUC, encoder {encoder}: highest is "
                f"{TITLES[ranking[0]]} ({score[ranking[0]]:.1f}); AI-SVDD with the paper's settings "
                f"({score['ai-svdd-paper']:.1f}) is number {1 + of_paper.index('ai-svdd-paper')} of the "
                f"{len(of_paper)} methods the paper compares there."
            )
    return lines


def _duel_sentences(against: Every) -> list[str]:
    every = duels(against, "ai-svdd")
    if not every:
        return []
    winners = [duel.winner for duel in every if duel.test == "unseen"]
    ours, even = winners.count("AI-SVDD"), winners.count("even")
    lines = [
        f"**Its belief that AI-SVDD beats a classifier on kinds of anomalies never seen**: of {len(winners)} "
        f"combinations of corpus, p and classifier, AI-SVDD with strays' settings wins {ours}, the classifier wins "
        f"{len(winners) - ours - even}, and {even} are even."
    ]
    for other, (test, words) in product(CLASSIFIERS, (("seen", "the known kind"), ("unseen", "kinds never seen"))):
        own = [duel for duel in every if (duel.other, duel.test) == (other, test)]
        parts = []
        for corpus in dict.fromkeys(duel.corpus for duel in own):
            won: dict[str, list[str]] = {}
            for duel in own:
                if duel.corpus == corpus:
                    won.setdefault(duel.winner, []).append(share(duel.pollution))
            at = (f"{winner} at {', '.join(at) if len(won) > 1 else 'every p'}" for winner, at in won.items())
            parts.append(f"{corpus}: {'; '.join(at)}")
        if parts:
            lines.append(
                f"**AI-SVDD against {TITLES[other]}**, test anomalies of {words}. Winners: {'. '.join(parts)}."
            )
    return lines
