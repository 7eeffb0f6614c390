"""Do rows repeat? One training of every method, run again: with other threads, on another machine, from embeddings
that differ by rounding as those of another machine do.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from threadpoolctl import ThreadpoolController

from strays.studies.paper.methods import METHODS
from strays.studies.paper.study import Cell, Compute, Setting, Study, check_same_texts, without_curve
from strays.studies.paper.trained import check_same_settings, maker, runnable, settings_of, train_and_test
from strays.studies.paper.tuning import tuned_settings
from strays.studies.protocol import POLLUTIONS, pollute
from strays.studies.rows import Row

THREADS = (1, 2)
# Relative: embeddings of two processors differ by about so much.
ROUNDING = 1e-7


class Repeat(Study):
    """Every method at every p, the first run, on this machine; run it on another and its rows are added.

    >>> Repeat("5.1").name
    'repeat-5.1'
    """

    def __init__(self, corpus: str) -> None:
        super().__init__(
            f"repeat-{corpus}",
            f"whether rows of {corpus} repeat: with other threads, other embeddings by rounding, on this machine",
            corpora=(corpus,),
        )
        self.corpus = corpus

    def cells(self, setting: Setting) -> list[Cell]:
        """One training for each method and p, in each way to run it."""
        methods = runnable(METHODS, tuned_settings(setting, self.corpus))
        ways = [*((threads, 0.0) for threads in THREADS), (THREADS[0], ROUNDING)]
        return [
            {
                "study": self.name,
                "encoder": setting.encoder_name,
                "method": method,
                "pollution": p,
                "kernels": kernels(),
                "threads": threads,
                "noise": noise,
            }
            for (threads, noise), p, method in product(ways, POLLUTIONS, methods)
        ]

    def prepare(self, setting: Setting) -> Callable[[], Compute]:
        """Draw all scenarios; the work they share is encoding the rows they use."""
        corpus = setting.corpus(self.corpus)
        scenarios = {p: pollute(corpus, p, seed=0) for p in POLLUTIONS}
        digests = {(p,): scenario.digest(corpus) for p, scenario in scenarios.items()}
        check_same_texts(self.file(setting), ("pollution",), digests)
        check_same_settings(self.file(setting), setting, METHODS, tuned_settings(setting, self.corpus))

        def start() -> Compute:
            X = setting.embeddings(corpus, set().union(*(s.rows for s in scenarios.values())))
            rounded = X * (1 + ROUNDING * np.random.default_rng(0).standard_normal(X.shape).astype(np.float32))
            tuned = tuned_settings(setting, self.corpus)

            def compute(cell: Cell) -> Row:
                method, scenario = METHODS[cell["method"]], scenarios[cell["pollution"]]
                with ThreadpoolController().limit(limits=cell["threads"], user_api="blas"):
                    [measured] = train_and_test(
                        maker(method, self.corpus, tuned),
                        rounded if cell["noise"] else X,
                        scenario.train,
                        [scenario.test],
                        sees_labels=method.sees_labels,
                        seed=0,
                        trainings=1,
                    )
                digest = digests[cell["pollution"],]
                return {"scenario": digest, **settings_of(method, tuned), **without_curve(measured)}

            return compute

        return start


def kernels() -> str:
    """Which processor's products NumPy multiplies with here: what rounds differently from machine to machine."""
    found = {
        pool.get("architecture") or pool["internal_api"]
        for pool in ThreadpoolController().select(user_api="blas").info()
    }
    return ", ".join(sorted(found))
