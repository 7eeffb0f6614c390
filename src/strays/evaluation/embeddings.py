"""Embeddings of a corpus, computed once and kept.

They lie in parts of some thousand texts under CACHE/embeddings/ENCODER/CORPUS, each text found by its hash. A part is
written as soon as it is encoded, so that a stopped job loses one part at most, and a corpus that grew or a study that
needs more rows only has the new texts encoded.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from strays.cache import cache_folder
from strays.evaluation.corpora import LabelledCorpus

TEXTS_IN_PART = 2048


class KnownEncoder(Protocol):
    """An encoder that can say what its embeddings depend on."""

    @property
    def dimension(self) -> int:
        """Length of an embedding."""

    @property
    def fingerprint(self) -> str:
        """Hash of what an embedding depends on."""

    def encode(self, texts: list[str]) -> np.ndarray:
        """One row for each text."""


def embed(
    corpus: LabelledCorpus,
    rows: Iterable[int],
    encoder: KnownEncoder,
    *,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Embeddings of shape (texts of the corpus, dimension) in which the given rows are filled and all others NaN."""
    root = cache or cache_folder()
    folder = root / "embeddings" / encoder.fingerprint[:16] / Path(corpus.spec.file).stem
    kept = _read(folder)
    rows = sorted(set(rows))
    key = {i: hashlib.blake2b(corpus.texts[i].encode("utf-8", "replace"), digest_size=16).digest() for i in rows}
    missing = [i for i in rows if key[i] not in kept]
    # Texts of like length together: a part is then encoded with little padding.
    missing.sort(key=lambda i: len(corpus.texts[i]))
    for start in range(0, len(missing), TEXTS_IN_PART):
        part = missing[start : start + TEXTS_IN_PART]
        embeddings = encoder.encode([corpus.texts[i] for i in part])
        _write(folder, [key[i] for i in part], embeddings)
        kept |= zip((key[i] for i in part), embeddings, strict=True)
        if progress:
            progress(start + len(part), len(missing))
    out = np.full((len(corpus.texts), encoder.dimension), np.nan, dtype=np.float32)
    for i in rows:
        out[i] = kept[key[i]]
    return out


def _read(folder: Path) -> dict[bytes, np.ndarray]:
    kept: dict[bytes, np.ndarray] = {}
    for path in sorted(folder.glob("*.safetensors")):
        try:
            part = load_file(path)
        except SafetensorError:  # torn by a power cut, say; its texts are encoded again
            path.unlink()
            continue
        kept |= zip((row.tobytes() for row in part["key"]), part["embedding"], strict=True)
    return kept


def _write(folder: Path, keys: list[bytes], embeddings: np.ndarray) -> None:
    """A new part, there whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    name = uuid.uuid4().hex
    unfinished = folder / f".{name}.part"
    key = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), -1)
    try:
        save_file({"key": key, "embedding": np.ascontiguousarray(embeddings, dtype=np.float32)}, unfinished)
        unfinished.replace(folder / f"{name}.safetensors")
    finally:
        unfinished.unlink(missing_ok=True)
