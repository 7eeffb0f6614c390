"""The text outlier detector and what it is made of: fitting, calibration, explanation, labels, cascade, persistence."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strays.model.cascade_scorer import CascadeScorer
    from strays.model.text_outlier_detector import Scores, TextOutlierDetector

__all__ = ["CascadeScorer", "Scores", "TextOutlierDetector"]

# Imported on use, so that labels or thresholds alone do not load an encoder's libraries.
_HOMES = {
    "CascadeScorer": "strays.model.cascade_scorer",
    "Scores": "strays.model.text_outlier_detector",
    "TextOutlierDetector": "strays.model.text_outlier_detector",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
