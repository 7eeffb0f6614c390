"""The text outlier detector and what it is made of: fitting, calibration, explanation, labels, cascade, persistence."""

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
