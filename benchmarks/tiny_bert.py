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
    sizes = BertConfig.from_dict(config)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(random_weights(sizes, seed), folder / "model.safetensors", metadata={"format": "pt"})


def random_weights(config: BertConfig, seed: int) -> dict[str, np.ndarray]:
    """What transformers gives a new BERT after torch.manual_seed(seed), to rounding."""
    found, draws = shapes(config), np.random.RandomState(seed)
    drawn = [name for name in found if name.endswith("weight") and "LayerNorm" not in name]
    # PyTorch has filled all of them before transformers does, and biases and BERT's pooler too.
    tables = [rows * columns for rows, columns in (found[name] for name in drawn if "embeddings" in name)]
    layers = [rows * (columns + 1) for rows, columns in (found[name] for name in drawn if "layer" in name)]
    pooler = config.hidden_size * (config.hidden_size + 1)
    draws.randint(0, 2**32, sum(map(_n_draws, tables)) + sum(layers) + pooler, np.uint32)
    weights: dict[str, np.ndarray] = {
        name: np.full(shape, float("weight" in name), dtype=np.float32) for name, shape in found.items()
    }
    weights |= {name: np.float32(0.02) * _normal(draws, found[name]) for name in drawn}
    weights["embeddings.word_embeddings.weight"][config.pad_token_id or 0] = 0
    return weights


def _normal(draws: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
    """Normal numbers by Box and Muller, 16 at a time, as PyTorch makes them; the last 16 anew where some are left."""
    n = int(np.prod(shape))
    uniform = (draws.randint(0, 2**32, _n_draws(n), np.uint32) % 2**24).astype(np.float32) * np.float32(2**-24)
    blocks = uniform[: n // 16 * 16] if n % 16 == 0 else np.r_[uniform[: n // 16 * 16], uniform[n:]]
    first, second = blocks.reshape(-1, 2, 8).transpose(1, 0, 2)
    radius, angle = np.sqrt(-2 * np.log(1 - first)), np.float32(2 * np.pi) * second
    made = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)
    out = np.empty(n, dtype=np.float32)
    out[: n // 16 * 16] = made[: n // 16 * 16]
    out[n - 16 :] = made[-16:]
    return out.reshape(shape)


def _n_draws(n: int) -> int:
    return n if n % 16 == 0 else n + 16
