"""Attention against a version that loops over queries and keys, and its tolerance against float16."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright import ops
from tilewright.errors import ShapeError
from tilewright.operators import operator
from tilewright.tensor_type import TensorType

pytestmark = pytest.mark.unit

Floats = NDArray[np.float32]


def by_loops(
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    mask: NDArray[Any],
    heads: int,
    scale: float,
    causal: bool,
) -> NDArray[np.float64]:
    """One batch entry; exponentials of the scores as they are, keys that are not seen left out."""
    queries, keys = len(q), len(k)
    out = np.zeros((queries, v.shape[1]))
    for h in range(heads):
        columns = slice(h * q.shape[1] // heads, (h + 1) * q.shape[1] // heads)
        values = slice(h * v.shape[1] // heads, (h + 1) * v.shape[1] // heads)
        for i in range(queries):
            seen = [j for j in range(keys) if not causal or keys - j >= queries - i]
            weights = [
                math.exp(scale * math.fsum((q[i, columns] * k[j, columns]).tolist()) + mask[j]) for j in seen
            ]
            for weight, j in zip(weights, seen, strict=True):
                out[i, values] += weight / math.fsum(weights) * v[j, values]
    return out


def operands(batch: tuple[int, ...], lq: int, lk: int, columns: int, values: int) -> list[Floats]:
    generator = np.random.default_rng(lq * 1000 + lk)
    shapes = [(*batch, lq, columns), (*batch, lk, columns), (*batch, lk, values)]
    return [generator.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [0.0, 0.7])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_the_loop(causal: bool, scale: float, masked: bool) -> None:
    q, k, v = operands((2,), 4, 6, 10, 15)
    mask = np.random.default_rng(1).standard_normal((2, 6)).astype(np.float32)
    mask[:, -1] = -10000
    given = [mask] if masked else []
    found = ops.attention(q, k, v, *given, heads=5, scale=scale, causal=causal)
    for b in range(2):
        rows = (mask if masked else mask * 0)[b].astype(np.float64)
        parts = (part[b].astype(np.float64) for part in (q, k, v))
        expected = by_loops(*parts, rows, 5, scale or 1 / math.sqrt(2), causal)
        np.testing.assert_allclose(found[b], expected, rtol=1e-5, atol=1e-6)


def test_attention_is_what_its_parts_compute() -> None:
    """One head, written with the other operators; also that None means no mask."""
    q, k, v = operands((3, 2), 5, 7, 4, 6)
    scores = ops.matmul(q * np.float32(0.5), k, transpose_b=True)
    expected = ops.matmul(ops.softmax(scores), v)
    np.testing.assert_allclose(ops.attention(q, k, v, None, heads=1), expected, rtol=1e-4, atol=1e-5)


def test_batch_axes_and_masks_broadcast() -> None:
    q, k, v = operands((3,), 2, 5, 4, 6)
    probe = q[0]
    mask = np.random.default_rng(2).standard_normal(5).astype(np.float32)
    found = ops.attention(probe, k, v, mask, heads=2)
    for b in range(3):
        np.testing.assert_array_equal(found[b], ops.attention(probe, k[b], v[b], mask, heads=2))
    shared = ops.attention(q, k[:1], v[0], np.float32(3), heads=2)
    np.testing.assert_allclose(shared[2], ops.attention(q[2], k[0], v[0], heads=2), rtol=1e-6)


def half(array: NDArray[Any]) -> NDArray[np.float16]:
    return array.astype(np.float16)


def panel_product(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float16]:
    total = np.zeros((*a.shape[:-1], b.shape[-1]), np.float16)
    for start in range(0, a.shape[-1], 16):
        panel = half(a)[..., start : start + 16].astype(np.float32) @ half(b)[
            ..., start : start + 16, :
        ].astype(np.float32)
        total = half(total.astype(np.float32) + panel)
    return total


def device_attention(
    q: Floats, k: Floats, v: Floats, mask: Floats, heads: int, scale: float, parts: int
) -> NDArray[np.float16]:
    """Keys in `parts`, each with its own largest score and sum, merged at the end."""
    lq, lk = len(q), len(k)
    qh, kh, vh = (x.reshape(len(x), heads, -1).swapaxes(0, 1) for x in (q, k, v))
    pieces = []
    for piece in np.array_split(np.arange(lk), parts):
        product = panel_product(qh, kh[:, piece].swapaxes(-1, -2))
        scaled = half(product.astype(np.float32) * np.float32(scale))
        scores = half(scaled.astype(np.float32) + half(mask[piece]).astype(np.float32)).astype(np.float32)
        top = np.max(scores, axis=-1, keepdims=True)
        weights = half(np.exp(half(scores - top).astype(np.float32)))
        total = np.sum(weights.astype(np.float32), axis=-1, keepdims=True)
        pieces.append((top, total, panel_product(weights, vh[:, piece]).astype(np.float32)))
    top = np.max([piece[0] for piece in pieces], axis=0)
    total = sum(np.exp(t - top) * s for t, s, _ in pieces)
    merged: Any = sum(np.exp(t - top) * o for t, _, o in pieces)
    return half(merged / total).swapaxes(0, 1).reshape(lq, -1)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("spread", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(("lq", "lk", "width"), [(1, 3, 8), (17, 16, 16), (8, 100, 32), (20, 300, 72)])
def test_float16_attention_stays_within_the_tolerance(
    lq: int, lk: int, width: int, spread: float, parts: int
) -> None:
    heads = 2
    q, k, v = operands((), lq, lk, heads * width, heads * width)
    q *= np.float32(spread)
    k *= np.float32(spread)
    mask = np.zeros(lk, np.float32)
    mask[lk - lk // 4 :] = -10000
    scale = 1 / math.sqrt(width)
    rule = operator("attention")
    attributes = rule.resolve({"heads": heads})
    expected = rule.reference(attributes, q, k, v, mask)
    tolerance = rule.tolerance(attributes, q, k, v, mask, splits=parts)
    actual = device_attention(q, k, v, mask, heads, scale, parts)
    assert tolerance.violation(actual, expected) is None
    margin = np.max(np.abs(actual - expected) / np.asarray(tolerance.absolute))
    assert margin < 0.8
    if lk >= 16:
        for wrong in (
            ops.attention(q, k, v, heads=heads),
            ops.attention(q, k, v, mask, heads=2 * heads),
            ops.attention(q, k, v, mask, heads=heads, scale=1.3 * scale),
            ops.attention(q[::-1], k, v, mask, heads=heads),
        ):
            assert tolerance.violation(half(wrong), expected) is not None or spread < 1


def test_hidden_keys_do_not_widen_the_tolerance() -> None:
    q, k, v = operands((), 6, 6, 8, 8)
    rule = operator("attention")
    attributes = rule.resolve({"heads": 2, "causal": True})
    bound = np.asarray(rule.tolerance(attributes, q, k, v).absolute)
    assert np.all(np.isfinite(bound)) and bound.shape == (6, 8)
    forbidden = np.zeros((1, 6), np.float32)
    forbidden[0, 2] = -np.inf
    bound = np.asarray(
        rule.tolerance(rule.resolve({"heads": 2}), q[None], k[None], v[None], forbidden).absolute
    )
    assert np.all(np.isfinite(bound))


REFUSED: list[tuple[dict[str, Any], list[tuple[int, ...]], str]] = [
    ({}, [(4, 6), (5, 6), (5, 4)], "attention: 4 columns of v are not 3 equal heads: q = .*, k = .*, v = "),
    ({}, [(4, 6), (5, 9), (5, 6)], "6 columns of q and 9 of k differ"),
    ({}, [(4, 6), (5, 6), (4, 6)], "5 keys and 4 values differ"),
    ({}, [(6,), (5, 6), (5, 6)], "q needs at least two axes"),
    ({}, [(2, 4, 6), (3, 5, 6), (5, 6)], "extents 2 and 3 of axis -3 do not broadcast"),
    ({}, [(2, 4, 6), (2, 5, 6), (2, 5, 6), (2, 4)], r"extents 4 and 5 of axis -1 do not broadcast"),
    ({}, [(4, 6), (5, 6), (5, 6), (2, 5)], r"mask does not broadcast to \[5\]: .*, mask = float32\[2, 5\]"),
    ({"causal": True}, [(6, 6), (5, 6), (5, 6)], "the first of 6 queries would see none of 5 keys"),
]


@pytest.mark.parametrize(("attributes", "shapes", "message"), REFUSED)
def test_refusals_name_every_operand(
    attributes: dict[str, Any], shapes: list[tuple[int, ...]], message: str
) -> None:
    rule = operator("attention")
    with pytest.raises(ShapeError, match=message):
        rule.infer(rule.resolve({"heads": 3, **attributes}), *map(TensorType, shapes))
