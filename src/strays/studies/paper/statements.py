"""What the paper says, as far as rows can test it: as data.

A statement is given in short words, with its place in the paper, and in parts that the rows answer. Methods have the
paper's names here; claims.py decides which settings stand for them.
"""

from __future__ import annotations

from itertools import product

from strays.studies.paper import printed
from strays.studies.paper.case_statements import OF_CASES
from strays.studies.paper.evidence import NETWORKS, Contrast, figure
from strays.studies.paper.kinds import (
    CORPORA,
    HIGHEST,
    METRICS,
    SEVERAL_KINDS,
    beats_classifiers,
    best,
    best_at_highest,
    change,
    every_step,
    falls,
    first_step_largest,
    lead,
    lowest,
    more_where_unseen,
    none_best,
    otherwise,
    rises,
    settings_tuned,
)
from strays.studies.paper.parts import Part, said
from strays.studies.paper.rules import (
    Above,
    AtLeast,
    Below,
    Equal,
    NoGain,
    Within,
)
from strays.studies.paper.summary import share
from strays.studies.protocol import POLLUTIONS

AI, OC, RANK, LOF = "AI-SVDD", "OC-SVDD", "BERT-rank", "LOF"
TRADITIONAL = ("OC-SVM", "ISF", LOF)
BLIND = (*TRADITIONAL, RANK, OC)

# "Does not change much", "competitive" and "not needed": by less than this. The paper calls a change of 0.7 points of
# AUC not much; this is twice as much, rounded up to half a point.
MARGIN = 0.015


def _false_alarms(method: str) -> Contrast:
    return figure("5.1", "fpr_at_80_tpr", method, HIGHEST)


def _overfit(method: str, p: float) -> Contrast:
    """Test normals are so much further from the centre than training normals."""
    return figure("5.1", "test_to_train", method, p)


def _margins(method: str, other: str, margins: tuple[float, ...]) -> list[Part]:
    """Leads on the medical texts, at least as large as printed; the text rounds, so half a digit less will do."""
    return [
        lead("5.3", method, other, metric, None, AtLeast(least)) for metric, least in zip(METRICS, margins, strict=True)
    ]


GENERAL = [
    said("abstract, 6", "AI-SVDD outperforms all others, at the highest p of every corpus", best_at_highest(AI)),
    said(
        "4",
        "AI-SVDD needs no pretraining",
        (
            otherwise(study, "pretraining", AI, "auc", p, NoGain(MARGIN))
            for study in ("5.1", *SEVERAL_KINDS)
            for p in (0.0, HIGHEST)
        ),
    ),
]

TEXT_QUALITY = [
    said(
        "5.1",
        f"the AUC of BERT-rank does not change much with p (by less than {100 * MARGIN:g} points)",
        Part("AUC", change("5.1", RANK, "auc"), Within(MARGIN)),
    ),
    said("5.1", "BERT-rank falls slightly with p, by every metric", falls("5.1", [RANK])),
    said("5.1", "OC-SVDD falls with p, by every metric", falls("5.1", [OC])),
    said("5.1", "OC-SVDD falls gradually: its AUC at every step of p", every_step("5.1", OC, ["auc"], down=True)),
    said("5.1", "AI-SVDD rises with p, by every metric", rises("5.1", AI)),
    said("5.1", "AI-SVDD rises at every step of p", every_step("5.1", AI)),
    said("5.1", "AI-SVDD rises most from p = 0 to 1 %", first_step_largest("5.1", AI)),
    said(
        "5.1",
        "BERT-rank is in general below OC-SVDD and AI-SVDD (tested at every p)",
        (
            Part(f"{part.label} of {above}", part.contrast, group=above)
            for above, metric, p in product((OC, AI), METRICS, POLLUTIONS)
            if (part := lead("5.1", above, RANK, metric, p))
        ),
    ),
    said("5.1", "OC-SVDD is best without pollution", best("5.1", OC, [0.0])),
    said("5.1", "AI-SVDD is best at p = 8 %", best("5.1", AI, [HIGHEST])),
    said(
        "5.1",
        "AI-SVDD at p = 8 % has MAP 49.1, Recall@5 50.0, AUC 92.2",
        (
            Part(title, figure("5.1", metric, AI, HIGHEST), Equal(value))
            for (metric, title), value in zip(printed.METRICS.items(), (0.491, 0.500, 0.922), strict=True)
        ),
    ),
    # The text rounds: a lead from 2.5 points on is one of 3.
    said(
        "5.1",
        "AI-SVDD is 3 points of AUC above OC-SVDD at p = 8 %",
        lead("5.1", AI, OC, "auc", HIGHEST, AtLeast(0.025)),
    ),
    said(
        "5.1",
        "AI-SVDD is 6 points of AUC above BERT-rank at p = 8 %",
        lead("5.1", AI, RANK, "auc", HIGHEST, AtLeast(0.055)),
    ),
    said(
        "5.1",
        "at 80 % TPR and p = 8 %, AI-SVDD has a lower FPR than OC-SVDD and BERT-rank",
        (Part(f"against {other}", _false_alarms(AI) - _false_alarms(other), Below()) for other in (OC, RANK)),
    ),
    said(
        "5.1",
        "that FPR is 6 % with AI-SVDD, 19 % with OC-SVDD, 24 % with BERT-rank",
        (
            Part(method, _false_alarms(method), Equal(told / 100))
            for method, told in sorted(printed.FPR_AT_80_TPR["5.1"].items(), key=lambda item: item[1])
        ),
    ),
    said(
        "5.1",
        "without pollution Eq. 4 (AI-SVDD) is clearly below OC-SVDD",
        (lead("5.1", OC, AI, metric, 0.0) for metric in METRICS),
    ),
    said(
        "5.1",
        "with a random centre OC-SVDD is much worse",
        (otherwise("5.1", "oc-center", OC, metric, 0.0, Below()) for metric in METRICS),
    ),
    said(
        "5.1",
        "without anomalies AI-SVDD overfits",
        Part("test / training distance", _overfit(AI, 0.0), Above(1.0)),
        Part("more than at p = 8 %", _overfit(AI, 0.0) - _overfit(AI, HIGHEST)),
        Part("more than OC-SVDD", _overfit(AI, 0.0) - _overfit(OC, 0.0)),
        Part("AUC of 10 epochs less 3", otherwise("5.1", "epochs", AI, "auc", 0.0, Below()).contrast, Below()),
    ),
]

UNKNOWN_CLASS = [
    *(
        statement
        for study, name in SEVERAL_KINDS.items()
        for statement in (
            said("5.2", f"on {name}, all one-class methods fall with p, by every metric", falls(study, BLIND)),
            said("5.2", f"on {name}, AI-SVDD rises with p, by every metric", rises(study, AI)),
        )
    ),
    said("5.2", "on AG, LOF is best below p = 8 %", best("5.2-ag", LOF, POLLUTIONS[:-1])),
    said("5.2", "on AG, AI-SVDD is best at p = 8 %", best("5.2-ag", AI, [HIGHEST])),
    said("5.2", "on Yelp, no method is best throughout below p = 4 %", none_best("5.2-yelp", POLLUTIONS[:3])),
    said("5.2", "on Yelp, AI-SVDD is best from p = 4 % on", best("5.2-yelp", AI, POLLUTIONS[3:])),
    said(
        "5.2", "on RCT, AI-SVDD is best by MAP and AUC where p > 0", best("5.2-rct", AI, POLLUTIONS[1:], ("map", "auc"))
    ),
    said(
        "5.2",
        "on RCT, AI-SVDD is competitive with LOF by Recall@5 where p > 0",
        (
            Part(f"lead of LOF at {share(p)}", lead("5.2-rct", LOF, AI, "recall_at_5", p).contrast, NoGain(MARGIN))
            for p in POLLUTIONS[1:]
        ),
    ),
]

MEDICAL = [
    said(
        "5.3",
        "OC-SVM, ISF and LOF are poor: below both networks, by every metric",
        (
            Part(
                f"{title} of {poor} and {above}",
                figure("5.3", metric, poor) - figure("5.3", metric, above),
                Below(),
                poor,
            )
            for poor, above, (metric, title) in product(TRADITIONAL, (OC, AI), printed.METRICS.items())
        ),
    ),
    said(
        "5.3",
        "of OC-SVM, ISF and LOF, OC-SVM is the poorest",
        (
            Part(f"{title} and {other}", figure("5.3", metric, "OC-SVM") - figure("5.3", metric, other), Below(), other)
            for other, (metric, title) in product(TRADITIONAL[1:], printed.METRICS.items())
        ),
    ),
    said(
        "5.3",
        "BERT-rank is above OC-SVM, ISF and LOF",
        (lead("5.3", RANK, other, metric, None) for other in TRADITIONAL for metric in METRICS),
    ),
    said(
        "5.3",
        "OC-SVDD is above BERT-rank by 1 point of MAP, 5 of Recall@5, 1 of AUC",
        _margins(OC, RANK, (0.005, 0.045, 0.005)),
    ),
    said("5.3", "AI-SVDD is best by every metric", best("5.3", AI, [None])),
    said(
        "5.3",
        "AI-SVDD is above OC-SVDD by 16 points of MAP, 14 of Recall@5, 2.4 of AUC",
        _margins(AI, OC, (0.155, 0.135, 0.0235)),
    ),
]

DISCUSSION = [
    said("5.4", "AI-SVDD beats a classifier on anomalies of a kind known in training", beats_classifiers(AI, "seen")),
    said("5.4", "AI-SVDD beats a classifier on anomalies of kinds never seen", beats_classifiers(AI, "unseen")),
    said("5.4", "its lead over a classifier is larger on kinds never seen", more_where_unseen(AI)),
]

APPENDIX = [
    said(
        "appendix",
        "the printed settings are the best of the grid: with our encoders, tuning gains nothing",
        (
            Part(f"AUC of {network} on {name}", settings_tuned(study, network, lowest(study)), NoGain(MARGIN), network)
            for network in NETWORKS
            for study, name in CORPORA.items()
        ),
    ),
]

STATEMENTS = (*GENERAL, *TEXT_QUALITY, *UNKNOWN_CLASS, *MEDICAL, *DISCUSSION, *APPENDIX, *OF_CASES)
