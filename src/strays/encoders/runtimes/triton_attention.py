"""The GPU kernel of attention within short texts, in Triton. Imported only if Triton is installed."""

# Triton reads the types of a kernel's parameters: no other types may be named, and none as strings.
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def kernel(  # type: ignore[no-untyped-def]
    qkv, out, starts, lengths, scale, dimension: tl.constexpr, width: tl.constexpr, block: tl.constexpr
):
    """softmax(Q K' scale) V of one text (first program id) and one head (second)."""
    first = tl.load(starts + tl.program_id(0))
    n = tl.load(lengths + tl.program_id(0))
    token = tl.arange(0, block)
    own = token < n
    row = first + token
    channel = tl.program_id(1) * width + tl.arange(0, width)
    at = qkv + row[:, None] * (3 * dimension) + channel[None, :]
    q = tl.load(at, mask=own[:, None], other=0.0)
    k = tl.load(at + dimension, mask=own[:, None], other=0.0)
    v = tl.load(at + 2 * dimension, mask=own[:, None], other=0.0)
    weight = tl.dot(q, tl.trans(k)) * scale
    weight = tl.where(own[None, :], weight, -float("inf"))
    weight = tl.exp(weight - tl.max(weight, 1)[:, None])
    weight = weight / tl.sum(weight, 1)[:, None]
    mixed = tl.dot(weight.to(v.dtype), v)
    at = out + row[:, None] * dimension + channel[None, :]
    tl.store(at, mixed.to(v.dtype), mask=own[:, None])
