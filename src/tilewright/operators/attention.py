"""Attention of several heads: softmax(q k^T * scale + mask) v, heads side by side in the columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.tensor_type import TensorType

from .broadcasting import broadcast
from .operator import Array, Operator
from .parameter import Attributes, Parameter, flag, integer, number
from .rounding import HALF_STEP, Doubles, largest_partial_sums, operand_error, product_factor
from .softmax import log_softmax, rounded_score_error
from .tolerance import HALF_ULP, Tolerance


def attention(
    q: Any, k: Any, v: Any, mask: Any = None, *, heads: int, scale: float = 0.0, causal: bool = False
) -> Any:
    """Per head h: softmax(q_h k_h^T * scale + mask) v_h, the results side by side.

    q [..., Lq, heads * D], k [..., Lk, heads * D], v [..., Lk, heads * Dv] -> [..., Lq, heads * Dv]. Columns
    of one head are adjacent. The axes before the last two are batch axes and broadcast as NumPy's.

    Args:
        mask: broadcasts to [..., Lk] and is added to the scores of a key, for every query and head: 0 for
            keys that count, a large negative number (-10000 is enough) for padding.
        heads: number of heads; divides the columns.
        scale: of the scores; 0 means 1 / sqrt(D).
        causal: query i sees key j only if j <= i + Lk - Lq, so that the last query sees every key. Lq is
            then at most Lk.

    On arrays: the float32 result. On traced values: a traced value.
    """
    operands = (q, k, v) if mask is None else (q, k, v, mask)
    return OPERATOR(*operands, heads=heads, scale=scale, causal=causal)


def shape_rule(attributes: Attributes, /, *operands: TensorType) -> TensorType:
    """[..., Lq, heads * D], [..., Lk, heads * D] and [..., Lk, heads * Dv] give [..., Lq, heads * Dv]."""
    q, k, v = operands[:3]
    heads = integer(attributes, "heads")
    for name, operand in (("q", q), ("k", k), ("v", v)):
        if operand.rank < 2:
            raise OPERATOR.mismatch(f"{name} needs at least two axes", *operands)
        if operand.shape[-1] % heads:
            raise OPERATOR.mismatch(
                f"{operand.shape[-1]} columns of {name} are not {heads} equal heads", *operands
            )
    if q.shape[-1] != k.shape[-1]:
        raise OPERATOR.mismatch(f"{q.shape[-1]} columns of q and {k.shape[-1]} of k differ", *operands)
    if k.shape[-2] != v.shape[-2]:
        raise OPERATOR.mismatch(f"{k.shape[-2]} keys and {v.shape[-2]} values differ", *operands)
    if flag(attributes, "causal") and q.shape[-2] > k.shape[-2]:
        raise OPERATOR.mismatch(
            f"causal, but the first of {q.shape[-2]} queries would see none of {k.shape[-2]} keys", *operands
        )
    batch = broadcast(OPERATOR, q.shape[:-2], k.shape[:-2], operands, after=2)
    batch = broadcast(OPERATOR, batch, v.shape[:-2], operands, after=2)
    if len(operands) == 4:
        keys = (*batch, k.shape[-2])
        if broadcast(OPERATOR, operands[3].shape, keys, operands) != keys:
            raise OPERATOR.mismatch(f"mask does not broadcast to {list(keys)}", *operands)
    return TensorType((*batch, q.shape[-2], v.shape[-1]), q.dtype)


def score_scale(attributes: Attributes, q: TensorType) -> float:
    """What scores are multiplied by: the attribute, or 1 / sqrt(width of a head of q)."""
    width = q.shape[-1] // integer(attributes, "heads")
    return number(attributes, "scale") or 1 / math.sqrt(width)


class _Scores:
    """Operands cut into heads [..., heads, L, D], and the scores [..., heads, Lq, Lk], in float64."""

    def __init__(self, attributes: Attributes, operands: tuple[Array, ...]) -> None:
        heads = integer(attributes, "heads")
        self.scale = score_scale(attributes, TensorType(operands[0].shape))
        self.q, k, self.v = (_split(operand, heads) for operand in operands[:3])
        self.k_transposed = k.swapaxes(-1, -2)
        self.product = self.scale * (self.q @ self.k_transposed)
        mask = operands[3].astype(np.float64) if len(operands) == 4 else np.zeros(())
        # A mask has no axis for heads and queries; one of a single value needs none.
        self.mask = mask[..., np.newaxis, np.newaxis, :] if mask.ndim else mask
        self.scores: Doubles = self.product + self.mask
        if flag(attributes, "causal"):
            queries, keys = self.scores.shape[-2:]
            hidden = ~np.tri(queries, keys, keys - queries, dtype=bool)
            self.scores = np.where(hidden, -np.inf, self.scores)


def _split(x: Array, heads: int) -> Doubles:
    parts = x.astype(np.float64).reshape(*x.shape[:-1], heads, x.shape[-1] // heads)
    return parts.swapaxes(-2, -3)


def _join(x: Doubles) -> Doubles:
    joined = x.swapaxes(-2, -3)
    return joined.reshape(*joined.shape[:-2], joined.shape[-2] * joined.shape[-1])


def reference(attributes: Attributes, /, *operands: Array) -> Array:
    """Evaluated in float64 and rounded once to float32."""
    parts = _Scores(attributes, operands)
    result: Array = _join(np.exp(log_softmax(parts.scores)) @ parts.v).astype(np.float32)
    return result


def tolerance(attributes: Attributes, /, *operands: Array, splits: int = 1) -> Tolerance:
    """The error of the scores, carried through the softmax into the weighted sum, and the sum's own.

    Scores: as a product's, c * 2^-11 * sqrt(panels + 1) * the query's largest partial sum, times the scale;
    and half-ulps of what is rounded on the way to the exponent (scaled score, mask, their sum, the distance
    from the largest). The first part is independent from key to key: with p the weights and e the error of
    a score's exponential, it moves the result by sqrt(sum (p e)^2 (|v| + |result|)^2). The second is taken
    at its worst: sum p e (|v| + |result|). Weighted sum: as a product's over the keys, with `splits` partial
    results merged, on weights that sum to 1; weights are rounded relative to their size, tiny ones by 2^-25
    of the largest.
    """
    parts = _Scores(attributes, operands)
    logarithm = log_softmax(parts.scores)
    weights = np.exp(logarithm)
    finite = np.isfinite(parts.scores)
    result = np.abs(weights @ parts.v)
    values = np.abs(parts.v)

    partial = largest_partial_sums(parts.q, parts.k_transposed)
    largest = np.max(partial, axis=-1, keepdims=True)
    width = parts.q.shape[-1]
    chance = np.where(finite, parts.scale * product_factor(width, 1) * largest, 0.0)
    masked = np.broadcast_to(parts.mask, parts.scores.shape)
    sure = HALF_ULP * np.abs(parts.product) + np.where(parts.mask == 0, 0.0, operand_error(masked))
    with np.errstate(invalid="ignore"):
        sure = sure + HALF_ULP * np.abs(np.where(parts.mask == 0, 0.0, parts.scores))
    sure = np.where(finite, sure, 0.0) + rounded_score_error(parts.scores) + HALF_ULP

    chance, sure = _grown(logarithm, chance), _grown(logarithm, sure)
    moved = np.sqrt(chance**2 @ values**2) + result * np.sqrt(np.sum(chance**2, axis=-1, keepdims=True))
    moved += sure @ values + result * np.sum(sure, axis=-1, keepdims=True)

    sums = largest_partial_sums(weights, parts.v)
    keys = weights.shape[-1]
    summed = product_factor(keys, splits) * np.max(sums, axis=(-1, -2), keepdims=True)
    tiny = np.max(weights, axis=-1, keepdims=True) * np.sum(values + 1, axis=-2, keepdims=True) + 1
    bound = moved + summed + HALF_ULP * result + HALF_STEP * tiny
    return Tolerance(_join(bound), "float16 scores through the softmax, float16 partial sums of values")


def _grown(logarithm: Doubles, error: Doubles) -> Doubles:
    """p * (e^error - 1), also where p is too small and the error too large for either factor alone."""
    return np.exp(logarithm + error) - np.exp(logarithm)


OPERATOR = Operator(
    name="attention",
    operands=("q", "k", "v", "mask"),
    shape_rule=shape_rule,
    reference=reference,
    tolerance=tolerance,
    parameters=(
        Parameter("heads", 1, minimum=1, required=True),
        Parameter("scale", 0.0, minimum=0.0),
        Parameter("causal", False),
    ),
    optional=1,
)
