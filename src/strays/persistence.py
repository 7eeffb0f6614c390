"""A model on disk: a folder with config.json and arrays.safetensors. No pickle, so loading runs no code.

The folder appears complete or not at all, and config.json carries the hash of the arrays, so that a damaged or mixed-up
folder is noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from strays.errors import ModelError

FORMAT = "strays-model"
FORMAT_VERSION = 1
CONFIG = "config.json"
ARRAYS = "arrays.safetensors"


def save_folder(path: str | Path, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a model folder; an older model there is replaced, anything else is left alone and refused."""
    check_target(path)
    folder = Path(path).resolve()
    data = save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "arrays_sha256": hashlib.sha256(data).hexdigest()}
    text = json.dumps(head | config, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    new = folder.with_name(f".{folder.name}.{os.getpid()}.new")
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    try:
        new.mkdir(parents=True)
        _write_durably(new / ARRAYS, data)
        _write_durably(new / CONFIG, text.encode("utf-8"))
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    except OSError as error:
        raise ModelError(f"{folder}: could not be written ({error.strerror or error}); nothing was changed") from error
    finally:
        if old.exists() and not folder.exists():  # stopped between the two renames, by whatever
            old.rename(folder)
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def check_target(path: str | Path) -> None:
    """Raise if a model folder could not be written here without losing something else."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ModelError(f"{folder}: is a file; expected the name of a folder for the model")
    if folder.is_dir():
        others = {entry.name for entry in folder.iterdir()} - {CONFIG, ARRAYS}
        if others or (any(folder.iterdir()) and not _is_model(folder)):
            raise ModelError(f"{folder}: is a folder with other things in it; expected a new name or an older model")


def load_folder(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The config and arrays of a model folder, checked to be whole and of a format this version knows."""
    folder = Path(path)
    if folder.is_file():
        raise ModelError(f"{folder}: is a file; expected the folder of a model, as `strays fit` writes it")
    if not folder.is_dir():
        raise ModelError(f"{folder}: no such model folder; make one with `strays fit FILE --model {folder}`")
    for name in (CONFIG, ARRAYS):
        if not (folder / name).is_file():
            raise ModelError(f"{folder}: {name} is missing; expected a folder as `strays fit` writes it. Fit it again")
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        data = (folder / ARRAYS).read_bytes()
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{folder}: {CONFIG} or {ARRAYS} is not readable ({error}); fit the model again") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelError(f"{folder}: {CONFIG} does not describe a strays model; fit it again")
    version = config.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise ModelError(f"{folder}: {CONFIG} gives the format version {version!r}; expected a number. Fit it again")
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{folder}: was written in format {version} by a newer strays ({config.get('strays_version', 'unknown')}); "
            f"this one reads up to {FORMAT_VERSION}. Update it: pip install --upgrade strays"
        )
    if hashlib.sha256(data).hexdigest() != config.get("arrays_sha256"):
        raise ModelError(f"{folder}: {ARRAYS} is damaged or of another model (its hash differs); fit it again")
    try:
        return config, load(data)
    except (SafetensorError, ValueError) as error:
        raise ModelError(f"{folder}: {ARRAYS} is not readable ({error}); fit the model again") from error


def _write_durably(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _is_model(folder: Path) -> bool:
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        return isinstance(config, dict) and config.get("format") == FORMAT
    except (OSError, ValueError):
        return False
