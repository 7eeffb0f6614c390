"""What config.json says of a BERT, a RoBERTa or an XLM-RoBERTa, checked before it is used.

What the file leaves out is what transformers takes for that kind of model.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from strays.encoders.settings import LONGEST_TEXT, read_json, whole_number
from strays.errors import LoadingError

# RoBERTa's layers are BERT's.
MODEL_TYPES = ("bert", "roberta", "xlm-roberta")
DEFAULTS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"vocab_size": 50265, "pad_token_id": 1},
    "xlm-roberta": {"pad_token_id": 1},
}
# The lowest and the highest number that a model can have; higher ones are of no model, but of somebody's mischief.
LIMITS = {
    "vocab_size": (1, 10_000_000),
    "hidden_size": (1, 65_536),
    "num_hidden_layers": (0, 1000),
    "num_attention_heads": (1, 4096),
    "intermediate_size": (1, 1_000_000),
    "max_position_embeddings": (3, LONGEST_TEXT),
    "type_vocab_size": (0, 1000),
    "pad_token_id": (-1, 10_000_000),
}
MAY_BE_NULL = ("pad_token_id", "position_embedding_type", "tokenizer_class")


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT, by the names that config.json has for them.

    >>> BertConfig.from_dict({"model_type": "roberta", "hidden_size": 384}).pad_token_id
    1
    """

    model_type: str
    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    position_embedding_type: str | None = "absolute"
    is_decoder: bool = False
    tokenizer_class: str | None = None

    @classmethod
    def from_dict(cls, said: dict[str, Any]) -> BertConfig:
        """From the contents of config.json; ValueError unless they can be a model's."""
        known = {each.name for each in fields(cls)}
        config = cls(**DEFAULTS[said["model_type"]] | {key: value for key, value in said.items() if key in known})
        config._check()
        return config

    def _check(self) -> None:
        for name, (low, high) in LIMITS.items():
            expected = f"a whole number from {low} to {high:,}"
            self._require(name, whole_number(getattr(self, name), low, high), expected)
        for name in ("hidden_act", "position_embedding_type", "tokenizer_class"):
            self._require(name, isinstance(getattr(self, name), str), "a string")
        self._require("is_decoder", isinstance(self.is_decoder, bool), "true or false")
        epsilon = self.layer_norm_eps
        is_number = isinstance(epsilon, int | float) and not isinstance(epsilon, bool)
        self._require("layer_norm_eps", is_number and 0 <= epsilon <= 1, "a number from 0 to 1")
        heads = self.num_attention_heads
        self._require("hidden_size", self.hidden_size % heads == 0, f"a multiple of num_attention_heads, {heads}")

    def _require(self, name: str, usable: bool, expected: str) -> None:
        value = getattr(self, name)
        if not usable and not (value is None and name in MAY_BE_NULL):
            raise ValueError(f"{name} is {value!r:.60}; expected {expected}")


def read_config(folder: Path) -> BertConfig | None:
    """The config of a folder, or None if its model is of another kind."""
    said = read_json(folder, "config.json", dict)
    if said.get("model_type") not in MODEL_TYPES:
        return None
    try:
        return BertConfig.from_dict(said)
    except ValueError as error:
        again = "Download the model's files again"
        raise LoadingError(f"could not load the encoder in {folder}: in its config.json {error}. {again}") from error
