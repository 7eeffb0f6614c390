"""Which encoder this is: digests of everything that decides an embedding.

Decided by the folder, and the same on every machine: weights, vocabulary, config and the tokenizer's settings. Together
with pooling, length and precision they make the fingerprint, and a saved model is used with no other. Of a settings
file counts what it says: its layout, and where a library says that it came from, do not.

Made here from those, and not always the same to the byte: the graph for ONNX Runtime and the table of a static encoder.
Their digests are noted when they are written and compared with the very bytes that are run.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from strays.encoders import sources
from strays.encoders.pinned import digest
from strays.encoders.settings import EncoderSettings
from strays.errors import EncoderError, StraysWarning, first_line

# Files that say how weights and vocabulary are used.
SETTINGS_FILES = (
    "config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "model.safetensors.index.json",
    "pytorch_model.bin.index.json",
)
# Entries of these files that decide nothing: who wrote them, where from, and in which type weights were stored.
SAYS_NOTHING = {
    "_commit_hash",
    "_name_or_path",
    "dtype",
    "name_or_path",
    "special_tokens_map_file",
    "tokenizer_file",
    "torch_dtype",
    "transformers_version",
}
SHAPE = ("pooling", "normalize", "max_length")
# Among the files: what tuning changes of the weights.
TUNING = "tuning"


@dataclass(frozen=True)
class EncoderIdentity:
    """What a saved model or a job records of its encoder: a fingerprint, and the digest of each file behind it.

    Version 0.1 recorded no files, and its fingerprint was of weights, vocabulary and settings alone. An encoder object
    of the user's own has no files either, and no fingerprint unless it brings one.

    >>> EncoderIdentity("ab12", {"config.json": "1"}).differing(EncoderIdentity("cd34", {"config.json": "2"}))
    ['config.json']
    """

    fingerprint: str | None = None
    files: Mapping[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain data for a config."""
        files = {} if self.files is None else {"files": dict(self.files)}
        return {"fingerprint": self.fingerprint, **files}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """From what to_dict gave."""
        return cls(saved["fingerprint"], saved.get("files"))

    def differing(self, other: EncoderIdentity) -> list[str]:
        """The files that the two do not have in common; those made here are left out."""
        mine, theirs = self.files or {}, other.files or {}
        names = sorted({*mine, *theirs})
        return [name for name in names if mine.get(name) != theirs.get(name) and not _made_here(name)]


def digests(folder: Path) -> dict[str, str]:
    """The digest of each file of a transformer's folder that decides an embedding, by its name."""
    content = [*sources.weight_files(folder), *sources.vocabulary_files(folder)]
    settings = [path for name in SETTINGS_FILES if (path := folder / name).is_file()]
    return {path.name: digest(path) for path in content} | {path.name: _meaning(path) for path in settings}


def fingerprint(files: Mapping[str, str], further: Iterable[str]) -> str:
    """Hash of the files' digests and of what else decides an embedding."""
    lines = [f"{name} {files[name]}" for name in sorted(files)]
    return hashlib.sha256("\n".join(["strays encoder 2", *lines, *further]).encode()).hexdigest()


def fingerprint_0_1(folder: Path, further: Iterable[str]) -> str:
    """The same as version 0.1 had it: of weights and vocabulary without names, and of no config."""
    content = [*sources.weight_files(folder), *sources.vocabulary_files(folder)]
    return hashlib.sha256("\n".join([*map(digest, content), *further]).encode()).hexdigest()


def in_int8(full: str, graph_version: int) -> str:
    """The fingerprint of the same encoder in 8 bits."""
    return hashlib.sha256(f"{full}\nprecision=int8\ngraph={graph_version}".encode()).hexdigest()


def shape_lines(shape: EncoderSettings) -> list[str]:
    """What the settings have decided, as lines of a fingerprint."""
    return [f"{key}={getattr(shape, key)}" for key in SHAPE]


def _meaning(path: Path) -> str:
    """The digest of what a settings file says."""
    try:
        found = json.loads(path.read_bytes())
        if isinstance(found, dict):
            found = {key: value for key, value in found.items() if key not in SAYS_NOTHING}
        return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
    except (OSError, ValueError, RecursionError) as error:
        raise EncoderError(f"could not read {path} ({first_line(error)}); download the model's files again") from error


def _made_here(name: str) -> bool:
    return name.endswith(".onnx") or name == "table.safetensors"


def warn_of_damage(path: Path) -> None:
    """Say that something kept was not what was written."""
    message = f"{path} is damaged: its bytes are not those that were written. It is made again"
    warnings.warn(StraysWarning(message), stacklevel=3)
