"""Judges the results of a device operation by operation, with the operands the device really had.

    judge(example.graph, example.inputs, session.run(example.inputs), splits=tiles)

Every value outside loops must be an output (`random_graphs(every_value_is_output=True)`). An operator is held
to its own tolerance. A loop is held to what noise does to it: it is computed with every operation inside
disturbed by up to half of that operation's tolerance, several times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.graph import Graph, Loop, Operation, Region, Value
from tilewright.operators import operator
from tilewright.operators.tolerance import HALF_ULP, Tolerance

Array = NDArray[np.float32]
Compute = Callable[[Operation, list[Array]], Array]

NOISY_RUNS = 3
NOISE_MARGIN = 6.0
"""How many times the largest deviation of the noisy runs to admit: they disturb less than the tolerances
admit, and are few."""


def judge(
    graph: Graph, inputs: Mapping[str, Array], results: Mapping[str, Array], *, splits: int = 1
) -> None:
    """Fail with the operation and the worst element unless every result is within its tolerance.

    `splits`: the largest number of partial results that a plan may add up.
    """
    held: dict[Value, Array] = {value: inputs[value.name] for value in graph.inputs}
    held |= dict(graph.constants)
    names = {value: name for name, value in graph.outputs}
    for operation in graph.operations:
        if operation.regions:
            judged = _judge_loop(Loop(operation), held, splits)
        else:
            operands = [held[value] for value in operation.operands]
            rule = operator(operation.name)
            expected = rule.reference(operation.attributes, *operands)
            judged = [(expected, rule.tolerance(operation.attributes, *operands, splits=splits))]
        for value, (expected, tolerance) in zip(operation.results, judged, strict=True):
            found = np.asarray(results[names[value]], np.float32)
            violation = tolerance.violation(found, expected)
            assert violation is None, f"{operation}: %{value.name}: {violation}"
            held[value] = found


def judge_whole(
    graph: Graph, inputs: Mapping[str, Array], results: Mapping[str, Array], *, splits: int = 1
) -> None:
    """As `judge` for graphs whose values are not all outputs: held to what noise does to the whole graph."""

    def whole(compute: Compute) -> list[Array]:
        held: dict[Value, Array] = {value: inputs[value.name] for value in graph.inputs}
        held |= dict(graph.constants)
        _run(graph.body, held, compute)
        return [held[value] for value in graph.body.results]

    judged = _under_noise(whole, splits, "the operations")
    for name, (expected, tolerance) in zip(graph.output_names, judged, strict=True):
        violation = tolerance.violation(np.asarray(results[name], np.float32), expected)
        assert violation is None, f"output {name}: {violation}"


def _judge_loop(loop: Loop, held: Mapping[Value, Array], splits: int) -> list[tuple[Array, Tolerance]]:
    return _under_noise(
        lambda compute: _run_loop(loop, dict(held), compute), splits, f"{loop.count} iterations"
    )


def _under_noise(
    run: Callable[[Compute], list[Array]], splits: int, what: str
) -> list[tuple[Array, Tolerance]]:
    """Results by the references, and how far disturbing every operation moves them."""
    expected = run(_reference)
    widest = [np.zeros(()) for _ in expected]
    for seed in range(NOISY_RUNS):
        generator = np.random.default_rng(seed)

        def disturbed(
            operation: Operation, operands: list[Array], generator: np.random.Generator = generator
        ) -> Array:
            result = _reference(operation, operands)
            tolerance = operator(operation.name).tolerance(operation.attributes, *operands, splits=splits)
            noise = generator.uniform(-0.5, 0.5, result.shape) * tolerance.absolute
            return (result + noise).astype(np.float32)

        noisy = run(disturbed)
        deviations = [np.max(np.abs(a - b)) for a, b in zip(noisy, expected, strict=True)]
        widest = [np.maximum(*pair) for pair in zip(widest, deviations, strict=True)]
    return [
        (
            array,
            Tolerance(
                float(NOISE_MARGIN * deviation + 4 * HALF_ULP * np.max(np.abs(array))),
                f"what noise within the tolerances does to {what}",
            ),
        )
        for array, deviation in zip(expected, widest, strict=True)
    ]


def _reference(operation: Operation, operands: list[Array]) -> Array:
    return operator(operation.name).reference(operation.attributes, *operands)


def _run_loop(loop: Loop, held: dict[Value, Array], compute: Compute) -> list[Array]:
    carried = [held[value] for value in loop.initial]
    for iteration in range(loop.count):
        held.update(zip(loop.entering, carried, strict=True))
        for inside, value in zip(loop.slices, loop.iterated, strict=True):
            held[inside] = held[value][iteration, ...]
        _run(loop.region, held, compute)
        carried = [held[value] for value in loop.leaving]
    return carried


def _run(region: Region, held: dict[Value, Array], compute: Compute) -> None:
    for operation in region.operations:
        if operation.regions:
            held.update(zip(operation.results, _run_loop(Loop(operation), held, compute), strict=True))
        else:
            held[operation.result] = compute(operation, [held[value] for value in operation.operands])


def emulate(graph: Graph, inputs: Mapping[str, Any]) -> dict[str, Array]:
    """Outputs when every operand and result is rounded to float16: a device without partial sums."""

    def rounded(operation: Operation, operands: list[Array]) -> Array:
        return _half(_reference(operation, [_half(operand) for operand in operands]))

    held: dict[Value, Array] = {value: _half(inputs[value.name]) for value in graph.inputs}
    held |= dict(graph.constants)
    _run(graph.body, held, rounded)
    return {name: held[value] for name, value in graph.outputs}


def _half(array: Array) -> Array:
    return array.astype(np.float16).astype(np.float32)
