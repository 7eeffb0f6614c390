"""A BERT-like transformer as an encoder: tokenize, run, pool.

Nothing is loaded before the first text is encoded, and no weights where all texts are in the cache. Each distinct text
is encoded once. What runs the model is chosen for the machine: PyTorch on a GPU; on a CPU ONNX Runtime where it is
installed and knows the model's kind, and else PyTorch.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from strays.encoders import pretrained, scripts, sources
from strays.encoders.base import LoadedEncoder, Progress, check_texts
from strays.encoders.cache import EmbeddingCache, models_folder
from strays.encoders.cores import usable_cores
from strays.encoders.failures import loading, running
from strays.encoders.runtimes import onnx_graph, onnx_runtime
from strays.encoders.runtimes.torch_runtime import GpuRuntime, PackedGpuRuntime, TorchRuntime, torch_device
from strays.encoders.settings import POOLINGS, EncoderSettings, own_settings, position_limit
from strays.encoders.tokens import Batch, Tokens
from strays.errors import EncoderError, StraysWarning, UsageError
from strays.files import sha256

if TYPE_CHECKING:
    import torch

# Embeddings looked up in the cache and put there together.
LOOKED_UP_TOGETHER, KEPT_TOGETHER = 16_384, 65_536
# Pieces of texts that make up a GPU's batches: the larger these are, the less it has to wait.
GPU_PIECES = 4
# Processes that tokenize for a GPU; each does some 40,000 short texts a second.
MOST_WORKERS = 10


class Runtime(Protocol):
    """What runs a model: batches of token ids to embeddings."""

    @property
    def tokens_per_batch(self) -> int:
        """Tokens in one batch that suit it best, padding included."""

    def run(self, batches: Iterable[Batch]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, embeddings) of each batch, in order."""


class TransformerEncoder(LoadedEncoder):
    """Texts to float32 embeddings by a transformer from a folder, the hub, or the bundled package.

    Parameters
    ----------
    settings
        Which model, and how its tokens become one vector.
    device
        'auto' takes a GPU where there is one; or 'cpu', 'cuda', 'cuda:1', 'mps'.
    runtime
        'auto', 'onnx' or 'torch'.
    tokens_per_batch
        Tokens in one batch, padding included; None for what suits the runtime.
    cache
        Where embeddings are kept and looked up; None for nowhere. Not used on a GPU, which is faster.
    """

    def __init__(
        self,
        settings: EncoderSettings,
        device: str = "auto",
        runtime: str = "auto",
        tokens_per_batch: int | None = None,
        cache: EmbeddingCache | None = None,
    ) -> None:
        self.settings = settings
        self.device = device
        self.runtime = runtime
        self.tokens_per_batch = tokens_per_batch
        self.cache = cache
        self._warns_of_scripts = True
        self._warned_scripts: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        """What the constructor was given: a copy loads the model anew, as sessions and locks cannot be copied."""
        fields = ("settings", "device", "runtime", "tokens_per_batch", "cache", "_warns_of_scripts", "_warned_scripts")
        return {name: self.__dict__[name] for name in fields}

    def without_cache(self) -> Self:
        """The same encoder, but one that keeps no embeddings on disk and looks none up."""
        return self._with(cache=None)

    def without_warnings(self) -> Self:
        """The same encoder, but one that does not warn of texts in a script that it was not made for."""
        return self._with(_warns_of_scripts=False)

    def _with(self, **changes: Any) -> Self:
        """A copy with some fields changed; what is loaded already is shared."""
        other = object.__new__(type(self))
        other.__dict__.update({**self.__dict__, **changes})
        return other

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> np.ndarray:
        """Embeddings of shape (len(texts), dimension); `progress` is told of distinct texts after every batch."""
        texts = _whole_characters(check_texts(texts))
        distinct = list(dict.fromkeys(texts))
        out = np.empty((len(distinct), self.dimension), dtype=np.float32)
        for rows, embeddings in self.stream(distinct, progress=progress):
            out[rows] = embeddings
        if len(distinct) == len(texts):
            return out
        position = {text: i for i, text in enumerate(distinct)}
        return out[[position[text] for text in texts]]

    def stream(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, embeddings of these texts), every row once, in the order that is fastest.

        Never holds more than a few batches, and encodes equal texts as often as they come.
        """
        texts = _whole_characters(check_texts(texts))
        self._warn_of_script(texts)
        is_missing, done = np.ones(len(texts), dtype=bool), 0
        for rows, embeddings in self._kept(texts):
            yield rows, embeddings
            is_missing[rows] = False
            done += len(rows)
            if progress:
                progress(done, len(texts))
        missing = np.flatnonzero(is_missing)
        for rows, embeddings in self._run(texts if not done else [texts[i] for i in missing.tolist()]):
            yield missing[rows], embeddings
            done += len(rows)
            if progress:
                progress(done, len(texts))

    @property
    def dimension(self) -> int:
        """Length of an embedding."""
        return int(self._config.hidden_size)

    @cached_property
    def folder(self) -> Path:
        """Where the model's files are."""
        return sources.find_folder(self.settings.name, self.settings.revision)

    @cached_property
    def resolved(self) -> EncoderSettings:
        """The settings with nothing left open."""
        if self.settings.precision is not None or not self._on_onnx:
            return replace(self._shape, precision=self.settings.precision or "full")
        return replace(self._shape, precision=self._onnx_model.kept.best)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the weights, the vocabulary and the settings: what an embedding depends on."""
        if self.resolved.precision == "full":
            return self._base_fingerprint
        exactly = f"{self._base_fingerprint}\nprecision=int8\ngraph={onnx_graph.GRAPH_VERSION}"
        return hashlib.sha256(exactly.encode()).hexdigest()

    @property
    def pinned(self) -> EncoderSettings:
        """The settings that make the same encoder again on another machine, whatever is installed there."""
        return self.settings if self.settings.precision else replace(self.settings, precision=self.resolved.precision)

    @property
    def runs_on(self) -> str:
        """What runs the model, in words."""
        device = self._torch_device
        if self._on_onnx:
            numbers = "int8" if self.resolved.precision == "int8" else "float32"
            return f"ONNX Runtime, {numbers}, {usable_cores()} thread{'s' * (usable_cores() > 1)}"
        if device.type != "cuda":
            return f"PyTorch, float32, {device.type}"
        import torch

        return f"PyTorch, bfloat16, {torch.cuda.get_device_name(device)}"

    @property
    def scoring_device(self) -> str:
        """Where a detector may compute: on the GPU that the embeddings come from, else on the CPU."""
        return str(self._torch_device) if self._torch_device.type == "cuda" else "cpu"

    # ---- the cache ---------------------------------------------------------------------------------------------------

    @property
    def _cache(self) -> EmbeddingCache | None:
        """The cache, where encoding takes longer than looking up; bfloat16 rows must not be taken for exact ones."""
        return self.cache if self._torch_device.type == "cpu" else None

    def _kept(self, texts: list[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, embeddings) of texts that are in the cache."""
        if self._cache is None:
            return
        for start in range(0, len(texts), LOOKED_UP_TOGETHER):
            found, embeddings = self._cache.get(self._key, texts[start : start + LOOKED_UP_TOGETHER])
            if found.any() and embeddings.shape[1] == self.dimension:
                yield start + np.flatnonzero(found), embeddings

    def _run(self, texts: list[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, embeddings) of texts that are not kept, which then are.

        Not before all are there, or many: a job that is killed and goes on then meets the same texts in the same
        batches, and gets the same scores to the last digit.
        """
        if not texts:
            return
        fresh: list[tuple[np.ndarray, np.ndarray]] = []
        with loading(self.folder):
            runtime, tokens = self._runtime, self._tokens
        with (
            running(self.folder),
            closing(tokens.batches(texts, self.tokens_per_batch or runtime.tokens_per_batch)) as batches,
        ):
            for rows, embeddings in runtime.run(batches):
                yield rows, embeddings
                if self._cache is not None:
                    fresh.append((rows, embeddings))
                    if sum(len(part) for part, _ in fresh) >= KEPT_TOGETHER:
                        self._keep(texts, fresh)
                        fresh = []
        self._keep(texts, fresh)

    def _keep(self, texts: list[str], fresh: list[tuple[np.ndarray, np.ndarray]]) -> None:
        if self._cache is not None and fresh:
            rows = np.concatenate([part for part, _ in fresh])
            self._cache.put(self._key, [texts[i] for i in rows], np.concatenate([part for _, part in fresh]))

    @cached_property
    def _key(self) -> str:
        """What kept embeddings and graphs are found by: the fingerprint, and all files that say how to use the weights.

        The fingerprint alone decides whether a saved model may be used, and stays what it was when models were saved.
        """
        return self._with_files(self.fingerprint)

    def _with_files(self, fingerprint: str) -> str:
        names = ("config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
        there = [self.folder / name for name in names if (self.folder / name).is_file()]
        return hashlib.sha256("\n".join([fingerprint, *map(sha256, there)]).encode()).hexdigest()

    # ---- the model ---------------------------------------------------------------------------------------------------

    @cached_property
    def _shape(self) -> EncoderSettings:
        """The settings with nothing but the precision left open."""
        own = own_settings(self.folder)
        given = {key: value for key, value in self.settings.to_dict().items() if value is not None}
        settings = replace(own, **given)
        with loading(self.folder):
            limit = position_limit(self._config, self._tokenizer)
        length = min(settings.max_length or limit, limit)
        if settings.pooling not in POOLINGS:
            raise EncoderError(
                f"{self.settings.name} pools its tokens by {settings.pooling}; expected {' or '.join(POOLINGS)}. Say "
                "which to use with pooling=, or pass an encoder object of your own"
            )
        return replace(settings, max_length=length)

    @cached_property
    def _base_fingerprint(self) -> str:
        shape = self._shape.to_dict()
        files = [*sources.weight_files(self.folder), *sources.vocabulary_files(self.folder)]
        parts = [sha256(path) for path in files]
        parts += [f"{key}={shape[key]}" for key in ("pooling", "normalize", "max_length")]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @cached_property
    def _torch_device(self) -> torch.device:
        device = torch_device(self.device)
        if device.type == "mps" and self.device == "auto" and self._needs_onnx:
            device = torch_device("cpu")  # the only place for 8-bit products
        if device.type != "cpu" and self.runtime == "onnx":
            raise UsageError(f"runtime is 'onnx' and the device {device.type}; ONNX Runtime is for device='cpu'")
        return device

    @property
    def _needs_onnx(self) -> bool:
        return self.runtime == "onnx" or self.settings.precision == "int8"

    @cached_property
    def _on_onnx(self) -> bool:
        """Whether ONNX Runtime is what runs the model."""
        if self.runtime == "torch" or self._torch_device.type != "cpu":
            return False
        try:
            return self._onnx_is_ready()
        except EncoderError:
            if self._needs_onnx:
                raise
            return False

    def _onnx_is_ready(self) -> bool:
        name = self.settings.name
        if not onnx_runtime.available():
            raise EncoderError(
                f"the encoder {name!r} is to run in 8 bits or on ONNX Runtime, which is not installed; install it: "
                f"{onnx_runtime.PIP}"
            )
        if not onnx_graph.supports(self._config):
            raise EncoderError(
                f"the encoder {name!r} is a {self._config.model_type}, which strays cannot run in 8 bits or on ONNX "
                f"Runtime; expected one of {', '.join(onnx_graph.MODEL_TYPES)}. Leave precision and runtime to strays"
            )
        size = sum(path.stat().st_size for path in sources.weight_files(self.folder))
        if size > onnx_graph.MOST_BYTES:
            raise EncoderError(f"the encoder {name!r} has {size / 1e9:.1f} GB of weights, too many for one ONNX graph")
        _ = self._onnx_model.kept
        return True

    @cached_property
    def _runtime(self) -> Runtime:
        if self._on_onnx:
            return onnx_runtime.OnnxRuntime(self._onnx_model, str(self.resolved.precision))
        device, model = self._torch_device, pretrained.load_model(self.folder)
        if device.type != "cuda":
            return TorchRuntime(model, self._shape, device)
        if onnx_graph.supports(self._config):
            return PackedGpuRuntime(model, self._config, self._shape, device)
        return GpuRuntime(model, self._shape, device)

    @cached_property
    def _onnx_model(self) -> onnx_runtime.OnnxModel:
        name = f"onnx-{onnx_graph.GRAPH_VERSION}-{self._with_files(self._base_fingerprint)[:16]}"
        load = partial(pretrained.load_model, self.folder)
        return onnx_runtime.OnnxModel(models_folder() / name, self._shape, self._config, load)

    @cached_property
    def _config(self) -> Any:
        return pretrained.load_config(self.folder)

    @cached_property
    def _tokenizer(self) -> Any:
        return pretrained.load_tokenizer(self.folder)

    @cached_property
    def _tokens(self) -> Tokens:
        length = self._shape.max_length or 0
        if self._torch_device.type != "cuda":
            return Tokens(self._tokenizer, length)
        n_workers = min(MOST_WORKERS, usable_cores() - 2)
        return Tokens(self._tokenizer, length, GPU_PIECES, n_workers if n_workers > 1 else 0)

    def _warn_of_script(self, texts: list[str]) -> None:
        if not self._warns_of_scripts:
            return
        counts = scripts.script_counts(texts)
        if 2 * counts["LATIN"] >= counts.total():
            return  # Latin pieces are in every vocabulary in use
        script = scripts.foreign_script(counts, self._vocabulary_scripts)
        if script is None or script in self._warned_scripts:
            return
        self._warned_scripts.add(script)
        warnings.warn(
            f"most of these texts are in {scripts.readable(script)} script, which the encoder {self.settings.name!r} "
            f"was not made for; expect poor scores. A better choice: encoder={scripts.better_choice(script)!r}, or the "
            "folder of any model made for the language",
            StraysWarning,
            stacklevel=3,
        )

    @cached_property
    def _vocabulary_scripts(self) -> set[str]:
        tokenizer = self._tokenizer
        pieces = tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
        return scripts.known_scripts(pieces) | {"LATIN"}


def _whole_characters(texts: list[str]) -> list[str]:
    """A lone surrogate is no character and cannot be tokenized; the replacement keeps the rest of its text."""
    try:
        "".join(texts).encode("utf-8")
    except UnicodeEncodeError:
        return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    return texts
