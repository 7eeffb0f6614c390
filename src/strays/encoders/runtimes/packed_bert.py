"""A BERT on a GPU without any padding: the tokens of all texts are the rows of one matrix.

Only attention needs to know where a text ends. PyTorch's attention is made for long texts and takes half of the time of
short ones; the kernel below gives each text and head to one small group of threads, which keeps all it needs in
registers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from strays.encoders.settings import first_position

# The kernel keeps a text's attention in registers; longer texts go to PyTorch's.
LONGEST = 128

# (queries, keys and values (tokens, 3 x dimension), starts and lengths (texts,), longest, heads) -> (tokens, dimension)
Attention = Callable[[Tensor, Tensor, Tensor, int, int], Tensor]


class PackedBert:
    """The layers of a BERT of transformers, run on packed texts.

    Its weights are those of `model`, which is used up: matrices that are multiplied with the same rows become one.
    """

    def __init__(self, model: Any) -> None:
        config = model.config
        self.heads, self.epsilon = config.num_attention_heads, config.layer_norm_eps
        self.dimension = config.hidden_size
        weights = dict(model.state_dict())
        self.places = weights["embeddings.position_embeddings.weight"][first_position(config) :]
        if "embeddings.token_type_embeddings.weight" in weights:
            self.places = self.places + weights["embeddings.token_type_embeddings.weight"][0]
        for i in range(config.num_hidden_layers):
            for kind in ("weight", "bias"):
                own = [f"encoder.layer.{i}.attention.self.{role}.{kind}" for role in ("query", "key", "value")]
                weights[f"encoder.layer.{i}.qkv.{kind}"] = torch.cat([weights.pop(name) for name in own])
        self.n_layers, self.weights = config.num_hidden_layers, weights

    def __call__(self, packed: Tensor, lengths: Tensor, longest: int) -> Tensor:
        """The last hidden states (tokens, dimension) of texts whose ids (tokens,) follow one another."""
        starts = lengths.cumsum(0) - lengths
        first = starts.repeat_interleave(lengths, output_size=len(packed))
        place = torch.arange(len(packed), device=packed.device) - first
        attention = attention_for(packed.device, self.dimension // self.heads, longest)
        x = self.weights["embeddings.word_embeddings.weight"][packed] + self.places[place]
        x = self._normalized(x, "embeddings.LayerNorm")
        for i in range(self.n_layers):
            layer = f"encoder.layer.{i}."
            mixed = attention(self._dense(x, f"{layer}qkv"), starts, lengths, longest, self.heads)
            mixed = self._dense(mixed, f"{layer}attention.output.dense")
            x = self._normalized(mixed + x, f"{layer}attention.output.LayerNorm")
            inner = functional.gelu(self._dense(x, f"{layer}intermediate.dense"))
            x = self._normalized(self._dense(inner, f"{layer}output.dense") + x, f"{layer}output.LayerNorm")
        return x

    def _dense(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _normalized(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return functional.layer_norm(x, (self.dimension,), weight, bias, self.epsilon)


def attention_for(device: torch.device, width: int, longest: int) -> Attention:
    """The fastest attention for heads of a width and texts of at most `longest` tokens."""
    fits = device.type == "cuda" and longest <= LONGEST and width in (16, 32, 64, 128)
    return short_attention if fits and _kernel_works(device, width, _block(longest)) else padded_attention


def padded_attention(qkv: Tensor, starts: Tensor, lengths: Tensor, longest: int, heads: int) -> Tensor:
    """Attention by PyTorch, which wants texts as the lines of a padded matrix."""
    own = torch.arange(longest, device=qkv.device) < lengths[:, None]  # (texts, tokens)
    padded = qkv.new_zeros(*own.shape, qkv.shape[1])
    padded[own] = qkv
    q, k, v = padded.view(*own.shape, 3, heads, -1).permute(2, 0, 3, 1, 4)  # (texts, heads, tokens, width)
    mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=own[:, None, None, :])
    return mixed.transpose(1, 2).flatten(2)[own]


def short_attention(qkv: Tensor, starts: Tensor, lengths: Tensor, longest: int, heads: int) -> Tensor:
    """Attention by our own kernel."""
    from strays.encoders.runtimes.triton_attention import kernel

    dimension, block = qkv.shape[1] // 3, _block(longest)
    width = dimension // heads
    out = torch.empty(len(qkv), dimension, dtype=qkv.dtype, device=qkv.device)
    sizes = {"dimension": dimension, "width": width, "block": block, "num_warps": 1 if block <= 32 else 4}
    kernel[(len(lengths), heads)](qkv, out, starts, lengths, width**-0.5, **sizes)
    return out


def _block(longest: int) -> int:
    """Tokens that the kernel looks at together: powers of two."""
    return max(16, 1 << (longest - 1).bit_length())


@cache
def _kernel_works(device: torch.device, width: int, block: int) -> bool:
    """Whether Triton, which comes with PyTorch for GPUs, can compile the kernel for this one; it needs a C compiler."""
    lengths = torch.tensor([2, block], device=device)
    qkv = torch.zeros(2 + block, 3 * width, dtype=torch.bfloat16, device=device)
    try:
        return bool(short_attention(qkv, lengths.cumsum(0) - lengths, lengths, block, 1).isfinite().all())
    except Exception:  # whatever the compiler, the driver or a missing package raises
        return False
