"""Models of every kind, fitted and saved, for others to damage."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load

from benchmarks.tiny_bert import save_bert_of
from strays.detectors import DETECTORS, detector_class
from strays.model import TextOutlierDetector
from strays.model.folder import ARRAYS, CONFIG, SEAL, sealed

NAMES = {"F64": "float64", "F32": "float32", "I64": "int64", "I8": "int8", "U8": "uint8"}
CODES = {name: code for code, name in NAMES.items()} | {"float16": "F16", "bool": "BOOL", "int32": "I32"}
CODES |= {"uint32": "U32", "uint64": "U64"}
# Small, so that a case is quick; what is checked does not depend on it.
PARAMS: dict[str, dict[str, Any]] = {
    "ai-svdd": {"hidden_size": 12, "latent_size": 4},
    "deep-svdd": {"hidden_size": 12, "latent_size": 4},
    "deep-sad": {"hidden_size": 12, "latent_size": 4},
    "hypersphere": {"hidden_size": 12, "latent_size": 4},
    "isolation-forest": {"n_estimators": 8, "max_samples": 16},
}
ANIMALS = ("cat", "dog", "bird", "mouse", "horse", "cow", "goat", "hen")
TEXTS = [
    f"the {a} {d} {p}" for p in ("in the garden", "on the roof") for d in ("eats", "runs", "hides") for a in ANIMALS
]
ODD = ["quarterly revenue rose sharply", "the patient was given aspirin", "stocks fell on tuesday"]


class HashEncoder:
    """Texts to vectors by hashed words: quick, and the same everywhere."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings as float32 of shape (len(texts), dimension)."""
        rows = [np.mean([_word(w, self.dimension) for w in text.split() or [""]], axis=0) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dimension)


@lru_cache(maxsize=100_000)
def _word(word: str, dimension: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8])
    return np.random.default_rng(seed).normal(size=dimension)


ENCODER, CASCADE = HashEncoder(8), HashEncoder(5)


@dataclass(frozen=True)
class Entry:
    """An array as safetensors keeps it."""

    name: str
    code: str
    shape: tuple[int, ...]
    data: bytes

    @property
    def array(self) -> np.ndarray:
        """The values."""
        return np.frombuffer(self.data, NAMES[self.code]).reshape(self.shape)

    def holding(self, array: np.ndarray) -> Entry:
        """The same with other values."""
        return replace(
            self, code=CODES[str(array.dtype)], shape=array.shape, data=np.ascontiguousarray(array).tobytes()
        )


@dataclass(frozen=True)
class Saved:
    """A saved model in pieces. Where its encoder is an object, `by_object`, that is passed when it is loaded."""

    name: str
    config: dict[str, Any]
    entries: tuple[Entry, ...]
    by_object: bool

    @classmethod
    def read(cls, folder: Path) -> Saved:
        """From a model's folder."""
        config = json.loads((folder / CONFIG).read_text())
        arrays = load((folder / ARRAYS).read_bytes())
        entries = tuple(Entry(k, CODES[str(a.dtype)], a.shape, a.tobytes()) for k, a in sorted(arrays.items()))
        return cls(folder.name, config, entries, config["encoder"]["settings"] is None)

    def write(
        self,
        folder: Path,
        *,
        entries: Sequence[Entry] | None = None,
        arrays: bytes | None = None,
        config: Any = None,
        text: bytes | None = None,
        rehash: bool = True,
    ) -> None:
        """The model with some pieces replaced; the config has the right hash unless it is told not to."""
        folder.mkdir(parents=True, exist_ok=True)
        data = packed(self.entries if entries is None else entries) if arrays is None else arrays
        config = json.loads(json.dumps(self.config)) if config is None else config
        if rehash and isinstance(config, dict) and "arrays_sha256" in config:
            config["arrays_sha256"] = hashlib.sha256(data).hexdigest()
        if isinstance(config, dict) and SEAL in config:  # whoever changes a config on purpose changes its hash too
            config = sealed(config)
        (folder / ARRAYS).write_bytes(data)
        (folder / CONFIG).write_bytes(json.dumps(config).encode() if text is None else text)


def packed(entries: Sequence[Entry], header: bytes | None = None) -> bytes:
    """As a file of safetensors, written by hand so that anything can be in it."""
    at, head = 0, {}
    for entry in entries:
        head[entry.name] = {
            "dtype": entry.code,
            "shape": list(entry.shape),
            "data_offsets": [at, at := at + len(entry.data)],
        }
    text = json.dumps(head).encode() if header is None else header
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(entry.data for entry in entries)


def save_all(root: Path) -> None:
    """Fit and save a model of every detector, and two whose encoders have files."""
    labels: list[str | None] = [None] * len(TEXTS) + ["anomaly"] * len(ODD)
    for name in DETECTORS:
        detector = detector_class(name)(**PARAMS.get(name, {}))
        model = TextOutlierDetector(ENCODER, detector, keep_examples=10, cascade=CASCADE)
        model.fit([*TEXTS, *ODD], labels).save(root / "saved" / name)
    words = sorted({word for text in [*TEXTS, *ODD] for word in text.split()})
    save_bert_of(words, root / "encoder", layers=1, width=16, inner_width=16, longest=32)
    bert = TextOutlierDetector(str(root / "encoder"), "centroid", keep_examples=10, cascade=True)
    bert.fit([*TEXTS, *ODD], labels).save(root / "saved" / "bert")
    fast = TextOutlierDetector(f"fast:{root / 'encoder'}", "nearest", keep_examples=10)
    fast.fit([*TEXTS, *ODD], labels).save(root / "saved" / "fast")
