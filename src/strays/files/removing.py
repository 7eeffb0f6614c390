"""A folder removed as a whole: it is moved aside first, so that nobody opens half of it."""

from __future__ import annotations

import re
import secrets
import shutil
from pathlib import Path

REMOVED = ".strays-removed-"
NAME = re.compile(re.escape(REMOVED) + "[0-9a-f]{32}")


def remove_folder(path: Path) -> None:
    """Remove a folder of ours and all that is in it. Links in it are removed, and what they point to stays."""
    aside = path.with_name(f"{REMOVED}{secrets.token_hex(16)}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return  # another process was faster
    shutil.rmtree(aside, ignore_errors=True)


def is_removed(path: Path) -> bool:
    """Whether this is a folder that an interrupted removal left."""
    return NAME.fullmatch(path.name) is not None and path.is_dir() and not path.is_symlink()
