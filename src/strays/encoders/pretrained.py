"""A transformer's folder: its config, tokenizer and weights, and how they are used.

Those of a BERT, a RoBERTa or an XLM-RoBERTa are read here; transformers reads what else there is. Matrices may have
updates, which come from tuning and are no part of the folder.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from strays.encoders import identity, sources, tokenizer_files, transformers_models
from strays.encoders.bert_config import BertConfig, read_config
from strays.encoders.bert_weights import BertWeights, Weights, is_safetensors
from strays.encoders.library_errors import loading
from strays.encoders.low_rank import LowRankUpdates, UpdatedWeights
from strays.encoders.pinned import digest
from strays.encoders.settings import POOLINGS, EncoderSettings, own_settings, position_limit
from strays.encoders.tokenizer_files import FastTokenizer
from strays.encoders.transformers_models import SlowTokenizer
from strays.errors import EncoderError, LoadingError


class Pretrained:
    """The files of a transformer, found and read when they are needed."""

    def __init__(
        self,
        settings: EncoderSettings,
        fetch: sources.Fetch = sources.Fetch.ASKED,
        updates: LowRankUpdates | None = None,
    ) -> None:
        self.settings = settings
        self.fetch = fetch
        self.updates = updates

    @cached_property
    def folder(self) -> Path:
        """Where the files are."""
        return sources.find_folder(self.settings.name, self.settings.revision, self.fetch)

    @cached_property
    def config(self) -> Any:
        """What config.json says of the model: a BertConfig, or what transformers makes of another kind's."""
        return read_config(self.folder) or transformers_models.load_config(self.folder)

    @cached_property
    def tokenizer(self) -> FastTokenizer | SlowTokenizer:
        """The tokenizer."""
        with loading(self.folder):
            own = tokenizer_files.load_tokenizer(self.folder, self.config) if self._is_bert else None
        return own or transformers_models.load_tokenizer(self.folder)

    def weights(self) -> Weights:
        """The weights by their names: those that the fingerprint is of.

        safetensors files are mapped: whoever goes on using them calls `require_unchanged`.
        """
        hashed = self.files
        with loading(self.folder):
            if not (self._is_bert and is_safetensors(self.folder)):
                model = self.model("has weights that are no safetensors")
                return Weights({name: value.numpy() for name, value in model.state_dict().items()})
            weights: Weights = BertWeights(self.folder, self.config)
            if self.updates is not None:
                weights = UpdatedWeights(weights, self.updates)
        for path in sources.weight_files(self.folder):
            if digest(path) != hashed.get(path.name):
                raise LoadingError(f"{path} changed while it was read; run this again")
        return weights

    def model(self, because: str = "is to run on PyTorch") -> Any:
        """The model of PyTorch with its weights, read anew with every call; an error says `because` of what."""
        model = transformers_models.load_model(self.folder, because)
        with loading(self.folder):
            for name, update in (self.updates or {}).items():
                W = model.get_parameter(name).data
                W.copy_(W.new_tensor(update.applied(W.numpy())))
        return model

    @property
    def _is_bert(self) -> bool:
        return isinstance(self.config, BertConfig)

    @cached_property
    def shape(self) -> EncoderSettings:
        """The settings with everything but the precision decided: by the user, else by the model's own files."""
        given = {key: value for key, value in vars(self.settings).items() if value is not None}
        settings = replace(own_settings(self.folder), **given)
        with loading(self.folder):
            limit = position_limit(self.config, self.tokenizer)
        if settings.pooling not in POOLINGS:
            raise EncoderError(
                f"{self.settings.name} pools its tokens by {settings.pooling}; expected {' or '.join(POOLINGS)}. Set "
                "{pooling} to one of them, or pass an encoder object of your own",
                param="pooling",
            )
        return replace(settings, max_length=min(settings.max_length or limit, limit))

    @cached_property
    def files(self) -> dict[str, str]:
        """The digest of each file that decides an embedding, and of what tuning changes of them."""
        tuned = {} if self.updates is None else {identity.TUNING: self.updates.digest}
        return identity.digests(self.folder) | tuned

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the files and the shape: what a full-precision embedding depends on."""
        return identity.fingerprint(self.files, identity.shape_lines(self.shape))

    @cached_property
    def fingerprint_0_1(self) -> str:
        """The same as version 0.1 had it."""
        tuned = [] if self.updates is None else [self.updates.digest]
        return identity.fingerprint_0_1(self.folder, [*identity.shape_lines(self.shape), *tuned])
