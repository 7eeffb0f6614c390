"""Choices the paper leaves open, each made the other way: what would have come out?

Every row of these studies stands beside a row of the comparison of the same corpus, encoder, p and seed, which has all
choices as strays makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product

import numpy as np

from strays.detectors import AISVDD, DeepSVDD, network
from strays.detectors.ai_svdd import Gradient
from strays.detectors.training import TrainableNetwork
from strays.studies.corpora import CORPORA
from strays.studies.paper.methods import METHODS, Make, Method, of_paper
from strays.studies.paper.study import Cell, Compute, Setting, Study, check_same_texts, without_curve
from strays.studies.paper.trained import check_same_settings, maker, runnable, settings_of, train_and_test
from strays.studies.paper.tuning import tuned_settings
from strays.studies.protocol import pollute
from strays.studies.rows import Row


class RandomBatches(AISVDD):
    """Rows in random order, cut into batches: anomalies fall as they may.

    The loss of a batch in which they are not fewer than the normals has no minimum: such a batch is left out.
    """

    def _batches(self, y: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
        for batch in np.array_split(rng.permutation(len(y)), -(-len(y) // self.batch_size)):
            if 2 * (y[batch] < 0).sum() < len(batch):
                yield batch


class UniformStart(AISVDD):
    """Starts as layers of PyTorch do: uniform, within 1 / sqrt(inputs) of zero."""

    def _start(self, X: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        return uniform_weights([X.shape[1], self.hidden_size, self.latent_size], rng)


class PretrainedStart(AISVDD):
    """Starts from the encoder of an auto-encoder that was pretrained on the same rows, as OC-SVDD does."""

    def _start(self, X: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        sizes = {"hidden_size": self.hidden_size, "latent_size": self.latent_size, "batch_size": self.batch_size}
        return DeepSVDD.from_paper().set_params(**sizes).pretrain(np.ascontiguousarray(X, np.float32), rng)


class WholeCenter(AISVDD):
    """The loss of a batch is taken around c* of the whole training set, computed at the start of each epoch."""

    def _gradient(self, net: TrainableNetwork, rows: np.ndarray, sign: np.ndarray) -> Gradient:
        self._current = partial(_center_of_all, net, rows, sign, self.activation)

        def gradient(z: np.ndarray, y: np.ndarray, unit: float) -> tuple[float, np.ndarray]:
            away = z - self._center
            by_z = (2 / (len(y) * unit**2) * y)[:, None] * away
            return float(np.vdot(by_z, away)) / 2, by_z

        return gradient

    def _batches(self, y: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
        self._center = self._current()
        return super()._batches(y, rng)


def _center_of_all(net: TrainableNetwork, rows: np.ndarray, sign: np.ndarray, activation: str) -> np.ndarray:
    return network.weighted_center(network.phi(rows, net.weights, activation), sign)


class UniformStartOneClass(DeepSVDD):
    """Deep OC-SVDD whose layers start as those of PyTorch do."""

    def _start(self, sizes: list[int], rng: np.random.Generator) -> list[np.ndarray]:
        return uniform_weights(sizes, rng)


class RandomCenter(DeepSVDD):
    """Deep OC-SVDD around a centre of random direction, as far from the origin as the one pretraining finds."""

    def _choose_center(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        direction = rng.normal(size=z.shape[1])
        length = np.linalg.norm(super()._choose_center(z, rng))
        return np.asarray(direction * (length / np.linalg.norm(direction)))


def uniform_weights(sizes: list[int], rng: np.random.Generator) -> list[np.ndarray]:
    """Uniform within 1 / sqrt(inputs) of zero, one float32 array for each layer from sizes[0] to sizes[-1]."""
    return [
        rng.uniform(-(inputs**-0.5), inputs**-0.5, size=(outputs, inputs)).astype(np.float32)
        for inputs, outputs in pairwise(sizes)
    ]


@dataclass(frozen=True)
class Choice:
    """What strays does where the paper leaves it open, what else could be done, and at which p it is tried.

    `make` makes a method that does the other thing; nothing where it is the draw that differs.

    >>> CHOICES["batches"].other
    'rows in random order, cut into batches'
    """

    title: str
    ours: str
    other: str
    methods: tuple[str, ...]
    pollutions: tuple[float, ...]
    make: Make | None


AI, OC = ("ai-svdd-tuned", "ai-svdd-paper"), ("deep-svdd-tuned", "deep-svdd")
CHOICES = {
    "batches": Choice(
        "batches",
        "each batch has normals and anomalies in the proportion of the training set",
        "rows in random order, cut into batches",
        AI,
        (0.02, 0.08),
        of_paper(RandomBatches),
    ),
    "draws": Choice(
        "draw of anomalies",
        "in equal numbers from every class",
        "from all rows of all classes alike",
        AI,
        (0.02, 0.08),
        None,
    ),
    "start": Choice(
        "start", "random orthogonal layers", "uniform, as PyTorch's layers", AI, (0.0, 0.08), of_paper(UniformStart)
    ),
    "pretraining": Choice(
        "pretraining of AI-SVDD", "none", "an auto-encoder, as for OC-SVDD", AI, (0.0, 0.08), of_paper(PretrainedStart)
    ),
    "center": Choice(
        "centre in training",
        "of each batch",
        "of the whole training set, renewed every epoch",
        AI,
        (0.0, 0.08),
        of_paper(WholeCenter),
    ),
    "epochs": Choice("epochs of AI-SVDD", "3, as printed", "10", AI, (0.0,), of_paper(AISVDD, epochs=10)),
    "oc-start": Choice(
        "start of OC-SVDD",
        "random orthogonal layers",
        "uniform, as PyTorch's layers",
        OC,
        (0.0, 0.08),
        of_paper(UniformStartOneClass),
    ),
    "oc-center": Choice(
        "centre of OC-SVDD",
        "mean of the pretrained latents",
        "random direction, same length",
        OC,
        (0.0, 0.08),
        of_paper(RandomCenter),
    ),
}


class Choices(Study):
    """Every choice made the other way on one corpus.

    >>> Choices("5.1").name
    'choices-5.1'
    """

    def __init__(self, corpus: str) -> None:
        super().__init__(
            f"choices-{corpus}",
            f"choices the paper leaves open, made the other way on {corpus}",
            corpora=(corpus,),
        )
        self.corpus = corpus

    def cells(self, setting: Setting) -> list[Cell]:
        """Seed by seed. Where there is one class of anomalies, the draw has no other way."""
        methods = runnable(METHODS, tuned_settings(setting, self.corpus))
        return [
            {
                "study": self.name,
                "encoder": setting.encoder_name,
                "method": method,
                "choice": name,
                "pollution": p,
                "seed": seed,
            }
            for seed in range(setting.runs)
            for name, choice in CHOICES.items()
            if choice.make or len(CORPORA[self.corpus].anomalies) > 1
            for p, method in product(choice.pollutions, choice.methods)
            if method in methods
        ]

    def prepare(self, setting: Setting) -> Callable[[], Compute]:
        """Draw all scenarios; the work they share is encoding the rows they use."""
        corpus = setting.corpus(self.corpus)
        pollutions = {p for choice in CHOICES.values() for p in choice.pollutions}
        scenarios = {
            (evenly, p, seed): pollute(corpus, p, seed, evenly=evenly)
            for evenly, p, seed in product((True, False), pollutions, range(setting.runs))
        }
        digests = {
            (name, p, seed): scenarios[choice.make is not None, p, seed].digest(corpus)
            for name, choice in CHOICES.items()
            for p, seed in product(choice.pollutions, range(setting.runs))
        }
        check_same_texts(self.file(setting), ("choice", "pollution", "seed"), digests)
        check_same_settings(self.file(setting), setting, METHODS, tuned_settings(setting, self.corpus))

        def start() -> Compute:
            X = setting.embeddings(corpus, set().union(*(s.rows for s in scenarios.values())))
            tuned = tuned_settings(setting, self.corpus)

            def compute(cell: Cell) -> Row:
                choice = CHOICES[cell["choice"]]
                method = _otherwise(METHODS[cell["method"]], choice)
                scenario = scenarios[choice.make is not None, cell["pollution"], cell["seed"]]
                [measured] = train_and_test(
                    maker(method, self.corpus, tuned),
                    X,
                    scenario.train,
                    [scenario.test],
                    sees_labels=method.sees_labels,
                    seed=cell["seed"],
                    trainings=setting.trainings,
                )
                digest = digests[cell["choice"], cell["pollution"], cell["seed"]]
                return {"scenario": digest, **settings_of(method, tuned), **without_curve(measured)}

            return compute

        return start


def _otherwise(method: Method, choice: Choice) -> Method:
    """The method with a choice made the other way."""
    return replace(method, make=choice.make) if choice.make else method
