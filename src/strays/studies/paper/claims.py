"""Which of the paper's statements hold in the rows: a table of verdicts, and the few sentences to read first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import fmean

from strays.studies.paper.evidence import TUNED, Rows, encoders_of
from strays.studies.paper.judgement import Judged, Readings, printed_figures
from strays.studies.paper.kinds import CORPORA, best, falls, highest, lead, rises
from strays.studies.paper.parts import Finding, Part, Statement
from strays.studies.paper.rules import FAILS, HOLDS, UNCLEAR
from strays.studies.paper.statements import AI, BLIND, DISCUSSION, OC, RANK, STATEMENTS
from strays.studies.paper.summary import ResultTable, RowsByStudy, first_encoders
from strays.studies.protocol import POLLUTIONS


def verdicts(every: RowsByStudy) -> ResultTable:
    """Every statement that these rows can test, one a line."""
    first = Readings(every)
    others = {encoder: Readings(every, encoder) for encoder in sorted(set().union(*map(encoders_of, every.values())))}
    lines = []
    for statement in STATEMENTS:
        if judged := first.judge(statement):
            as_printed = first.judge_as_printed(statement) if statement.has_networks else None
            elsewhere = [
                f"{encoder}: {found.in_words}"
                for encoder, readings in others.items()
                if encoder not in first.tuned.encoders(statement.studies)
                and (found := readings.judge(statement))
                and all(found.findings)
            ]
            lines.append(
                [
                    statement.place,
                    statement.words,
                    judged.in_words,
                    judged.figures,
                    printed_figures(statement),
                    as_printed.verdict if as_printed else "",
                    "; ".join(elsewhere),
                ]
            )
    header = ["where", "the paper says", "verdict", "figures", "printed", "with the paper's numbers", "other encoders"]
    title = f"The paper's statements, with 95 % intervals over the runs; {first_encoders(every)}"
    return ResultTable(title, header, lines)


def in_short(every: RowsByStudy) -> list[str]:
    """What to read first, one thing a line."""
    readings = Readings(every)
    found = [judged for statement in STATEMENTS if (judged := readings.judge(statement))]
    if not found:
        return []
    lines = (
        _counts(found, readings),
        _with_pollution(readings),
        _leads(readings),
        _near_the_mean(readings),
        _contrary(found),
        _duels(every, readings),
    )
    return [line for line in lines if line]


def _counts(found: list[Judged], readings: Readings) -> str:
    def counted(judged: Iterable[Judged | None]) -> str:
        count = Counter(each.verdict for each in judged if each)
        return f"{count[HOLDS]} hold in every part, {count[FAILS]} do not and {count[UNCLEAR]} are unclear"

    words = f"Of {len(found)} statements of the paper that these rows can test, {counted(found)}"
    fallen_back, of_networks = sum(each.fallen_back for each in found), sum(each.of_networks for each in found)
    if fallen_back == of_networks:
        return words + (", with the settings that the paper prints." if of_networks else ".")
    some = sum(each.fallen_back > 0 for each in found)
    but = f" ({some} of them rest on the settings it prints, for want of tuned rows)" if some else ""
    as_printed = counted(readings.judge_as_printed(each.statement) for each in found)
    return (
        f"{words}, with both networks tuned by the paper's rule{but}. With the settings that it prints, {as_printed}."
    )


def _with_pollution(readings: Readings) -> str:
    def count(parts: Iterable[Part]) -> Counter[str]:
        judged = readings.judge(Statement("", "", tuple(parts)))
        return Counter(finding.verdict for finding in judged.findings if finding) if judged else Counter()

    blind = count(part for study in CORPORA for part in falls(study, BLIND, ["auc"]))
    taught = count(part for study in CORPORA for part in rises(study, AI, ["auc"]))
    if not blind or not taught:
        return ""
    return (
        f"From p = 0 to 8 %, the AUC of one-class methods falls clearly in {blind[HOLDS]} of {blind.total()} "
        f"combinations of method and corpus and rises clearly in {blind[FAILS] or 'none'}; that of AI-SVDD, which sees "
        f"the labels, rises clearly on {taught[HOLDS]} of {taught.total()} corpora and falls clearly on "
        f"{taught[FAILS] or 'none'}."
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
        f"At the highest p, the lead of AI-SVDD over OC-SVDD in points of AUC is {_and(leads)}. It is clearly above "
        f"every other method of the paper, by MAP, Recall@5 and AUC, on {'; '.join(places)}."
    )


def _near_the_mean(readings: Readings) -> str:
    """How far OC-SVDD, tuned, is from the simplest of the methods: over all p, the largest difference of mean AUC."""
    largest = []
    for study, name in CORPORA.items():
        pollutions = POLLUTIONS if highest(study) else (None,)
        leads = [lead(study, OC, RANK, "auc", p).contrast.samples(readings.tuned) for p in pollutions]
        if means := [abs(fmean(samples)) for samples in leads if samples]:
            largest.append(f"{100 * max(means):.1f} points on {name}")
    if not largest:
        return ""
    return (
        "Tuned OC-SVDD beside the distance to the mean embedding (BERT-rank), which learns nothing: at any p, its mean "
        f"AUC differs by at most {_and(largest)}."
    )


def _contrary(found: list[Judged]) -> str:
    by_place: dict[str, list[str]] = {}
    for judged in found:
        if judged.verdict == FAILS and judged.statement not in DISCUSSION:
            by_place.setdefault(judged.statement.place, []).append(judged.statement.words)
    places = [f"\n  - {place}: {'; '.join(words)}." for place, words in by_place.items()]
    return f"These statements do not hold here, by the section they are from:{''.join(places)}" if places else ""


def _duels(every: RowsByStudy, readings: Readings) -> str:
    """How often it is clearly better or worse than a classifier, as the paper has it and with strays' settings."""
    with_ours = Rows(every, TUNED | {AI: "ai-svdd"})
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
