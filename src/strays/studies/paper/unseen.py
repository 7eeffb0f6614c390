"""What the paper leaves to future work: AI-SVDD against plain classifiers, on kinds of anomalies seen and never seen.

One kind of anomaly is known in training. The same fitted method is then tested on anomalies of that kind, and on
anomalies of all the other kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from strays.studies.corpora import CORPORA, LabelledCorpus
from strays.studies.paper.methods import CLASSIFIERS, METHODS
from strays.studies.paper.study import Cell, Compute, Setting, Study, check_same_texts, without_curve
from strays.studies.paper.trained import check_same_settings, maker, runnable, settings_of, train_and_test
from strays.studies.paper.tuning import tuned_settings
from strays.studies.protocol import POLLUTIONS, Scenario, pollute
from strays.studies.rows import Row

METHODS_COMPARED = {
    name: METHODS[name] for name in ("centroid", "ai-svdd-tuned", "ai-svdd-paper", "ai-svdd")
} | CLASSIFIERS


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
        methods = runnable(METHODS_COMPARED, tuned_settings(setting, self.corpus))
        return [
            {
                "study": self.name,
                "encoder": setting.encoder_name,
                "method": method,
                "known": kind,
                "pollution": p,
                "seed": seed,
            }
            for seed, kind, p, method in product(range(setting.runs), kinds, POLLUTIONS[1:], methods)
        ]

    def prepare(self, setting: Setting) -> Callable[[], Compute]:
        """Draw all scenarios; the work they share is encoding the rows they use."""
        corpus = setting.corpus(self.corpus)
        draws = product(CORPORA[self.corpus].anomalies, POLLUTIONS[1:], range(setting.runs))
        scenarios = {draw: _tests(corpus, *draw) for draw in draws}
        digests = {
            draw: "-".join(scenario.digest(corpus) for scenario in tests.values()) for draw, tests in scenarios.items()
        }
        check_same_texts(self.file(setting), ("known", "pollution", "seed"), digests)
        check_same_settings(self.file(setting), setting, METHODS_COMPARED, tuned_settings(setting, self.corpus))

        def start() -> Compute:
            used = set().union(*(scenario.rows for tests in scenarios.values() for scenario in tests.values()))
            X = setting.embeddings(corpus, used)
            tuned = tuned_settings(setting, self.corpus)

            def compute(cell: Cell) -> Row:
                draw = cell["known"], cell["pollution"], cell["seed"]
                tests = scenarios[draw]
                method = METHODS_COMPARED[cell["method"]]
                measured = train_and_test(
                    maker(method, self.corpus, tuned),
                    X,
                    tests["seen"].train,
                    [scenario.test for scenario in tests.values()],
                    sees_labels=method.sees_labels,
                    seed=cell["seed"],
                    trainings=setting.trainings if method.random else 1,
                )
                found = dict(zip(tests, map(without_curve, measured), strict=True))
                return {"scenario": digests[draw], **settings_of(method, tuned), **found}

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
