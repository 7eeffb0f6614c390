"""The paper's tables: every method on one corpus, over the pollution of its training set or over random splits."""

from __future__ import annotations

from collections.abc import Callable

from strays.studies.corpora import LabelledCorpus
from strays.studies.paper.methods import METHODS
from strays.studies.paper.study import Cell, Compute, Setting, Study, check_same_texts
from strays.studies.paper.trained import check_same_settings, maker, runnable, settings_of, train_and_test
from strays.studies.paper.tuning import tuned_settings
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
        """Seed by seed, so that time left is told well and a first table is there early.

        Tuned methods take part where the rows of the tuning are there.
        """
        methods = runnable(METHODS, tuned_settings(setting, self.name))
        return [
            {"study": self.name, "encoder": setting.encoder_name, "method": method, "pollution": p, "seed": seed}
            for seed in range(setting.runs)
            for p in self.pollutions
            for method in methods
        ]

    def scenario(self, corpus: LabelledCorpus, pollution: float | None, seed: int) -> Scenario:
        """The training and test rows of a cell; no pollution means random splits."""
        return split_at_random(corpus, seed) if pollution is None else pollute(corpus, pollution, seed)

    def prepare(self, setting: Setting) -> Callable[[], Compute]:
        """Draw all scenarios; the work they share is encoding the rows they use."""
        corpus = setting.corpus(self.name)
        scenarios = {(p, seed): self.scenario(corpus, p, seed) for p in self.pollutions for seed in range(setting.runs)}
        digests = {draw: scenario.digest(corpus) for draw, scenario in scenarios.items()}
        check_same_texts(self.file(setting), ("pollution", "seed"), digests)
        check_same_settings(self.file(setting), setting, METHODS, tuned_settings(setting, self.name))

        def start() -> Compute:
            X = setting.embeddings(corpus, set().union(*(s.rows for s in scenarios.values())))
            tuned = tuned_settings(setting, self.name)

            def compute(cell: Cell) -> Row:
                draw = (cell["pollution"], cell["seed"])
                method = METHODS[cell["method"]]
                [measured] = train_and_test(
                    maker(method, self.name, tuned),
                    X,
                    scenarios[draw].train,
                    [scenarios[draw].test],
                    sees_labels=method.sees_labels,
                    seed=cell["seed"],
                    trainings=setting.trainings if method.random else 1,
                )
                return {"scenario": digests[draw], **settings_of(method, tuned), **measured}

            return compute

        return start
