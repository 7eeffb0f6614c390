"""What the paper leaves to future work: AI-SVDD against plain classifiers, on kinds of anomalies seen and never seen.

One kind of anomaly is known in training. The same fitted method is then tested on anomalies of that kind, and on
anomalies of all the other kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from strays.evaluation.corpora import CORPORA
from strays.evaluation.paper.methods import CLASSIFIERS, METHODS, fit_and_score
from strays.evaluation.paper.rows import Row, RowFile
from strays.evaluation.paper.study import Cell, Setting, Study, check_same_texts, measure
from strays.evaluation.protocol import POLLUTIONS, Scenario, pollute

METHODS_COMPARED = {name: METHODS[name] for name in ("centroid", "ai-svdd-paper", "ai-svdd")} | CLASSIFIERS


class Unseen(Study):
    """One known kind after the other on one corpus."""

    def __init__(self, corpus: str) -> None:
        super().__init__(
            f"unseen-{corpus}",
            f"future work: against classifiers on {corpus}, test anomalies of the known kind and of others",
            corpora=(corpus,),
        )
        self.corpus = corpus

    def cells(self, setting: Setting) -> list[Cell]:
        """Seed by seed; without known anomalies there is nothing to compare."""
        kinds = CORPORA[self.corpus].anomalies
        return [
            {
                "study": self.name,
                "encoder": setting.encoder_name,
                "method": method,
                "known": kind,
                "pollution": p,
                "seed": seed,
            }
            for seed, kind, p, method in product(range(setting.runs), kinds, POLLUTIONS[1:], METHODS_COMPARED)
        ]

    def prepare(self, setting: Setting, missing: list[Cell]) -> Callable[[Cell], Row]:
        """Draw all scenarios and encode the rows they use."""
        corpus = setting.corpus(self.corpus)
        kinds = corpus.spec.anomalies
        scenarios: dict[tuple[Any, ...], tuple[Scenario, Scenario | None]] = {}
        for kind, p, seed in {(cell["known"], cell["pollution"], cell["seed"]) for cell in self.cells(setting)}:
            others = tuple(name for name in kinds if name != kind)
            known = (kind,) if others else None  # a corpus with one kind needs its spare rows too
            scenarios[kind, p, seed] = (
                pollute(corpus, p, seed, known=known, tested=(kind,)),
                pollute(corpus, p, seed, known=known, tested=others) if others else None,
            )
        digests = {draw: seen.digest(corpus) for draw, (seen, _) in scenarios.items()}
        path = setting.out / f"{self.name}.jsonl"
        check_same_texts(RowFile(path).read(), digests, ("known", "pollution", "seed"), path)
        X = setting.embeddings(corpus, set().union(*(s.rows for pair in scenarios.values() for s in pair if s)))

        def compute(cell: Cell) -> Row:
            draw = cell["known"], cell["pollution"], cell["seed"]
            tests = {name: s for name, s in zip(("seen", "unseen"), scenarios[draw], strict=True) if s}
            train = tests["seen"].train
            method = METHODS_COMPARED[cell["method"]]
            y = train.y if method.told else None
            scorer = method.make(self.corpus, cell["seed"])
            scores = fit_and_score(scorer, X[train.rows], y, *(X[s.test.rows] for s in tests.values()))
            row: Row = {"scenario": digests[draw]}
            for (name, scenario), test_scores in zip(tests.items(), scores, strict=True):
                row[name] = measure(scenario.test.y, test_scores)
                del row[name]["roc_fpr"]
            return row

        return compute
