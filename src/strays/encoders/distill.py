"""A table of word pieces distilled from a transformer, and the folder it is stored in.

Every piece t of the vocabulary goes through the transformer once, alone between the marks of a text's ends. Of what it
gives, e_t, the DIMENSION strongest directions are kept, and rare pieces weigh more than common ones:

    row t = P'(e_t - mean e) * a / (a + p_t),   p_t ~ 1 / rank of t

A vocabulary's order stands for the rank. This is the recipe of model2vec (2024), which takes its weights from Arora et
al. (2017), with a smaller a; benchmarks/LOG.md has what else was tried. The kept folder appears complete or not at all,
so that two processes may distil at once; a damaged one is made again.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from strays.encoders import identity
from strays.encoders.base import Progress
from strays.encoders.library_errors import LESS_TO_LOAD, loading, running
from strays.encoders.pretrained import Pretrained
from strays.encoders.runtimes.base import Runtime
from strays.encoders.runtimes.choice import RuntimeChoice
from strays.encoders.runtimes.onnx_runtime import OnnxModel, OnnxRuntime
from strays.encoders.settings import EncoderSettings, own_settings
from strays.encoders.tokenizer import Batch
from strays.encoders.tokenizer_files import FastTokenizer
from strays.errors import EncoderError
from strays.files import replace_folder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Another recipe gives other embeddings: count it up, and models fitted with the older one are refused.
RECIPE = 1
DIMENSION = 256
RARITY = 3e-5  # a of the formula
TABLE, TOKENIZER, CONFIG = "table.safetensors", "tokenizer.json", "config.json"


@dataclass(frozen=True)
class Distilled:
    """A row for each piece of the vocabulary, the embedding of a text without any, and the tokenizer as JSON."""

    table: np.ndarray
    blank: np.ndarray
    tokenizer: str

    def to_bytes(self) -> tuple[bytes, bytes]:
        """As the contents of two files."""
        return save({"table": self.table, "blank": self.blank}), self.tokenizer.encode("utf-8")

    @cached_property
    def digest(self) -> str:
        """Of these contents."""
        return _digest(*self.to_bytes())


def fingerprint(teacher: Path, pooling: str | None) -> str:
    """Hash of what a distillation depends on; the same on every machine, since no float is in it."""
    return identity.fingerprint(identity.digests(teacher), _further(teacher, pooling))


def fingerprint_0_1(teacher: Path, pooling: str | None) -> str:
    """The same as version 0.1 had it."""
    return identity.fingerprint_0_1(teacher, _further(teacher, pooling))


def load_or_distil(
    teacher: Path, pooling: str | None, root: Path | None, progress: Progress | None = None
) -> Distilled:
    """The distillation of a transformer's folder, which is made at the first call and stored under `root`, if any."""
    folder = kept_in(teacher, pooling, root)
    kept = _read(folder) if folder else None
    if kept is None:
        if folder and (folder / CONFIG).exists():
            identity.warn_of_damage(folder)
        kept = distil(teacher, _pooling(teacher, pooling), progress)
        if folder:
            _write(folder, kept)
    return kept


def kept_in(teacher: Path, pooling: str | None, root: Path | None) -> Path | None:
    """Where the distillation of a transformer's folder is stored, once it is made."""
    return root and root / f"{fingerprint(teacher, pooling)[:16]}-{RECIPE}"


def distil(teacher: Path, pooling: str, progress: Progress | None = None) -> Distilled:
    """Run every piece through the transformer and make the table."""
    settings = EncoderSettings(str(teacher.absolute()), pooling=pooling, normalize=False, precision="full")
    files = Pretrained(settings)
    with loading(teacher):
        tokenizer = _load_tokenizer(files)
        runtime = _load_runtime(files)
    with running(teacher, LESS_TO_LOAD):
        return _distil(tokenizer, runtime, progress)


def _load_tokenizer(files: Pretrained) -> Tokenizer:
    """A transformer's tokenizer, which must be one for the library `tokenizers`."""
    if not isinstance(files.tokenizer, FastTokenizer):
        slow = f"the tokenizer in {files.folder} is a slow one"
        raise EncoderError(f"{slow} and cannot be distilled; use another encoder")
    tokenizer = files.tokenizer.backend
    tokenizer.no_padding()
    tokenizer.no_truncation()
    n, known = _n_pieces(tokenizer), files.config.vocab_size
    if n > known:
        raise EncoderError(
            f"the tokenizer in {files.folder} has ids up to {n - 1:,}, but the model knows {known:,}; "
            "expected a tokenizer and a model that belong together. Download the model's files again"
        )
    return tokenizer


def _load_runtime(files: Pretrained) -> Runtime:
    """The transformer in full precision: on ONNX Runtime if that can run it, else on PyTorch."""
    choice = RuntimeChoice(files, "cpu", "auto")
    if not choice.fits_onnx:
        return choice.load()
    return OnnxRuntime(OnnxModel(None, files.shape, files.config, files.weights), "full")


def _distil(tokenizer: Tokenizer, runtime: Runtime, progress: Progress | None) -> Distilled:
    start, end = _ends(tokenizer.encode("a").ids, tokenizer.encode("a", add_special_tokens=False).ids)
    n, width = _n_pieces(tokenizer), len(start) + 1 + len(end)
    at_once = max(1, runtime.tokens_per_batch // width)

    def pieces(first: int) -> Batch:
        return _batch([[*start, i, *end] for i in range(first, min(first + at_once, n))], first)

    rows = []
    for numbers, embeddings in runtime.run(map(pieces, range(0, n, at_once))):
        rows.append(embeddings)
        if progress:
            progress(int(numbers[-1]) + 1, n)
    nothing = [*start, *end] or [0]
    ((_, blank),) = runtime.run([_batch([nothing], 0)])
    return Distilled(*make_table(np.concatenate(rows), blank), tokenizer.to_str())


def _batch(texts: list[list[int]], first: int) -> Batch:
    """Texts of one length as a batch."""
    ids, rows = np.array(texts, dtype=np.int64), np.arange(first, first + len(texts))
    return Batch(rows, ids.ravel(), np.full(len(ids), ids.shape[1]), padding=0, width=ids.shape[1])


def make_table(rows: np.ndarray, blank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The table of the formula from what the transformer gives of every piece and of no text, (n, d) and (1, d)."""
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = rows - mean
    _, vectors = np.linalg.eigh(centred.T @ centred)
    P = vectors[:, ::-1][:, :DIMENSION]  # the strongest directions first
    # A direction's sign is arbitrary; one rule makes it the same everywhere.
    P = P * np.sign(P[np.abs(P).argmax(axis=0), np.arange(P.shape[1])])
    p = 1 / np.arange(1, len(rows) + 1)
    weight = RARITY / (RARITY + p / p.sum())
    table = (centred @ P * weight[:, None]).astype(np.float32)
    return table, ((blank[0] - mean) @ P).astype(np.float32)


def _further(teacher: Path, pooling: str | None) -> list[str]:
    return [f"pooling={_pooling(teacher, pooling)}", f"recipe={RECIPE}"]


def _pooling(teacher: Path, asked: str | None) -> str:
    return "cls" if (asked or own_settings(teacher).pooling) == "cls" else "mean"


def _n_pieces(tokenizer: Tokenizer) -> int:
    return 1 + int(max(tokenizer.get_vocab().values()))  # ids may have holes


def _ends(marked: list[int], bare: list[int]) -> tuple[list[int], list[int]]:
    """What a tokenizer puts before and behind a text."""
    at = next((i for i in range(len(marked)) if marked[i : i + len(bare)] == bare), 0)
    return marked[:at], marked[at + len(bare) :]


def _read(folder: Path) -> Distilled | None:
    """What is kept in a folder, if it is what was written; None where there is nothing, or not all of it."""
    try:
        config = json.loads((folder / CONFIG).read_bytes())
        data, tokenizer = (folder / TABLE).read_bytes(), (folder / TOKENIZER).read_bytes()
        if config["sha256"] == _digest(data, tokenizer):
            arrays = load(data)
            return Distilled(arrays["table"], arrays["blank"], tokenizer.decode("utf-8"))
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError):
        return None
    return None


def _write(folder: Path, made: Distilled) -> None:
    (data, tokenizer), config = made.to_bytes(), {"recipe": RECIPE, "sha256": made.digest}
    if _read(folder) is not None:
        return  # another process was faster, and made the same
    with suppress(OSError), replace_folder(folder) as new:  # a cache that cannot be written to costs time, not results
        (new / TABLE).write_bytes(data)
        (new / TOKENIZER).write_bytes(tokenizer)
        (new / CONFIG).write_text(json.dumps(config), encoding="utf-8")


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
