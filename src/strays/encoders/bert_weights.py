"""The weights of a BERT from safetensors files, mapped, as float32.

Heads for other tasks are left where they are, and names are those of the model without a head: `bert.` and `roberta.`
go, and so do gamma and beta, as the first BERTs called what is weight and bias now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import numpy as np
from safetensors import safe_open

from strays.encoders.bert_config import BertConfig
from strays.encoders.settings import read_json
from strays.encoders.sources import weight_files
from strays.encoders.tensor_files import MappedFile, stored_tensors
from strays.errors import LoadingError

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
# How numbers may be stored.
FLOATS = ("F32", "F64", "F16", "BF16")
PREFIXES = ("bert.", "roberta.")
EARLIER_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


class Weights(Mapping[str, np.ndarray]):
    """Tensors by their names, in memory."""

    def __init__(self, tensors: Mapping[str, np.ndarray]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> np.ndarray:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def require_unchanged(self) -> None:
        """Raise if somebody wrote to a file that tensors are mapped from."""


class BertWeights(Weights):
    """A name -> the tensor, read when it is used and not kept; every tensor that the config speaks of is there."""

    def __init__(self, folder: Path, config: BertConfig) -> None:
        self._files = [_mapped(path) for path in _files(folder)]
        found = (stored_tensors(file.data).items() for file in self._files)
        stored = {_plain_name(name): tensor for name, tensor in chain.from_iterable(found)}
        expected = shapes(config)
        if missing := [name for name in expected if name not in stored]:
            raise _unusable(
                folder, f"lack {', '.join(missing[:3])}" + f" and {len(missing) - 3} more" * (len(missing) > 3)
            )
        for name, shape in expected.items():
            tensor = stored[name]
            if tensor.shape != shape:
                raise _unusable(folder, f"have {name} in the shape {tensor.shape}, but config.json says {shape}")
            if tensor.dtype not in FLOATS:
                raise _unusable(folder, f"have {name} as {tensor.dtype}; expected one of {', '.join(FLOATS)}")
        self._stored = {name: stored[name] for name in expected}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._stored[name].float32()

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def require_unchanged(self) -> None:
        """Raise if somebody wrote to one of the files since they were mapped."""
        for file in self._files:
            file.require_unchanged()


def shapes(config: BertConfig) -> dict[str, tuple[int, ...]]:
    """The name and the shape of every tensor of a model."""
    d, inner = config.hidden_size, config.intermediate_size
    found: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (config.vocab_size, d),
        "embeddings.position_embeddings.weight": (config.max_position_embeddings, d),
    }
    if config.type_vocab_size:
        found["embeddings.token_type_embeddings.weight"] = (config.type_vocab_size, d)
    dense = {f"attention.self.{role}": (d, d) for role in ("query", "key", "value")}
    dense |= {"attention.output.dense": (d, d), "intermediate.dense": (inner, d), "output.dense": (d, inner)}
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{i}." for i in range(config.num_hidden_layers)):
        for name, shape in dense.items():
            found |= {f"{layer}{name}.weight": shape, f"{layer}{name}.bias": shape[:1]}
        norms += [f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"]
    return found | {f"{name}.{kind}": (d,) for name in norms for kind in ("weight", "bias")}


def is_safetensors(folder: Path) -> bool:
    """Whether a folder's weights are safetensors; older ones are read by PyTorch."""
    return bool(_files(folder))


def _files(folder: Path) -> list[Path]:
    """The files that transformers would read: one, or those that an index names."""
    there = {path.name: path for path in weight_files(folder)}
    if WEIGHTS in there or not (folder / INDEX).is_file():
        return [there[WEIGHTS]] if WEIGHTS in there else []
    named = read_json(folder, INDEX, dict).get("weight_map")
    names = set(named.values()) if isinstance(named, dict) and all(isinstance(v, str) for v in named.values()) else {""}
    if lost := sorted(names - set(there)):
        raise _unusable(folder, f"are not all there: {INDEX} names the file {lost[0]!r:.60}")
    return [there[name] for name in sorted(names)]


def _mapped(path: Path) -> MappedFile:
    with safe_open(path, framework="np"):  # which checks that the header is in order and fits the file
        return MappedFile(path)


def _plain_name(name: str) -> str:
    name = next((name.removeprefix(prefix) for prefix in PREFIXES if name.startswith(prefix)), name)
    for earlier, now in EARLIER_NAMES.items():
        name = name.replace(earlier, now)
    return name


def _unusable(folder: Path, why: str) -> LoadingError:
    return LoadingError(f"could not load the encoder in {folder}: its weights {why}. Download the model's files again")
