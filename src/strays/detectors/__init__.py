"""Embeddings (and labels) in, anomaly scores out. One method, one file.

    array_spec, sampling, threads, kernel_ridge, mixture    tools that know no detector
    estimator, limits                                       scikit-learn's protocol, and what parameters may be
    exact                                                   products that are the same in any batch: scores rest on it
    copies, set_aside                                       which rows are better not compared with
    base                                                    Detector: what every method promises
    network, training, sphere, semi_supervised              what the neural networks share
    centroid, mahalanobis, nearest_normals, ai_svdd, ...    the methods
    auto, with auto_features, auto_in_words, ...            the default, which combines several

Modules import only from those named before them. To add a method, write one file (`centroid.py` is the shortest to
copy), add a line to DETECTORS, so that the command line, saved models and tests/detectors/test_every_detector.py know
it, and a line to the imports below, so that type checkers do.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from strays.errors import UsageError

if TYPE_CHECKING:
    from strays.detectors.ai_svdd import AISVDD as AISVDD
    from strays.detectors.auto import AutoDetector as AutoDetector
    from strays.detectors.base import Detector as Detector
    from strays.detectors.centroid import CentroidDistance as CentroidDistance
    from strays.detectors.deep_sad import DeepSAD as DeepSAD
    from strays.detectors.deep_svdd import DeepSVDD as DeepSVDD
    from strays.detectors.hypersphere_classifier import HypersphereClassifier as HypersphereClassifier
    from strays.detectors.isolation_forest import IsolationForest as IsolationForest
    from strays.detectors.local_outlier_factor import LocalOutlierFactor as LocalOutlierFactor
    from strays.detectors.logistic_head import LogisticHead as LogisticHead
    from strays.detectors.mahalanobis import Mahalanobis as Mahalanobis
    from strays.detectors.nearest_normals import NearestNormals as NearestNormals
    from strays.detectors.one_class_svm import OneClassSVM as OneClassSVM

# Name on the command line and in saved models -> where the class is. Imported on use, with what it needs.
DETECTORS = {
    "auto": "strays.detectors.auto:AutoDetector",
    "ai-svdd": "strays.detectors.ai_svdd:AISVDD",
    "deep-svdd": "strays.detectors.deep_svdd:DeepSVDD",
    "deep-sad": "strays.detectors.deep_sad:DeepSAD",
    "hypersphere": "strays.detectors.hypersphere_classifier:HypersphereClassifier",
    "logistic": "strays.detectors.logistic_head:LogisticHead",
    "centroid": "strays.detectors.centroid:CentroidDistance",
    "nearest": "strays.detectors.nearest_normals:NearestNormals",
    "mahalanobis": "strays.detectors.mahalanobis:Mahalanobis",
    "oc-svm": "strays.detectors.one_class_svm:OneClassSVM",
    "isolation-forest": "strays.detectors.isolation_forest:IsolationForest",
    "lof": "strays.detectors.local_outlier_factor:LocalOutlierFactor",
}
_CLASSES = {path.partition(":")[2]: path for path in [*DETECTORS.values(), "strays.detectors.base:Detector"]}


def detector_class(name: str) -> type[Detector]:
    """The detector registered under a name ('ai-svdd') or called by its class ('AISVDD')."""
    path = DETECTORS.get(name) or (_CLASSES.get(name) if name != "Detector" else None)
    if path is None:
        raise UsageError(f"no detector is called {name!r}; expected one of {', '.join(DETECTORS)}")
    return _load(path)


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return _load(_CLASSES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)
