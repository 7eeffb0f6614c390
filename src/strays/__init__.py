"""strays finds the texts that do not belong."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strays.encoders import load_encoder
    from strays.model import TextOutlierDetector

__version__ = "0.2.0.dev0"
__all__ = ["TextOutlierDetector", "__version__", "load_encoder"]

# Imported on use, so that `import strays` and `strays --help` stay fast.
_HOMES = {"TextOutlierDetector": "strays.model.text_outlier_detector", "load_encoder": "strays.encoders"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
