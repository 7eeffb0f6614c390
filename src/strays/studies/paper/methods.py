"""The methods the paper compares, and the classifiers it leaves to future work, each made for a study and a seed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from strays.detectors import (
    AISVDD,
    CentroidDistance,
    DeepSVDD,
    IsolationForest,
    LocalOutlierFactor,
    LogisticHead,
    OneClassSVM,
)
from strays.errors import CollapseError


class ScoringEstimator(Protocol):
    """What a method makes: it fits and scores; a higher score is odder."""

    def fit(self, X: np.ndarray, y: np.ndarray | None = None) -> Any:
        """Learn from rows and labels."""

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        """One score for each row."""


# From a study and a seed, and for networks settings to change: a new estimator.
Make = Callable[..., ScoringEstimator]


def of_paper(network: type[AISVDD] | type[DeepSVDD], **changed: Any) -> Make:
    """A network with the numbers the paper chose for a study, but for those that are changed."""
    return lambda study, seed, **settings: network.from_paper(study, seed).set_params(**changed, **settings)


@dataclass(frozen=True)
class Method:
    """One way to score.

    `printed` is what the paper's tables call it, nothing where they do not have it; `sees_labels` says whether it
    is given the labels, `random` whether a seed changes it. `grid` is the grid of the appendix whose winner's settings
    it takes on.

    >>> METHODS["lof"].make("5.1", 0)
    LocalOutlierFactor()
    """

    title: str
    make: Make
    printed: str | None = None
    sees_labels: bool = False
    random: bool = True
    grid: str | None = None


METHODS = {
    "centroid": Method("distance to the mean", lambda study, seed: CentroidDistance(), "BERT-rank", random=False),
    "oc-svm": Method("one-class SVM", lambda study, seed: OneClassSVM(), "OC-SVM", random=False),
    "isolation-forest": Method("isolation forest", lambda study, seed: IsolationForest(random_state=seed), "ISF"),
    "lof": Method("local outlier factor", lambda study, seed: LocalOutlierFactor(), "LOF", random=False),
    "deep-svdd-tuned": Method(
        "deep OC-SVDD, tuned here",
        of_paper(DeepSVDD),
        "OC-SVDD",
        grid="deep-svdd",
    ),
    "deep-svdd": Method("deep OC-SVDD, the paper's numbers", of_paper(DeepSVDD), "OC-SVDD"),
    "ai-svdd-tuned": Method(
        "AI-SVDD, tuned here",
        of_paper(AISVDD),
        "AI-SVDD",
        sees_labels=True,
        grid="ai-svdd-paper",
    ),
    "ai-svdd-paper": Method("AI-SVDD, the paper's numbers", of_paper(AISVDD), "AI-SVDD", sees_labels=True),
    "ai-svdd-sgd": Method(
        "AI-SVDD, plain gradient steps",
        of_paper(AISVDD, optimizer="sgd"),
        sees_labels=True,
    ),
    "ai-svdd": Method("AI-SVDD, strays' settings", lambda study, seed: AISVDD(random_state=seed), sees_labels=True),
}
ONE_CLASS = tuple(name for name, method in METHODS.items() if not method.sees_labels)


class MLP:
    """scikit-learn's multilayer perceptron that tells known anomalies from the rest.

    >>> X, y = np.array([[0.0], [0.1], [5.0]]), np.array([1, 1, -1])
    >>> MLP(seed=0).fit(X, y).anomaly_score(X).shape
    (3,)
    """

    def __init__(self, seed: int) -> None:
        from sklearn.neural_network import MLPClassifier

        self.classifier = MLPClassifier(hidden_layer_sizes=(128,), max_iter=10, random_state=seed)

    def fit(self, X: np.ndarray, y: np.ndarray | None = None) -> Self:
        """Learn to tell rows with y < 0 from all others."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # ten epochs are what was asked for
            self.classifier.fit(X.astype(np.float64), np.asarray(y) < 0)
        return self

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        """The log odds of an anomaly."""
        p = self.classifier.predict_proba(X.astype(np.float64))  # in float32 more of them would round to 1
        log_p = np.log(np.maximum(p, np.finfo(float).tiny))
        return np.asarray(log_p[:, 1] - log_p[:, 0])


CLASSIFIERS = {
    "logistic": Method("logistic regression", lambda study, seed: LogisticHead(), sees_labels=True, random=False),
    "mlp": Method("MLP classifier", lambda study, seed: MLP(seed), sees_labels=True),
}


def fit_and_score(
    estimator: ScoringEstimator, X: np.ndarray, y: np.ndarray | None, *tests: np.ndarray
) -> list[np.ndarray]:
    """Scores of each test set. A network that collapsed has learnt nothing: its scores are all alike."""
    try:
        estimator.fit(X, y)
    except CollapseError:
        return [np.zeros(len(test)) for test in tests]
    return [estimator.anomaly_score(test) for test in tests]
