"""Which kernels the stages of attention call."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.compiler.pipeline import plan_only
from tilewright.ipu21.plan.steps import Compute

pytestmark = pytest.mark.unit


def kernels_of(tiles: int, heads: int) -> list[str]:
    type_ = tw.TensorType((16, 16 * heads))
    graph = tw.trace(lambda q, k, v: tw.ops.attention(q, k, v, heads=heads), q=type_, k=type_, v=type_)
    steps = plan_only(graph, tiles=tiles).work.plan.steps
    return [step.kernel for step in steps if isinstance(step, Compute)]


@pytest.mark.parametrize("heads", [1, 2])
def test_sums_over_all_keys_are_divided_without_a_merge(heads: int) -> None:
    kernels = kernels_of(1, heads)
    assert kernels.count("scale_rows_f16") == heads
    assert not any(kernel.startswith("attention_merge") for kernel in kernels)
