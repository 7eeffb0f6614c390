"""A BERT-like transformer as an encoder: look texts up in the cache, tokenize the others, run the model, pool.

Nothing is loaded before the first text is encoded, and no weights if all texts are in the cache. Equal texts are
encoded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from strays.encoders import identity
from strays.encoders.base import Embedded, LoadedEncoder, Progress
from strays.encoders.bert_config import MODEL_TYPES
from strays.encoders.cache import EmbeddingCache
from strays.encoders.inputs import check_texts, whole_characters
from strays.encoders.languages import Vocabulary
from strays.encoders.library_errors import TORCH_PIP, loading, running
from strays.encoders.low_rank import LowRankUpdates
from strays.encoders.pretrained import Pretrained
from strays.encoders.runtimes import onnx_graph
from strays.encoders.runtimes.base import Runtime, usable_cores
from strays.encoders.runtimes.choice import RuntimeChoice
from strays.encoders.runtimes.devices import has_torch
from strays.encoders.settings import EncoderSettings
from strays.encoders.sources import Fetch
from strays.encoders.tokenizer import Batch, BatchTokenizer
from strays.errors import UsageError

if TYPE_CHECKING:
    from strays.encoders.trainable_bert import TrainableBert

# How many texts are looked up in the cache at a time, and how many embeddings are stored there at a time.
LOOKED_UP_TOGETHER, STORED_TOGETHER = 16_384, 65_536
# Raise it when the same encoder's embeddings change in their last digits: the cache then looks up none of the old ones.
ROUNDING = 2
# Pieces of texts that make up a GPU's batches: the larger these are, the less it has to wait.
GPU_PIECES = 4
# Tokens of texts that are only tokenized, at a time.
TOGETHER = 8192
# Processes that tokenize for a GPU; each does some 40,000 short texts a second.
MOST_WORKERS = 10


@dataclass(eq=False, repr=False)
class TransformerEncoder(LoadedEncoder):
    """Texts to float32 embeddings by a transformer from a folder, the hub, or the bundled package.

    The parameters are those of `load_encoder`, and `updates` of its matrices, which come from tuning. On ONNX Runtime a
    text's embedding is the same, bit for bit, whatever other texts are encoded with it; on PyTorch it may differ in its
    last digits. No `cache` is used on a GPU, which is faster.

    >>> from strays.encoders import load_encoder
    >>> encoder = load_encoder("default")
    >>> encoder
    TransformerEncoder('default')
    >>> encoder.encode(["The invoice is attached.", "WIN a free cruise!!!"]).shape  # doctest: +SKIP
    (2, 384)
    """

    settings: EncoderSettings
    device: str = "auto"
    runtime: str = "auto"
    tokens_per_batch: int | None = None
    cache: EmbeddingCache | None = None
    fetch: Fetch = Fetch.ASKED
    updates: LowRankUpdates | None = None
    _warns: bool = field(default=True, init=False)
    _warned: set[str] = field(default_factory=set, init=False)

    def __getstate__(self) -> dict[str, Any]:
        """What the constructor was given: a copy loads the model anew, since sessions and locks cannot be copied."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def without_cache(self) -> Self:
        """The same encoder, but one that neither stores embeddings on disk nor looks them up."""
        return self._with(cache=None)

    def without_warnings(self) -> Self:
        """The same encoder, but one that warns neither of languages it was not made for nor of texts that it cuts."""
        return self._with(_warns=False)

    def _with(self, **changes: Any) -> Self:
        """The same encoder with some fields changed; what is loaded already is shared."""
        other = object.__new__(type(self))
        other.__dict__.update({**self.__dict__, **changes})
        return other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings.name!r}{', tuned' if self.updates is not None else ''})"

    def updated(self, updates: LowRankUpdates) -> Self:
        """The same encoder with updates of its matrices in place of any that it has."""
        other = type(self)(**{each.name: getattr(self, each.name) for each in fields(self) if each.init})
        other.updates, other._warns, other._warned = updates, self._warns, self._warned
        return other

    @property
    def config(self) -> Any:
        """The model's kind and sizes."""
        return self._pretrained.config

    @property
    def can_learn(self) -> bool:
        """Whether it is of a kind that can be tuned, and is not tuned yet."""
        return self.updates is None and onnx_graph.supports(self.config)

    def require_trainable(self) -> None:
        """Raise if it cannot learn: it is of another kind than BERT's, tuned already, or PyTorch is missing."""
        name, config = self.settings.name, self.config
        if self.updates is not None:
            raise UsageError(
                f"{{tune}}: the encoder {name!r} is tuned already; tune the one it came from", param="tune"
            )
        if not onnx_graph.supports(config):
            kinds = ", ".join(MODEL_TYPES)
            found = f"{{tune}}: the encoder {name!r} is a {config.model_type}; expected one of {kinds}"
            raise UsageError(found, param="tune")
        if not has_torch():
            needs = f"{{tune}} needs PyTorch and transformers, which are not installed: {TORCH_PIP}"
            raise UsageError(needs, param="tune")

    def trainable(self) -> TrainableBert:
        """The same in PyTorch, where its matrices learn updates. Needs the extra torch."""
        self.require_trainable()
        from strays.encoders.trainable_bert import TrainableBert

        with loading(self.folder):
            return TrainableBert(
                self._pretrained.weights(), self._pretrained.config, self._pretrained.shape, self._choice.device
            )

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text, as many as the encoder reads."""
        ids: list[list[int]] = [[]] * len(texts)
        with loading(self.folder):
            tokenizer = self._tokenizer
        with (
            running(self.folder),
            closing(tokenizer.batches(whole_characters(check_texts(texts)), TOGETHER)) as batches,
        ):
            for batch in batches:
                of_text = np.split(batch.packed, np.cumsum(batch.lengths)[:-1])
                for row, found in zip(batch.rows.tolist(), of_text, strict=True):
                    ids[row] = found.tolist()
        return ids

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> np.ndarray:
        """Embeddings of shape (len(texts), dimension); `progress` counts equal texts once."""
        texts = whole_characters(check_texts(texts))
        position = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        out = np.empty((len(position), self.dimension), dtype=np.float32)
        for rows, embeddings in self.stream(list(position), progress=progress):
            out[rows] = embeddings
        return out if len(position) == len(texts) else out[[position[text] for text in texts]]

    def stream(self, texts: Sequence[str], *, progress: Progress | None = None) -> Iterator[Embedded]:
        """(rows, embeddings), every row once, in the fastest order; never holds more than a few batches."""
        texts = whole_characters(check_texts(texts))
        self._warn_of_language(texts)
        is_missing, done = np.ones(len(texts), dtype=bool), 0
        for rows, embeddings in chain(self._look_up(texts), self._run(texts, is_missing)):  # begun when the first ends
            yield rows, embeddings
            is_missing[rows] = False
            done += len(rows)
            if progress:
                progress(done, len(texts))

    @property
    def dimension(self) -> int:
        """Length of an embedding."""
        return int(self._pretrained.config.hidden_size)

    @property
    def folder(self) -> Path:
        """Where the model's files are."""
        return self._pretrained.folder

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the model's files and the settings: everything that an embedding depends on."""
        return self._in_precision(self._pretrained.fingerprint)

    @cached_property
    def fingerprint_0_1(self) -> str:
        """What version 0.1 called so: of weights, vocabulary and settings, but of no config."""
        return self._in_precision(self._pretrained.fingerprint_0_1)

    def _in_precision(self, full: str) -> str:
        if self._choice.precision == "full":
            return full
        return identity.in_int8(full, self.settings.graph_version)

    @property
    def files(self) -> dict[str, str]:
        """The digest of each of the model's files that decide an embedding, by its name."""
        return self._pretrained.files

    @property
    def made_files(self) -> dict[str, str]:
        """The digest of the graph that ONNX Runtime runs, if it does."""
        return self._choice.graph

    @property
    def pinned(self) -> EncoderSettings:
        """The settings that give the same encoder on another machine, whatever is installed there."""
        precision = self.settings.precision or self._choice.precision
        graph = self.settings.graph_version if precision == "int8" else None
        return replace(self.settings, precision=precision, graph=graph)

    @property
    def runs_on(self) -> str:
        """What runs the model, in words."""
        return str(self._choice)

    @property
    def scoring_device(self) -> str:
        """Where a detector may compute: on the GPU that the embeddings come from, else on the CPU."""
        return self._choice.device if self._choice.on_gpu else "cpu"

    @cached_property
    def _pretrained(self) -> Pretrained:
        return Pretrained(self.settings, self.fetch, self.updates)

    @cached_property
    def _choice(self) -> RuntimeChoice:
        return RuntimeChoice(self._pretrained, self.device, self.runtime)

    @cached_property
    def _runtime(self) -> Runtime:
        return self._choice.load()

    @cached_property
    def _tokenizer(self) -> BatchTokenizer:
        tokenizer, length = self._pretrained.tokenizer, self._pretrained.shape.max_length or 0
        if not self._choice.on_gpu:
            return BatchTokenizer(tokenizer, length)
        n_workers = min(MOST_WORKERS, usable_cores() - 2)
        return BatchTokenizer(tokenizer, length, GPU_PIECES, n_workers if n_workers > 1 else 0, mixed=True)

    def _run(self, texts: list[str], is_missing: np.ndarray) -> Iterator[Embedded]:
        """(rows, embeddings) of texts that are missing from the cache, which are then stored there.

        They are stored when all are done, or many: a job that is killed and resumed then meets the same texts in the
        same batches, and gets the same scores to the last digit even where PyTorch's digits depend on the batch.
        """
        missing = np.flatnonzero(is_missing)
        if not len(missing):
            return
        if len(missing) < len(texts):
            texts = [texts[i] for i in missing.tolist()]
        fresh: list[Embedded] = []
        with loading(self.folder):
            runtime, tokenizer = self._runtime, self._tokenizer
        tokens_per_batch = self.tokens_per_batch or runtime.tokens_per_batch
        with running(self.folder), closing(tokenizer.batches(texts, tokens_per_batch)) as batches:
            for rows, embeddings in runtime.run(self._counted(batches, len(texts))):
                yield missing[rows], embeddings
                if self._cache is not None:
                    fresh.append((rows, embeddings))
                    if sum(len(part) for part, _ in fresh) >= STORED_TOGETHER:
                        self._store(texts, fresh)
                        fresh = []
        self._store(texts, fresh)

    def _counted(self, batches: Iterable[Batch], n_texts: int) -> Iterator[Batch]:
        """The same batches; when all have been asked for, it reports how many texts were cut."""
        n_cut = 0
        for batch in batches:
            n_cut += batch.n_cut
            yield batch
        self._report_cut(n_texts, n_cut, self._tokenizer.max_length)

    @property
    def _cache(self) -> EmbeddingCache | None:
        """The cache, if encoding takes longer than looking up; bfloat16 rows must not be taken for exact ones."""
        return self.cache if self._choice.device == "cpu" else None

    @property
    def _key(self) -> str:
        """What embeddings are stored under: the encoder, and the graph that made them, as it is now."""
        return identity.fingerprint(self.made_files, [self.fingerprint, f"rounding={ROUNDING}"])

    def _look_up(self, texts: list[str]) -> Iterator[Embedded]:
        """(rows, embeddings) of texts that are in the cache."""
        if self._cache is None:
            return
        for start in range(0, len(texts), LOOKED_UP_TOGETHER):
            found, embeddings = self._cache.get(self._key, texts[start : start + LOOKED_UP_TOGETHER])
            if found.any() and embeddings.shape[1] == self.dimension:
                yield start + np.flatnonzero(found), embeddings

    def _store(self, texts: list[str], fresh: list[Embedded]) -> None:
        if self._cache is not None and fresh:
            rows = np.concatenate([part for part, _ in fresh])
            self._cache.put(self._key, [texts[i] for i in rows], np.concatenate([part for _, part in fresh]))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self._pretrained.tokenizer.pieces())
