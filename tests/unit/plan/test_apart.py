"""What a kernel must find in different memory elements is placed so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler.pipeline import plan_only
from tilewright.ipu21.kernels import KERNELS
from tilewright.ipu21.machine.memory import ELEMENT_BYTES, INTERLEAVED_ELEMENT_BYTES, REGION1_BASE
from tilewright.ipu21.place.placer import Placed
from tilewright.ipu21.plan.steps import Compute

pytestmark = pytest.mark.unit


def elements(placed: Placed) -> set[int]:
    """Memory elements, by their first byte; those of interleaved memory are larger."""
    unit = INTERLEAVED_ELEMENT_BYTES if placed.address >= REGION1_BASE else ELEMENT_BYTES
    return set(range(placed.address // unit * unit, placed.end, unit))


def test_results_and_operands_of_products_share_no_element() -> None:
    w = np.ones((32, 32), np.float32)

    def network(x: Any) -> Any:
        hidden = x @ w
        return {"y": hidden @ w + hidden, "a": tw.ops.attention(hidden, hidden, hidden, heads=2)}

    fitted = plan_only(tw.trace(network, x=tw.TensorType((24, 32))), tiles=1)
    (placed,) = fitted.placement.classes
    products = 0
    for step in fitted.work.plan.steps:
        if not isinstance(step, Compute):
            continue
        contract = KERNELS[step.kernel].contract
        names = [operand.name for operand in contract.operands]
        held = dict(zip(names, step.operands, strict=True))
        for one, other in contract.apart:
            a, b = held[one], held[other]
            if a is None or b is None or a == b:
                continue
            products += step.kernel.startswith("gemm")
            assert elements(placed[a]).isdisjoint(elements(placed[b])), (step.name, one, other)
    assert products >= 6
