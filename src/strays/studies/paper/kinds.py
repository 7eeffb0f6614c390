"""The kinds of things the paper says of its tables, each as parts to be judged: who is above whom, what p does."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, product

from strays.studies.paper import printed
from strays.studies.paper.evidence import AS_PRINTED, TUNED, Contrast, figure
from strays.studies.paper.methods import CLASSIFIERS
from strays.studies.paper.parts import NotAll, Part
from strays.studies.paper.rules import ABOVE, Above, Below
from strays.studies.paper.summary import share
from strays.studies.protocol import POLLUTIONS

METRICS = tuple(printed.METRICS)
HIGHEST = POLLUTIONS[-1]
# Corpora with several kinds of anomalies, and all of them, in the paper's order.
SEVERAL_KINDS = {"5.2-ag": "AG", "5.2-yelp": "Yelp", "5.2-rct": "RCT"}
CORPORA = {"5.1": "IMDB", **SEVERAL_KINDS, "5.3": "medical texts"}


def lead(study: str, method: str, other: str, metric: str, p: float | None, rule: Above = ABOVE) -> Part:
    """A method is above another."""
    at = "" if p is None else f" at {share(p)}"
    label = f"{printed.METRICS[metric]} against {other}{at}"
    return Part(label, figure(study, metric, method, p) - figure(study, metric, other, p), rule, f"against {other}")


def best(study: str, method: str, pollutions: Iterable[float | None], metrics: Iterable[str] = METRICS) -> list[Part]:
    """A method is above each of the others that the paper compares on a corpus."""
    others = [name for name in printed.TABLES[study] if name != method]
    return [lead(study, method, other, metric, p) for p, metric, other in product(pollutions, metrics, others)]


def best_at_highest(method: str) -> list[Part]:
    """A method is best on every corpus, at its highest p."""
    return [
        Part(f"{part.label}, {name}", part.contrast, group=name)
        for study, name in CORPORA.items()
        for part in best(study, method, [highest(study)])
    ]


def lowest(study: str) -> float | None:
    """The lowest p of a corpus, 0; the random splits of 5.3 have none."""
    return None if study == "5.3" else POLLUTIONS[0]


def highest(study: str) -> float | None:
    """The highest p of a corpus; the random splits of 5.3 have none."""
    return None if study == "5.3" else HIGHEST


def none_best(study: str, pollutions: Iterable[float]) -> list[NotAll]:
    """No method is best at each of several p, by every metric."""
    return [NotAll(method, tuple(best(study, method, tuple(pollutions)))) for method in printed.TABLES[study]]


def change(study: str, method: str, metric: str, start: float = 0.0, end: float = HIGHEST) -> Contrast:
    """What a figure gains from one p to another."""
    return figure(study, metric, method, end) - figure(study, metric, method, start)


def rises(study: str, method: str, metrics: Iterable[str] = METRICS) -> list[Part]:
    """A method is better at the highest p than without pollution."""
    return [Part(printed.METRICS[metric], change(study, method, metric)) for metric in metrics]


def falls(study: str, methods: Iterable[str], metrics: Iterable[str] = METRICS) -> list[Part]:
    """Methods are worse at the highest p than without pollution."""
    return [
        Part(f"{printed.METRICS[metric]} of {method}", change(study, method, metric), Below(), method)
        for method, metric in product(methods, metrics)
    ]


def every_step(study: str, method: str, metrics: Iterable[str] = METRICS, *, down: bool = False) -> list[Part]:
    """Figures rise, or fall, from every p to the next."""
    return [
        Part(
            f"{share(a)} to {share(b)} in {printed.METRICS[metric]}",
            change(study, method, metric, a, b),
            Below() if down else ABOVE,
            printed.METRICS[metric],
        )
        for metric, (a, b) in product(metrics, pairwise(POLLUTIONS))
    ]


def first_step_largest(study: str, method: str) -> list[Part]:
    """Figures gain more from the first p to the second than in any other step."""
    first, *others = pairwise(POLLUTIONS)
    return [
        Part(
            f"{title}, more than from {share(a)} to {share(b)}",
            change(study, method, metric, *first) - change(study, method, metric, a, b),
            group=title,
        )
        for (metric, title), (a, b) in product(printed.METRICS.items(), others)
    ]


def otherwise(study: str, choice: str, method: str, metric: str, p: float, rule: Above) -> Part:
    """What a choice of choices.py, made the other way, changes of a method as strays trains it."""
    contrast = figure(study, metric, method, p, choice) - figure(study, metric, method, p)
    return Part(f"{printed.METRICS[metric]} on {CORPORA[study]} at {share(p)}", contrast, rule, CORPORA[study])


def settings_tuned(study: str, network: str, p: float | None) -> Contrast:
    """What a network gains in AUC from the settings that were tuned here, without pollution."""
    return figure(study, "auc", TUNED[network], p) - figure(study, "auc", AS_PRINTED[network], p)


def beats_classifiers(method: str, test: str) -> list[Part]:
    """A method is above each classifier by AUC, on anomalies of the kind it knows ("seen") or of others ("unseen")."""
    return [
        Part(_against(study, p, other), _duel(study, method, test, other, p), group=CORPORA[study])
        for study, p, other in product(_tested(test), POLLUTIONS[1:], CLASSIFIERS)
    ]


def more_where_unseen(method: str) -> list[Part]:
    """The lead over each classifier is larger on kinds never seen than on the known one."""
    return [
        Part(
            _against(study, p, other),
            _duel(study, method, "unseen", other, p) - _duel(study, method, "seen", other, p),
            group=CORPORA[study],
        )
        for study, p, other in product(_tested("unseen"), POLLUTIONS[1:], CLASSIFIERS)
    ]


def _tested(test: str) -> list[str]:
    return [*SEVERAL_KINDS] if test == "unseen" else ["5.1", *SEVERAL_KINDS]


def _duel(study: str, method: str, test: str, other: str, p: float) -> Contrast:
    corpus = f"unseen-{study}"
    return figure(corpus, f"{test}.auc", method, p) - figure(corpus, f"{test}.auc", other, p)


def _against(study: str, p: float, other: str) -> str:
    return f"{CORPORA[study]} against {CLASSIFIERS[other].title} at {share(p)}"
