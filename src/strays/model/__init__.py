"""TextOutlierDetector and what it is made of. Modules import only from those named before them.

labels                   what a person said of a text: 'normal', 'anomaly' or nothing
contamination            what share of scored texts is odd beyond chance
calibration              p-values, and the threshold rules: which texts are flagged
scores                   what a model says of texts: their scores, p-values and flags
segments, common_words   the parts of a text, and words too common to be odd
text_copies, examples    whether texts are copies; texts kept to explain others with
normal_parts             what the parts of normal texts are like
form                     the form of texts, whatever they mean, as columns of numbers
scoring                  texts to embeddings and anomaly scores
folder                   a saved model on disk: the two files of a folder
distinct_texts           equal texts count once
fitting                  fit a detector, and score texts it has not seen
explanation              why a text scores as it does
cascade                  a cheap head that tells which texts a model could flag
persistence              a fitted model to a config and arrays, and back
text_outlier_detector    the model
cascade_scorer           scores like a model with a cascade, at a fraction of the cost
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strays.model.cascade_scorer import CascadeScorer
    from strays.model.scores import RawScores, Scores
    from strays.model.text_outlier_detector import TextOutlierDetector

__all__ = ["CascadeScorer", "RawScores", "Scores", "TextOutlierDetector"]

# Imported on use, so that labels or thresholds alone do not load an encoder's libraries.
_HOMES = {
    "CascadeScorer": "strays.model.cascade_scorer",
    "RawScores": "strays.model.scores",
    "Scores": "strays.model.scores",
    "TextOutlierDetector": "strays.model.text_outlier_detector",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
