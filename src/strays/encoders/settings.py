"""What decides an embedding besides the weights, and what a model's own files say of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from strays.errors import EncoderError, first_line

POOLINGS = ("mean", "cls")
PRECISIONS = ("full", "int8")


@dataclass(frozen=True)
class EncoderSettings:
    """What decides an embedding, besides the weights. None: what the model's own files say."""

    name: str
    revision: str | None = None
    pooling: str | None = None
    normalize: bool | None = None
    max_length: int | None = None
    precision: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for a model's config."""
        return asdict(self)


def own_settings(folder: Path) -> EncoderSettings:
    """What a sentence-transformers folder says of pooling, normalising and length; mean pooling for other folders."""
    modules_file = folder / "modules.json"
    if not modules_file.is_file():
        return EncoderSettings(str(folder), pooling="mean", normalize=False)
    modules = {module["type"].rpartition(".")[2]: module["path"] for module in _read_json(modules_file)}
    foreign = set(modules) - {"Transformer", "Pooling", "Normalize"}
    if foreign:
        raise EncoderError(
            f"{folder} has a {', '.join(sorted(foreign))} module, which strays does not run; load it with "
            "sentence-transformers and pass that object as the encoder: any object with encode(texts) will do"
        )
    length_file = folder / "sentence_bert_config.json"
    pooling = "mean"
    if "Pooling" in modules:
        config = _read_json(folder / modules["Pooling"] / "config.json")
        chosen = [
            key.removeprefix("pooling_mode_") for key, on in config.items() if key.startswith("pooling_mode_") and on
        ]
        # Newer files name the mode outright.
        chosen = [config["pooling_mode"]] if isinstance(config.get("pooling_mode"), str) else chosen
        pooling = {"mean_tokens": "mean", "cls_token": "cls"}.get(name := "+".join(chosen), name)
    return EncoderSettings(
        str(folder),
        pooling=pooling,
        normalize="Normalize" in modules,
        max_length=_read_json(length_file).get("max_seq_length") if length_file.is_file() else None,
    )


def position_limit(config: Any, tokenizer: Any) -> int:
    """The most tokens the model has positions for."""
    positions = getattr(config, "max_position_embeddings", None) or 512
    return int(min(positions - first_position(config), tokenizer.model_max_length))


def first_position(config: Any) -> int:
    """The position of a text's first token: RoBERTa's start behind its padding index."""
    return (config.pad_token_id or 0) + 1 if "roberta" in config.model_type else 0


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EncoderError(f"could not read {path} ({first_line(error)}); get the model's files again") from error
