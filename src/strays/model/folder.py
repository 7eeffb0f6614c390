"""A model on disk: a folder with config.json and arrays.safetensors. No pickle, so loading runs no code.

The folder appears complete or not at all, and config.json carries the hash of the arrays and one of itself, so that a
damaged or mixed-up folder is noticed. Whoever sends a model can write any hash: what is read is bounded, and only from
inside the folder; whether the values make sense is for those to check who use them (array_spec.py).
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from strays.errors import ModelError, first_line
from strays.files import read_steadily, real_path, recover, replace_folder

FORMAT = "strays-model"
# 2: the config has a hash of its own. Models of version 1, which strays 0.1 wrote, have none.
# 3: the form of texts may count.
FORMAT_VERSION = 3
CONFIG = "config.json"
ARRAYS = "arrays.safetensors"
SEAL = "config_sha256"
# A config is some kilobytes.
LARGEST_CONFIG = 2**20


def save_folder(path: str | Path, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a model folder; an older model there is replaced, anything else is left alone and refused."""
    check_target(path)
    folder = real_path(path)
    data = save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "arrays_sha256": hashlib.sha256(data).hexdigest()}
    whole = sealed(head | config)
    text = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        with replace_folder(folder) as new:
            (new / ARRAYS).write_bytes(data)
            (new / CONFIG).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise ModelError(f"{folder}: could not be written ({error.strerror or error}); nothing was changed") from error


def sealed(config: dict[str, Any]) -> dict[str, Any]:
    """A config with a hash of all its other values, whatever their order and however they are written."""
    values = {key: value for key, value in config.items() if key != SEAL}
    return values | {SEAL: hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()}


def check_target(path: str | Path) -> None:
    """Raise if a model folder could not be written here without losing something else."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ModelError(f"{folder}: is a file; expected the name of a folder for the model")
    if folder.is_dir() and not read_steadily(folder, lambda: _is_empty_or_model(folder)):
        raise ModelError(f"{folder}: is a folder with other things in it; expected a new name or an older model")


def load_folder(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The config and arrays of a model folder, checked to be whole and of a format this version knows."""
    folder = Path(path)
    if folder.is_file():
        raise ModelError(f"{folder}: is a file; expected the folder of a model, as `strays fit` writes it")
    if not folder.is_dir():
        recover(folder)  # a process may have been killed while it replaced it
    if not folder.is_dir():
        raise ModelError(f"{folder}: no such model folder; fit a model and save it there first")
    try:
        config, data = read_steadily(folder, lambda: (_read_config(folder), _read_arrays(folder)))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise ModelError(
            f"{folder}: {CONFIG} or {ARRAYS} is not readable ({first_line(error):.300}); fit the model again"
        ) from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelError(f"{folder}: {CONFIG} does not describe a strays model; fit it again")
    version = config.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise ModelError(
            f"{folder}: {CONFIG} gives the format version {version!r:.60}; expected a number. Fit it again"
        )
    if version > FORMAT_VERSION:
        newer = f"{config.get('strays_version', 'unknown')}"[:60]
        raise ModelError(
            f"{folder}: was written in format {version!s:.60} by a newer strays ({newer}); "
            f"this one reads up to {FORMAT_VERSION}. Update it: pip install --upgrade strays"
        )
    if (version >= 2 or SEAL in config) and not _is_sealed(config):
        raise ModelError(f"{folder}: {CONFIG} is damaged or was changed by hand (its hash differs); fit it again")
    if hashlib.sha256(data).hexdigest() != config.get("arrays_sha256"):
        raise ModelError(f"{folder}: {ARRAYS} is damaged or of another model (its hash differs); fit it again")
    try:
        return config, load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise ModelError(f"{folder}: {ARRAYS} is not readable ({error!s:.300}); fit the model again") from error


def _read_config(folder: Path) -> Any:
    with _plain_file(folder, CONFIG).open("rb") as file:
        data = file.read(LARGEST_CONFIG + 1)
    if len(data) > LARGEST_CONFIG:
        raise ModelError(f"{folder}: {CONFIG} is larger than {LARGEST_CONFIG:,} bytes, so strays did not write it")
    return json.loads(data.decode("utf-8"), object_pairs_hook=_no_key_twice, parse_constant=_no_constant)


def _read_arrays(folder: Path) -> bytes:
    path = _plain_file(folder, ARRAYS)
    size = path.stat().st_size
    if size > _memory():  # of a file with holes a disk can hold more than any memory
        raise ModelError(f"{folder}: {ARRAYS} is {size:,} bytes, more than this machine has memory")
    return path.read_bytes()


def _plain_file(folder: Path, name: str) -> Path:
    """A file of the folder. Links inside are followed, as Kubernetes mounts volumes with them, others are refused."""
    if not (folder / name).exists():
        raise ModelError(f"{folder}: {name} is missing; expected a folder as `strays fit` writes it. Fit it again")
    path = real_path(folder / name)
    if not path.is_relative_to(real_path(folder)):
        raise ModelError(f"{folder}: {name} is a link to a file outside the folder; copy the file into the folder")
    if not path.is_file():
        raise ModelError(
            f"{folder}: {name} is not a plain file; expected a folder as `strays fit` writes it. Fit it again"
        )
    return path


def _memory() -> float:
    """Bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # no such question on this system
        return float("inf")


def _is_sealed(config: dict[str, Any]) -> bool:
    try:
        return sealed(config)[SEAL] == config.get(SEAL)
    except (ValueError, RecursionError):  # values that no config has
        return False


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that occurs twice: two readers could see different values."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _is_empty_or_model(folder: Path) -> bool:
    names = {entry.name for entry in folder.iterdir()}
    if not names or names - {CONFIG, ARRAYS}:
        return not names
    try:
        config = _read_config(folder)
        return isinstance(config, dict) and config.get("format") == FORMAT
    except (ModelError, OSError, ValueError, RecursionError):
        return False
