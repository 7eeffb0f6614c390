"""The folder of what strays can make again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Where strays keeps what it can make again: STRAYS_CACHE, or the user's cache folder."""
    given = os.environ.get("STRAYS_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "strays"
