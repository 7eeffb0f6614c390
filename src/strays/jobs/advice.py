"""What might improve a model that was just fitted."""

from __future__ import annotations

import math
from dataclasses import dataclass

from strays.detectors import AutoDetector
from strays.encoders.runtimes.devices import has_torch
from strays.jobs.corpus import Corpus
from strays.model import TextOutlierDetector
from strays.model.tuning import FEWEST_KNOWN, can_be_tuned, seconds_to_tune

# Known anomalies that stand out more than this leave little to gain.
STAND_OUT = 0.97


@dataclass(frozen=True)
class TuningAdvice:
    """That tuning the encoder may help: of so many known anomalies, where they rank now, and how long it would take.

    >>> print(TuningAdvice(n_known=214, auc=0.813, minutes=2, needs_torch=False))
    The 214 known anomalies, each left out, have an AUC of 81.3 among the normal texts
    """

    n_known: int
    auc: float
    minutes: int
    needs_torch: bool

    def __str__(self) -> str:
        figure = f"an AUC of {100 * self.auc:.1f} among the normal texts"
        return f"The {self.n_known:,} known anomalies, each left out, have {figure}"


def advise_tuning(model: TextOutlierDetector, corpus: Corpus) -> TuningAdvice | None:
    """What can be said for tuning the encoder of a model that was fitted on a corpus; None if there is little."""
    detector = model.detector_
    # Of the detectors this one knows how far a known anomaly stands out that it has not seen.
    if model.tune or not isinstance(detector, AutoDetector) or detector.n_known_ < FEWEST_KNOWN:
        return None
    found = detector.auc_ / 100
    if found > STAND_OUT or not can_be_tuned(model.encoder_):
        return None
    minutes = math.ceil(seconds_to_tune(model.encoder_, corpus.texts, detector.n_known_) / 60)
    return TuningAdvice(detector.n_known_, found, minutes, needs_torch=not has_torch())
