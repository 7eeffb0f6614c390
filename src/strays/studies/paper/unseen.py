"""What the paper leaves to future work: AI-SVDD against plain classifiers, on kinds of anomalies seen and never seen.

One kind of anomaly is known in training. The same fitted method is then tested on anomalies of that kind, and on
anomalies of all the other kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from strays.studies.corpora import CORPORA, LabelledCorpus
from strays.studies.paper.methods import CLASSIFIERS, METHODS, fit_and_score
from strays.studies.paper.study import Cell, Compute, Setting, Study, check_same_texts, measure, without_curve
from strays.studies.protocol import POLLUTIONS, Scenario, pollute
from strays.studies.rows import Row

METHODS_COMPARED = {name: METHODS[name] for name in ("centroid", "ai-svdd-paper", "ai-svdd")} | CLASSIFIERS


class Unseen(Study):
    """One known kind after the other on one corpus.

    >>> Unseen("5.2-ag").name
    'unseen-5.2-ag'
    """

    def __init__(self, corpus: str) -> None:
        super().__init__(
            f"unseen-{corpus}",
            f"future work: against classifiers on {corpus}, one kind of anomaly known",
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

    def prepare(self, setting: Setting) -> Callable[[], Compute]:
        """Draw all scenarios; the work they share is encoding the rows they use."""
        corpus = setting.corpus(self.corpus)
        draws = dict.fromkeys((cell["known"], cell["pollution"], cell["seed"]) for cell in self.cells(setting))
        scenarios = {draw: _tests(corpus, *draw) for draw in draws}
        digests = {
            draw: "-".join(scenario.digest(corpus) for scenario in tests.values()) for draw, tests in scenarios.items()
        }
        check_same_texts(self.file(setting), ("known", "pollution", "seed"), digests)

        def start() -> Compute:
            used = set().union(*(scenario.rows for tests in scenarios.values() for scenario in tests.values()))
            X = setting.embeddings(corpus, used)

            def compute(cell: Cell) -> Row:
                draw = cell["known"], cell["pollution"], cell["seed"]
                tests = scenarios[draw]
                train = tests["seen"].train
                method = METHODS_COMPARED[cell["method"]]
                scores = fit_and_score(
                    method.make(self.corpus, cell["seed"]),
                    X[train.rows],
                    train.y if method.sees_labels else None,
                    *(X[scenario.test.rows] for scenario in tests.values()),
                )
                measured = {
                    name: without_curve(measure(scenario.test.y, test_scores))
                    for (name, scenario), test_scores in zip(tests.items(), scores, strict=True)
                }
                return {"scenario": digests[draw], **measured}

            return compute

        return start


def _tests(corpus: LabelledCorpus, kind: str, pollution: float, seed: int) -> dict[str, Scenario]:
    """Scenarios of one training set: tested on the known kind, and on the others where there are any."""
    others = tuple(name for name in corpus.spec.anomalies if name != kind)
    known = (kind,) if others else None  # a corpus with one kind needs its spare rows too
    tests = {"seen": pollute(corpus, pollution, seed, known=known, tested=(kind,))}
    if others:
        tests["unseen"] = pollute(corpus, pollution, seed, known=known, tested=others)
    return tests
