"""Operators against PyTorch's of the same name, in float64. Skipped where PyTorch is not installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.random_graphs import normal
from tilewright import ops

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.external

extents = st.integers(1, 9)
seeds = st.integers(0, 2**32 - 1)


def tensor(array: Any) -> Any:
    return torch.from_numpy(np.array(array, dtype=np.float64))


def agree(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected.numpy(), rtol=2e-5, atol=2e-6)


@given(seeds, st.lists(extents, min_size=1, max_size=3), st.sampled_from([1e-5, 1e-12]))
def test_layer_norm(seed: int, shape: list[int], epsilon: float) -> None:
    generator = np.random.default_rng(seed)
    shape[-1] += 1  # the variance of one number is nothing but rounding
    x = normal(generator, shape)
    gamma, beta = normal(generator, shape[-1:]), normal(generator, shape[-1:])
    expected = torch.nn.functional.layer_norm(tensor(x), shape[-1:], tensor(gamma), tensor(beta), eps=epsilon)
    agree(ops.layer_norm(x, gamma, beta, epsilon=epsilon), expected)


@given(seeds, st.lists(extents, min_size=1, max_size=3))
def test_pointwise_and_rows(seed: int, shape: list[int]) -> None:
    x = normal(np.random.default_rng(seed), shape, 5.0)
    functional = torch.nn.functional
    agree(ops.gelu(x, approximate="none"), functional.gelu(tensor(x)))
    agree(ops.gelu(x, approximate="tanh"), functional.gelu(tensor(x), approximate="tanh"))
    agree(ops.softmax(x), functional.softmax(tensor(x), dim=-1))
    agree(ops.l2_normalize(x), functional.normalize(tensor(x), dim=-1))


@settings(max_examples=60)
@given(
    seed=seeds,
    batch=st.lists(extents, max_size=1),
    heads=st.integers(1, 4),
    lengths=st.tuples(extents, extents),
    widths=st.tuples(extents, extents),
    masked=st.booleans(),
    causal=st.booleans(),
)
def test_attention(
    seed: int,
    batch: list[int],
    heads: int,
    lengths: tuple[int, int],
    widths: tuple[int, int],
    masked: bool,
    causal: bool,
) -> None:
    generator = np.random.default_rng(seed)
    queries, keys = (max(lengths),) * 2 if causal else lengths
    q = normal(generator, (*batch, queries, heads * widths[0]))
    k = normal(generator, (*batch, keys, heads * widths[0]))
    v = normal(generator, (*batch, keys, heads * widths[1]))
    mask = np.where(generator.random((*batch, keys)) < 0.3, -10000, 0).astype(np.float32) if masked else None

    def cut(x: Any) -> Any:
        return tensor(x).unflatten(-1, (heads, -1)).transpose(-2, -3)

    bias = torch.zeros((*batch, 1, queries, keys), dtype=torch.float64)
    if mask is not None:
        bias = bias + tensor(mask)[..., None, None, :]
    if causal:
        bias = bias + torch.full((queries, keys), -torch.inf, dtype=torch.float64).triu(1)
    attended = torch.nn.functional.scaled_dot_product_attention(cut(q), cut(k), cut(v), attn_mask=bias)
    expected = attended.transpose(-2, -3).flatten(-2)
    agree(ops.attention(q, k, v, mask, heads=heads, causal=causal), expected)


def test_an_encoder_layer_is_pytorchs() -> None:
    """torch.nn.TransformerEncoderLayer, both orders of its layer norms, written with these operators."""
    width, heads, inner = 24, 3, 40
    for first in (False, True):
        torch.manual_seed(3)
        layer = torch.nn.TransformerEncoderLayer(
            width, heads, inner, dropout=0.0, activation="gelu", batch_first=True, norm_first=first
        ).double()
        p = {name: value.detach().numpy() for name, value in layer.named_parameters()}
        x = normal(np.random.default_rng(4), (2, 7, width))

        def attend(y: Any, p: dict[str, Any] = p) -> Any:
            projected = ops.matmul(y, p["self_attn.in_proj_weight"], transpose_b=True)
            projected = ops.add(projected, p["self_attn.in_proj_bias"])
            q, k, v = (ops.slice(projected, axis=-1, start=i * width, stop=(i + 1) * width) for i in range(3))
            mixed = ops.attention(q, k, v, heads=heads)
            return ops.matmul(mixed, p["self_attn.out_proj.weight"], transpose_b=True) + np.float32(
                p["self_attn.out_proj.bias"]
            )

        def feed(y: Any, p: dict[str, Any] = p) -> Any:
            up = ops.matmul(y, p["linear1.weight"], transpose_b=True)
            hidden = ops.gelu(ops.add(up, p["linear1.bias"]), approximate="none")
            return ops.add(ops.matmul(hidden, p["linear2.weight"], transpose_b=True), p["linear2.bias"])

        def norm(y: Any, which: str, p: dict[str, Any] = p) -> Any:
            return ops.layer_norm(y, p[f"{which}.weight"], p[f"{which}.bias"])

        if first:
            y = x + attend(norm(x, "norm1"))
            y = y + feed(norm(y, "norm2"))
        else:
            y = norm(x + attend(x), "norm1")
            y = norm(y + feed(y), "norm2")
        with torch.no_grad():
            agree(y, layer(tensor(x)))
