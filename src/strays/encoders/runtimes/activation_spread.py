"""How large the numbers are that a BERT multiplies by its weights, channel by channel.

Some channels are ten times as large as the others, whatever the text, and in 8 bits would leave few steps to these.
Random tokens show which. All is computed in float64, so that rounded to powers of two it is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from strays.encoders.settings import first_position

# Random texts, tokens of each, and the share of the tokens whose numbers are no larger.
TEXTS, TOKENS, SHARE = 16, 16, 0.99
# Channels that are nearly always zero are taken to be of this size.
LEAST = 1e-4


def input_spread(weights: Mapping[str, np.ndarray], config: Any) -> dict[str, np.ndarray]:
    """How large each channel is: of each normalised sum, and of what each attention mixes, by their weights' names."""
    spread: dict[str, np.ndarray] = {}

    def of(name: str) -> np.ndarray:
        return np.asarray(weights[name], dtype=np.float64)

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return x @ of(f"{name}.weight").T + of(f"{name}.bias")

    def noted(x: np.ndarray, name: str) -> np.ndarray:
        spread[name] = np.maximum(np.quantile(np.abs(x).reshape(-1, x.shape[-1]), SHARE, axis=0), LEAST)
        return x

    def normalised(x: np.ndarray, name: str) -> np.ndarray:
        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=-1, keepdims=True) + config.layer_norm_eps)
        return noted(x * of(f"{name}.weight") + of(f"{name}.bias"), name)

    first, heads = first_position(config), config.num_attention_heads
    n = min(TOKENS, config.max_position_embeddings - first)
    ids = np.random.default_rng(0).integers(config.vocab_size, size=(TEXTS, n))
    x = np.asarray(weights["embeddings.word_embeddings.weight"][ids], dtype=np.float64)
    x += of("embeddings.position_embeddings.weight")[first : first + n]
    if "embeddings.token_type_embeddings.weight" in weights:
        x += of("embeddings.token_type_embeddings.weight")[0]
    x = normalised(x, "embeddings.LayerNorm")
    for layer in (f"encoder.layer.{i}." for i in range(config.num_hidden_layers)):
        query, key, value = (
            dense(x, f"{layer}attention.self.{role}").reshape(TEXTS, n, heads, -1).swapaxes(1, 2)
            for role in ("query", "key", "value")
        )
        likeness = query @ key.swapaxes(2, 3) / np.sqrt(query.shape[-1])
        attention = np.exp(likeness - likeness.max(axis=-1, keepdims=True))
        attention /= attention.sum(axis=-1, keepdims=True)
        mixed = noted((attention @ value).swapaxes(1, 2).reshape(x.shape), f"{layer}attention.self")
        x = normalised(dense(mixed, f"{layer}attention.output.dense") + x, f"{layer}attention.output.LayerNorm")
        inner = dense(x, f"{layer}intermediate.dense")
        # GELU by its tangent, which is near enough here.
        inner *= 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * inner * (1 + 0.044715 * inner * inner)))
        x = normalised(dense(inner, f"{layer}output.dense") + x, f"{layer}output.LayerNorm")
    return spread
