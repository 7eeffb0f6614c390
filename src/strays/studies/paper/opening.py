"""The few sentences of the paper's page to read first: what holds of the paper, what does not, and how much of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import fmean

from strays.studies.paper.case_statements import OF_CASES
from strays.studies.paper.evidence import AS_PRINTED, TUNED, Rows, figure
from strays.studies.paper.judgement import Judged, Readings, printed_figures
from strays.studies.paper.kinds import CORPORA, best, falls, highest, lead, rises, settings_tuned
from strays.studies.paper.parts import Finding, Part, Statement
from strays.studies.paper.rules import FAILS, HOLDS, UNCLEAR, AtLeast, Equal
from strays.studies.paper.statements import AI, BLIND, DISCUSSION, OC, RANK, STATEMENTS
from strays.studies.paper.summary import RowsByStudy
from strays.studies.protocol import POLLUTIONS

FIGURES = "printed figures or margins"


def in_short(every: RowsByStudy) -> list[str]:
    """What to read first, one thing a line."""
    readings = Readings(every)
    with_ours = Rows(every, TUNED | {AI: "ai-svdd"})
    found = [judged for statement in STATEMENTS if (judged := readings.judge(statement))]
    if not found:
        return []
    lines = {
        "Known anomalies": _with_pollution(readings, with_ours),
        "AI-SVDD's lead": _leads(readings),
        "Tuning without anomalies": _tuned_without(readings),
        "What does not hold": _contrary(found),
        "Against classifiers": _duels(readings, with_ours),
        "Against learning nothing": _near_the_mean(readings),
        "How many statements hold": _counts(found, readings),
    }
    return [f"**{name}.** {line}" for name, line in lines.items() if line]


def _counts(found: list[Judged], readings: Readings) -> str:
    def counted(judged: Iterable[Judged | None]) -> str:
        count = Counter(each.verdict for each in judged if each)
        return f"{count[HOLDS]} hold in every part, {count[FAILS]} do not, {count[UNCLEAR]} unclear"

    kinds: dict[str, list[Judged]] = {}
    for judged in found:
        kinds.setdefault(_kind(judged.statement), []).append(judged)
    fallen_back, of_networks = sum(each.fallen_back for each in found), sum(each.of_networks for each in found)
    some = sum(each.fallen_back > 0 for each in found)
    settings, as_printed = "", ""
    if fallen_back < of_networks:
        but = f" ({some} of them rest on the settings it prints, for want of tuned rows)" if some else ""
        settings = f", with both networks tuned by the paper's rule{but}"
        again = counted(readings.judge_as_printed(each.statement) for each in found)
        as_printed = f" With the settings that it prints, of all {len(found)}: {again}."
    elif of_networks:
        settings = ", with the settings that the paper prints"
    words = [f"{len(judged)} {kind} ({counted(judged)})" for kind, judged in kinds.items()]
    return f"Of {len(found)} statements that these rows can test{settings}: {_and(words)}.{as_printed}"


def _kind(statement: Statement) -> str:
    """What a statement is about, in words."""
    if statement in OF_CASES:
        return "proved, or shown on points in the plane"
    figures = any(isinstance(part, Part) and isinstance(part.rule, Equal | AtLeast) for part in statement.parts)
    return FIGURES if figures else "about who is above whom, and what p does"


def _with_pollution(readings: Readings, with_ours: Rows) -> str:
    def count(parts: Iterable[Part]) -> Counter[str]:
        judged = readings.judge(Statement("", "", tuple(parts)))
        return Counter(finding.verdict for finding in judged.findings if finding) if judged else Counter()

    blind = count(part for study in CORPORA for part in falls(study, BLIND, ["auc"]))
    taught = count(part for study in CORPORA for part in rises(study, AI, ["auc"]))
    if not blind or not taught:
        return ""
    untuned = [
        name
        for study, name in CORPORA.items()
        if (judged := readings.judge(Statement("", "", tuple(rises(study, AI, ["auc"]))))) and judged.fallen_back
    ]
    settings = f" (On {_and(untuned)} both networks have the paper's numbers.)" if untuned else ""

    def by_settings(source: Rows) -> str:
        found = [part.judge(source) for study in CORPORA for part in rises(study, AI, ["auc"])]
        count = Counter(finding.verdict for finding in found if finding)
        return f"it rises on {count[HOLDS] or 'none'} and falls on {count[FAILS] or 'none'}"

    return (
        f"From p = 0 to 8 %, the AUC of one-class methods falls clearly in {blind[HOLDS]} of {blind.total()} "
        f"combinations of method and corpus and rises clearly in {blind[FAILS] or 'none'}; that of AI-SVDD, which sees "
        f"the labels, rises clearly on {taught[HOLDS]} of {taught.total()} corpora and falls clearly on "
        f"{taught[FAILS] or 'none'}.{settings} With the numbers that the paper prints "
        f"{by_settings(readings.as_printed)}; with strays' settings {by_settings(with_ours)}."
    )


def _leads(readings: Readings) -> str:
    leads = []
    best_on: dict[str, list[str]] = {HOLDS: [], FAILS: [], UNCLEAR: []}
    for study, name in CORPORA.items():
        p = highest(study)
        over = Statement("", "", (lead(study, AI, OC, "auc", p),))
        if judged := readings.judge(over):
            settings = "; the paper's numbers" if judged.fallen_back else ""
            leads.append(f"{judged.figures} on {name} (printed {printed_figures(over)}{settings})")
        if judged := readings.judge(Statement("", "", tuple(best(study, AI, [p])))):
            best_on[judged.verdict].append(name)
    if not leads:
        return ""
    places = [_and(best_on[HOLDS]) if best_on[HOLDS] else "no corpus"]
    places += [f"clearly not on {_and(best_on[FAILS])}"] if best_on[FAILS] else []
    places += [f"unclear on {_and(best_on[UNCLEAR])}"] if best_on[UNCLEAR] else []
    return (
        "At the highest p, the lead of AI-SVDD over OC-SVDD in points of AUC, with both tuned here unless said, is "
        f"{_and(leads)}. It is clearly above every other method of the paper, by MAP, Recall@5 and AUC, on "
        f"{'; '.join(places)}."
    )


def _tuned_without(readings: Readings) -> str:
    """What the rule of tuning, which sees no anomalies in training, is worth to AI-SVDD where it has some."""
    gains: dict[str, list[str]] = {HOLDS: [], FAILS: [], UNCLEAR: []}
    for study, name in CORPORA.items():
        p = highest(study)
        if gain := Part("", settings_tuned(study, AI, p)).judge(readings.tuned):
            over_tuned = Part("", figure(study, "auc", AS_PRINTED[AI], p) - figure(study, "auc", TUNED[OC], p))
            leads = over_tuned.judge(readings.tuned) if gain.verdict == FAILS else None
            against = f"; its lead over tuned OC-SVDD with the printed ones {leads.text}" if leads else ""
            gains[gain.verdict].append(name if gain.verdict == UNCLEAR else f"{name} ({gain.text}{against})")
    if not any(gains.values()):
        return ""
    places = [f"clearly {how} on {_and(gains[of])}" for of, how in ((HOLDS, "higher"), (FAILS, "lower")) if gains[of]]
    places += [f"not clearly different on {_and(gains[UNCLEAR])}"] if gains[UNCLEAR] else []
    return (
        "The paper's rule chooses settings on training sets without anomalies. At the highest p, the AUC that these "
        f"settings give AI-SVDD is, beside that with the printed ones, {'; '.join(places)}."
    )


def _near_the_mean(readings: Readings) -> str:
    """OC-SVDD, tuned, less the simplest of the methods: of all p, the largest difference of mean AUC."""
    largest = []
    for study, name in CORPORA.items():
        pollutions = POLLUTIONS if highest(study) else (None,)
        leads = [lead(study, OC, RANK, "auc", p).contrast.samples(readings.tuned) for p in pollutions]
        if means := [fmean(samples) for samples in leads if samples]:
            largest.append(f"{100 * max(means, key=abs):+.1f} on {name}")
    if not largest:
        return ""
    return (
        "Tuned OC-SVDD less the distance to the mean embedding (BERT-rank), which learns nothing, in points of mean "
        f"AUC at the p where they differ most: {_and(largest)}."
    )


def _contrary(found: list[Judged]) -> str:
    """What fails, but for printed figures, which a table has; classifiers have a line of their own."""
    by_place: dict[str, list[str]] = {}
    for judged in found:
        if judged.verdict == FAILS and judged.statement not in DISCUSSION and _kind(judged.statement) != FIGURES:
            by_place.setdefault(judged.statement.place, []).append(judged.statement.words)
    places = [f"{place}: {'; '.join(words)}" for place, words in by_place.items()]
    return f"By section: {'. '.join(places)}." if places else ""


def _duels(readings: Readings, with_ours: Rows) -> str:
    """How often it is clearly better or worse than a classifier, as the paper has it and with strays' settings."""
    words = []
    for statement, kind in zip(DISCUSSION, ("a kind known in training", "kinds never seen"), strict=False):
        if judged := readings.judge(statement):
            settings = "with the paper's numbers" if judged.fallen_back else "tuned"
            ours = [part.judge(with_ours) for part in statement.parts]
            words.append(
                f"on anomalies of {kind} it is, {settings}, {_better_and_worse(judged.findings)}, and with strays' "
                f"settings {_better_and_worse(ours)}"
            )
    opening = (
        "AI-SVDD against plain classifiers, which the paper leaves to future work, in combinations of corpus, p and "
        "classifier, by AUC"
    )
    return f"{opening}: {'; '.join(words)}." if words else ""


def _better_and_worse(findings: Iterable[Finding | None]) -> str:
    count = Counter(finding.verdict for finding in findings if finding)
    return (
        f"clearly better in {count[HOLDS] or 'none'} of {count.total()} and clearly worse in {count[FAILS] or 'none'}"
    )


def _and(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
