"""The paper's tables: every method on one corpus, over the pollution of its training set or over random splits."""

from __future__ import annotations

from collections.abc import Callable

from strays.studies.corpora import LabelledCorpus
from strays.studies.paper.methods import METHODS, ScoringEstimator, fit_and_score
from strays.studies.paper.study import Cell, Compute, Setting, Study, check_same_texts, measure
from strays.studies.protocol import POLLUTIONS, Scenario, pollute, split_at_random
from strays.studies.rows import Row


class Comparison(Study):
    """All methods on the corpus of the same name.

    >>> Comparison("5.3", "random splits", pollutions=(None,)).corpora
    ('5.3',)
    """

    def __init__(self, name: str, title: str, pollutions: tuple[float | None, ...] = POLLUTIONS) -> None:
        super().__init__(name, title, corpora=(name,))
        self.pollutions = pollutions

    def cells(self, setting: Setting) -> list[Cell]:
        """Seed by seed, so that time left is told well and a first table is there early."""
        return [
            {"study": self.name, "encoder": setting.encoder_name, "method": method, "pollution": p, "seed": seed}
            for seed in range(setting.runs)
            for p in self.pollutions
            for method in METHODS
        ]

    def scenario(self, corpus: LabelledCorpus, pollution: float | None, seed: int) -> Scenario:
        """The training and test rows of a cell; no pollution means random splits."""
        return split_at_random(corpus, seed) if pollution is None else pollute(corpus, pollution, seed)

    def prepare(self, setting: Setting) -> Callable[[], Compute]:
        """Draw all scenarios; the work they share is encoding the rows they use."""
        corpus = setting.corpus(self.name)
        draws = {(cell["pollution"], cell["seed"]) for cell in self.cells(setting)}
        scenarios = {draw: self.scenario(corpus, *draw) for draw in draws}
        digests = {draw: scenario.digest(corpus) for draw, scenario in scenarios.items()}
        check_same_texts(self.file(setting), ("pollution", "seed"), digests)
        # Without pollution all seeds train on the same rows: what no seed changes is fitted once.
        unpolluted: dict[str, ScoringEstimator] = {}

        def start() -> Compute:
            X = setting.embeddings(corpus, set().union(*(s.rows for s in scenarios.values())))

            def compute(cell: Cell) -> Row:
                name, draw = cell["method"], (cell["pollution"], cell["seed"])
                train, test = scenarios[draw].train, scenarios[draw].test
                method = METHODS[name]
                if name in unpolluted and cell["pollution"] == 0:
                    scores = unpolluted[name].anomaly_score(X[test.rows])
                else:
                    estimator = method.make(self.name, cell["seed"])
                    y = train.y if method.sees_labels else None
                    [scores] = fit_and_score(estimator, X[train.rows], y, X[test.rows])
                    if cell["pollution"] == 0 and not method.random:
                        unpolluted[name] = estimator
                return {"scenario": digests[draw], **measure(test.y, scores)}

            return compute

        return start
