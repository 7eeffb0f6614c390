"""What decides an embedding besides the weights, and what a model's own files say of it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from strays.errors import EncoderError, LoadingError, UsageError, first_line

POOLINGS = ("mean", "cls")
PRECISIONS = ("full", "int8")
# Raise it when the int8 graph of the same weights changes: stored graphs and int8 embeddings belong to one version.
GRAPH_VERSION = 2
# Longer names and texts than any there are: of an encoder in characters, of a text in tokens.
LONGEST_NAME, LONGEST_TEXT = 4096, 1_000_000


@dataclass(frozen=True)
class EncoderSettings:
    """What decides an embedding, besides the weights. None: what the model's own files say, and the latest `graph`.

    >>> EncoderSettings("default", max_length=128).to_dict()
    {'name': 'default', 'revision': None, 'pooling': None, 'normalize': None, 'max_length': 128, 'precision': None}
    """

    name: str
    revision: str | None = None
    pooling: str | None = None
    normalize: bool | None = None
    max_length: int | None = None
    precision: str | None = None
    graph: int | None = None

    def check(self) -> None:
        """Raise if one of them cannot be used; a saved model may hold anything."""
        for what, value in (("name", self.name), ("revision", self.revision)):
            printable = isinstance(value, str) and value.isprintable() and len(value) <= LONGEST_NAME
            if value is not None and not printable:
                raise UsageError(f"the encoder's {what} is {value!r:.60}; expected a printable string")
        # A revision becomes part of a path in the hub's cache.
        outside = self.revision is not None and (".." in self.revision or self.revision.startswith("/"))
        require(not outside, "revision", self.revision, "a commit, tag or branch")
        require(self.pooling in (None, *POOLINGS), "pooling", self.pooling, "'mean' or 'cls'")
        require(self.precision in (None, *PRECISIONS), "precision", self.precision, "'full' or 'int8'")
        known = self.graph is None or whole_number(self.graph, 1, GRAPH_VERSION)
        require(known, "graph", self.graph, f"a version up to {GRAPH_VERSION} of the graph in 8 bits")
        require(self.normalize in (None, True, False), "normalize", self.normalize, "True, False or None")
        usable = self.max_length is None or whole_number(self.max_length, 3, LONGEST_TEXT)
        lengths = f"at least 3, since two tokens mark a text's ends, and at most {LONGEST_TEXT:,}"
        require(usable, "max_length", self.max_length, lengths)

    @property
    def graph_version(self) -> int:
        """The version of the int8 graph, if there is one."""
        return self.graph or GRAPH_VERSION

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for a model's config: those of the first graph as they were when there was no other."""
        return {name: value for name, value in asdict(self).items() if name != "graph" or value not in (None, 1)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """What to_dict gave."""
        return cls(**({} if saved.get("precision") == "full" else {"graph": 1}) | dict(saved))


def require(usable: bool, param: str, value: object, expected: str) -> None:
    """Raise unless the value of a parameter is usable."""
    if not usable:
        raise UsageError(f"{{{param}}} is {value!r:.60}; expected {expected}", param=param)


def own_settings(folder: Path) -> EncoderSettings:
    """What a sentence-transformers folder says of pooling, normalising and length; mean pooling for other folders."""
    if not (folder / "modules.json").is_file():
        return EncoderSettings(str(folder), pooling="mean", normalize=False)
    try:
        found = read_json(folder, "modules.json", list)
        modules = {str(module["type"]).rpartition(".")[2]: str(module["path"]) for module in found}
    except (KeyError, TypeError) as error:
        raise EncoderError(f"{folder}/modules.json does not list modules; download the model's files again") from error
    foreign = set(modules) - {"Transformer", "Pooling", "Normalize"}
    if foreign:
        raise EncoderError(
            f"{folder} has a {', '.join(sorted(foreign))[:200]} module, which strays does not run; load it with "
            "sentence-transformers and pass that object as the encoder: any object with encode(texts) will do"
        )
    pooling = "mean"
    if "Pooling" in modules:
        config = read_json(folder, f"{modules['Pooling']}/config.json", dict)
        mode = config.get("pooling_mode")  # newer files name it outright
        if not isinstance(mode, str):
            prefix = "pooling_mode_"
            mode = "+".join(key.removeprefix(prefix) for key, on in config.items() if key.startswith(prefix) and on)
        pooling = {"mean_tokens": "mean", "cls_token": "cls"}.get(mode, mode)
    return EncoderSettings(str(folder), None, pooling, "Normalize" in modules, _own_length(folder))


def _own_length(folder: Path) -> int | None:
    name = "sentence_bert_config.json"
    length = read_json(folder, name, dict).get("max_seq_length") if (folder / name).is_file() else None
    if length is not None and not whole_number(length, 3, LONGEST_TEXT):
        raise EncoderError(f"{folder / name} gives the length {length!r:.60}; expected a number of tokens, 3 or more")
    return length


def position_limit(config: Any, tokenizer: Any) -> int:
    """The most tokens the model has positions for."""
    positions = getattr(config, "max_position_embeddings", None) or 512
    return int(min(positions - first_position(config), tokenizer.model_max_length))


def first_position(config: Any) -> int:
    """The position of a text's first token: RoBERTa's start behind its padding index."""
    return (config.pad_token_id or 0) + 1 if "roberta" in config.model_type else 0


def read_json(folder: Path, name: str, kind: type) -> Any:
    """A JSON dict or list from a file of the folder; names are the model's own, and may lead nowhere else."""
    path = folder / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise LoadingError(f"{folder} names the file {name!r:.60} outside of it; download the model's files again")
    try:
        if not path.is_file():  # a pipe or device would be read for ever
            raise LoadingError(f"{path} is missing or not a plain file; download the model's files again")
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LoadingError(f"could not read {path} ({first_line(error)}); download the model's files again") from error
    if not isinstance(found, kind):
        raise LoadingError(f"{path} holds no JSON {kind.__name__}; download the model's files again")
    return found


def whole_number(value: object, low: int = 0, high: float = math.inf) -> bool:
    """Whether a value from JSON is a whole number in a range; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
