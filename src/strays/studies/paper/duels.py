"""AI-SVDD against the classifiers of the unseen studies: who wins where, in tables and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from strays.studies.paper.evidence import Rows, figure
from strays.studies.paper.methods import CLASSIFIERS
from strays.studies.paper.summary import TITLES, ResultTable, RowsByStudy, interval, share, values

# AI-SVDD with each of its settings.
CONTENDERS = ("ai-svdd-tuned", "ai-svdd-paper", "ai-svdd")
# What an unseen study tests, and how to say it.
TESTS = {"seen": "of the known kind", "unseen": "of kinds never seen"}


@dataclass(frozen=True)
class Duel:
    """A method less a classifier in AUC, on one corpus, kind of test and p: mean over runs and its 95 % half width.

    >>> Duel("5.2-ag", "default", "unseen", 0.08, "ai-svdd", "logistic", lead=0.03, half_width=0.01).winner
    'AI-SVDD'
    """

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


def duels(every: RowsByStudy, method: str) -> list[Duel]:
    """A method against each classifier. Known kinds share their normals, so that a run counts once: its mean."""
    found = []
    for corpus, rows in every.items():
        for encoder in values(rows, "encoder"):
            source = Rows({corpus: rows}, {}, encoder)
            for test, p, other in product(TESTS, values(rows, "pollution"), CLASSIFIERS):
                ours, theirs = (figure(corpus, f"{test}.auc", name, p) for name in (method, other))
                if differences := (ours - theirs).samples(source):
                    found.append(Duel(corpus, encoder, test, p, method, other, *interval(differences)))
    return found


def duel_table(every: RowsByStudy, method: str) -> ResultTable:
    """All duels of a method; one line for corpus, test and p."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for duel in duels(every, method):
        key = (duel.corpus, duel.encoder, duel.test, share(duel.pollution))
        lines.setdefault(key, []).extend([f"{100 * duel.lead:+.2f} ± {100 * duel.half_width:.2f}", duel.winner])
    header = ["corpus", "encoder", "test anomalies", "p"]
    for other in CLASSIFIERS:
        header += [f"AUC less {TITLES[other]}", "winner"]
    return ResultTable(
        f"{TITLES[method]}, against classifiers; mean over known kinds, interval over runs",
        header,
        [[*key, *cells] for key, cells in lines.items()],
    )


def duel_sentences(against: RowsByStudy) -> list[str]:
    """Who wins how often, one line for AI-SVDD with each of its settings and each kind of test anomalies."""
    lines = []
    for method, (test, words) in product(CONTENDERS, TESTS.items()):
        winners = [duel.winner for duel in duels(against, method) if duel.test == test]
        ours, even = winners.count("AI-SVDD"), winners.count("even")
        if winners:
            lines.append(
                f"**{TITLES[method]}**, test anomalies {words}: of {len(winners)} combinations of corpus, encoder, p "
                f"and classifier, AI-SVDD wins {ours} clearly by AUC, the classifier wins "
                f"{len(winners) - ours - even}, and {even} are even."
            )
    return lines
