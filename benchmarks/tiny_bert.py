"""A BERT small enough to build on the spot, with random weights, for tests and attacks. It needs no transformers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from strays.encoders.bert_config import BertConfig
from strays.encoders.bert_weights import shapes


def save_bert_of(
    words: Iterable[str],
    folder: Path,
    *,
    layers: int = 2,
    heads: int = 2,
    width: int = 32,
    inner_width: int = 64,
    longest: int = 64,
    seed: int = 0,
) -> None:
    """Save one as transformers saves models; it knows these words, and others by their letters."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = save_tokenizer_of(words, folder, longest)
    config = {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "vocab_size": len(ids),
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner_width,
        "max_position_embeddings": longest,
    }
    save_random_weights(config, folder, seed)


def save_tokenizer_of(words: Iterable[str], folder: Path, longest: int) -> dict[str, int]:
    """Save a tokenizer that knows these words, letters and the marks of BERT; the id of each piece."""
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{c}" for c in letters), *words]
    ids = {piece: i for i, piece in enumerate(dict.fromkeys(vocabulary))}
    pieces = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    pieces.normalizer = normalizers.BertNormalizer(lowercase=True)
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    pieces.add_special_tokens(list(special.values()))
    pieces.save(str(folder / "tokenizer.json"))
    said = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": longest, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return ids


def save_random_weights(config: dict[str, object], folder: Path, seed: int = 0) -> None:
    """Save the config of a BERT or RoBERTa and weights as they are before any training."""
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in shapes(BertConfig.from_dict(config)).items():
        if name.endswith("bias"):
            weights[name] = np.zeros(shape, dtype=np.float32)
        elif "LayerNorm" in name:
            weights[name] = np.ones(shape, dtype=np.float32)
        else:
            weights[name] = rng.normal(scale=0.02, size=shape).astype(np.float32)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
