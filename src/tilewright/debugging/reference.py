"""The graph of a package, computed operator by operator from what the device itself computed before.

So an error of one operator is seen where it arises and never blamed on those behind it. What a plan does not
keep in memory (an operator fused into the next) is computed here on the way, and its tolerance is carried on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import TilewrightError, UsageError
from tilewright.graph import Graph, Loop, Operation, Region, TensorType, Value, parse_graph
from tilewright.operators import operator
from tilewright.operators.tolerance import HALF_ULP
from tilewright.package.orders import unpack_slices
from tilewright.package.program_info import ConstantInfo
from tilewright.package.records import Package

REPEAT = "repeat"
SMALLEST = 2.0**-25
"""Half of the smallest step of float16."""
POINTWISE = frozenset(("add", "gelu", "reshape", "transpose", "slice", "concat"))
"""Operators whose result moves with each operand element alone, or only moves elements."""
_TRIALS = 4

Array = NDArray[np.float32]
Bound = NDArray[np.float64]


def package_graph(package: Package) -> tuple[Graph, set[str]]:
    """The graph of a package with the constants that its weights hold, in their precision on the device.

    Also the names of constants whose data are not in the package in a form that can be turned back. Raises
    UsageError for a package without debug information.
    """
    debug = package.debug
    if debug is None or debug.program is None or not debug.graph:
        raise UsageError(
            "the package does not say how its program came about", hint="compile the model again"
        )
    weights = {binding.name: binding for binding in package.weights}
    bindings = {item.constant: item for item in reversed(debug.program.constants)}
    missing: set[str] = set()

    def data(name: str, type_: TensorType) -> Array:
        item = bindings.get(name)
        binding = weights.get(item.binding) if item is not None else None
        array = None
        if item is not None and binding is not None and item.shape == type_.shape:
            matrix = unpack_slices(binding, package.blobs[binding.blob]).reshape(binding.view)
            array = constant_data(item, matrix.astype(np.float32))
        if array is None:
            missing.add(name)
            return np.full(type_.shape, np.nan, np.float32)
        return array

    return parse_graph(debug.graph, data, filename="graph in the package"), missing


def constant_data(item: ConstantInfo, matrix: Array) -> Array | None:
    """A constant out of the matrix of its weight binding; None if it cannot be there as stated."""
    count = max(item.iterations, 1)
    if len(matrix) % count:
        return None
    parts = matrix.reshape(count, -1, matrix.shape[1])
    rows, columns = _indices(item.rows, parts.shape[1]), _indices(item.columns, parts.shape[2])
    if rows is None or columns is None:
        return None
    parts = parts[:, rows][:, :, columns]
    if item.transposed:
        parts = parts.transpose(0, 2, 1)
    wanted = item.broadcast or item.shape
    if parts.size != prod(wanted) or len(item.shape) > len(wanted):
        return None
    whole = parts.reshape(wanted)
    found = whole[(0,) * (whole.ndim - len(item.shape)) + tuple(slice(0, n) for n in item.shape)]
    if found.shape != item.shape or not np.array_equal(np.broadcast_to(found, wanted), whole):
        return None
    return np.ascontiguousarray(found)


def _indices(extents: tuple[int, ...], length: int) -> NDArray[np.int64] | None:
    """What groups without their padding take of an axis; None if they leave it."""
    if not extents:
        return np.arange(length)
    first, count, width, padded = extents
    if width > padded or first + (count - 1) * padded + width > length or not 0 < count <= length:
        return None
    return (first + np.arange(count)[:, None] * padded + np.arange(width)).reshape(-1)


@dataclass(frozen=True, eq=False)
class Expected:
    """What a value should be, how far each element may be off, and why."""

    array: Array
    bound: float | Bound
    reason: str


class OperatorReference:
    """One run, followed from the outside.

    Args:
        graph: what is computed. unknown: names of constants whose data are not known.
        splits: partial sums per operation, by name; see `Operator.tolerance`.
    """

    def __init__(self, graph: Graph, splits: Mapping[str, int], unknown: set[str]) -> None:
        self.graph = graph
        self._splits = splits
        self._constants = {
            value.name: data.astype(np.float32)
            for value, data in graph.constants
            if value.name not in unknown
        }
        self._unknown = unknown
        self.values: dict[str, Value] = {value.name: value for value in graph.inputs}
        self._makers: dict[str, Operation] = {}
        self._arguments: dict[str, tuple[Loop, int]] = {}
        self._loops: list[Loop] = []
        self._visit(graph.body)
        self.seen: dict[str, Expected] = {}
        """The latest instance of each value, with how far it may be off: 0 for what the device holds."""
        self._entered: dict[str, tuple[int, Expected]] = {}

    def _visit(self, region: Region) -> None:
        for operation in region.operations:
            for value in operation.results:
                self.values[value.name] = value
                self._makers[value.name] = operation
            if operation.name != REPEAT:
                continue
            loop = Loop(operation)
            self._loops.append(loop)
            for position, value in enumerate(loop.region.arguments):
                self.values[value.name] = value
                self._arguments[value.name] = loop, position
            self._visit(loop.region)

    def begin(self) -> None:
        """Forget the run before."""
        self.seen.clear()
        self._entered.clear()

    def note(self, name: str, array: NDArray[np.generic], bound: float | Bound = 0.0) -> None:
        """What a value is: as the device holds it, or as it should be to within `bound`."""
        self.seen[name] = Expected(array.astype(np.float32), bound, "")

    def enter(self, iteration: int, name: str) -> None:
        """An iteration of the loop around a value begins, unless it has begun before.

        Keeps what the loop carries into it, before anything inside replaces that.
        """
        for loop in self._loops:
            if not self.inside(loop, name):
                continue
            for position, value in enumerate(loop.entering):
                known = self._entered.get(value.name)
                if known is not None and known[0] == iteration:
                    continue
                source = loop.initial[position] if iteration == 0 else loop.leaving[position]
                found = self.resolve(source, max(iteration - 1, 0))
                if found is not None:
                    self._entered[value.name] = iteration, found

    def inside(self, loop: Loop, name: str) -> bool:
        """Whether a value is the result of an operation of the loop's region."""
        return any(value.name == name for inner in loop.region.operations for value in inner.results)

    def resolve(self, value: Value, iteration: int) -> Expected | None:
        """A value for the use of others: as the device has it, or computed; None if it cannot be known."""
        name = value.name
        if name in self._constants:
            return Expected(self._constants[name], 0.0, "")
        if name in self._unknown:
            return None
        if name in self._entered and name not in self.seen:
            return self._entered[name][1]
        if name in self._arguments and name not in self.seen:
            return self._slice(name, iteration)
        if name in self.seen:
            return self.seen[name]
        return self.expect(name, iteration)

    def _slice(self, name: str, iteration: int) -> Expected | None:
        loop, position = self._arguments[name]
        carried = len(loop.results)
        if position < carried:
            return None
        whole = self.resolve(loop.iterated[position - carried], 0)
        if whole is None or not 0 <= iteration < loop.count:
            return None
        bound = whole.bound if isinstance(whole.bound, float) else whole.bound[iteration]
        return Expected(whole.array[iteration, ...], bound, whole.reason)

    def expect(self, name: str, iteration: int) -> Expected | None:
        """What an operation's result should be, given its operands; None if those cannot be known."""
        operation = self._makers.get(name)
        if operation is None:
            return None
        if operation.name == REPEAT:
            loop = Loop(operation)
            position = [value.name for value in operation.results].index(name)
            return self.resolve(loop.leaving[position], loop.count - 1)
        operands = [self.resolve(value, iteration) for value in operation.operands]
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return None
        rule = operator(operation.name)
        arrays = [operand.array for operand in known]
        result = rule.reference(operation.attributes, *arrays)
        try:
            own = rule.tolerance(operation.attributes, *arrays, splits=max(self._splits.get(name, 1), 1))
        except (TypeError, TilewrightError):
            own = rule.tolerance(operation.attributes, *arrays)
        bound = np.asarray(own.absolute, np.float64)
        for position, operand in enumerate(known):
            if np.any(np.asarray(operand.bound)):
                bound = bound + _carried(operation, arrays, position, operand.bound, result)
        return Expected(result, np.broadcast_to(bound, result.shape), own.reason)


def follow(reference: OperatorReference, name: str, iteration: int) -> Expected | None:
    """A value from the graph's inputs on, which must be noted; inside a loop, of one iteration of it.

    Everything before it in the program is computed and noted too.
    """

    def walk(region: Region) -> Expected | None:
        for operation in region.operations:
            if operation.name == REPEAT:
                loop = Loop(operation)
                inside = reference.inside(loop, name)
                for turn in range(iteration + 1 if inside else loop.count):
                    for inner in loop.region.operations:
                        reference.enter(turn, inner.results[0].name)
                        found = made(inner, turn, stop=inside and turn == iteration)
                        if found is not None:
                            return found
            found = made(operation, 0, stop=True)
            if found is not None:
                return found
        return None

    def made(operation: Operation, turn: int, *, stop: bool) -> Expected | None:
        for value in operation.results:
            expected = reference.expect(value.name, turn)
            if expected is not None:
                reference.note(value.name, expected.array, expected.bound)
                if stop and value.name == name:
                    return expected
        return None

    return walk(reference.graph.body)


def rounded(array: NDArray[np.generic], device_dtype: str) -> float | Bound:
    """How far an array may be off after the host has converted it to the device's type."""
    if device_dtype != "float16":
        return 0.0
    return np.asarray(HALF_ULP * np.abs(array.astype(np.float64)) + SMALLEST)


def _carried(
    operation: Operation, arrays: list[Array], position: int, bound: float | Bound, result: Array
) -> Bound:
    """How far the result may be off because one operand is."""
    shift = np.broadcast_to(np.asarray(bound, np.float64), arrays[position].shape)
    if operation.name == "matmul" and not operation.attributes.get("transpose_b"):
        pair = [np.abs(array).astype(np.float64) for array in arrays]
        pair[position] = shift
        return np.asarray(np.matmul(*pair))
    generator = np.random.default_rng(0)
    signs = [np.ones(shift.shape), -np.ones(shift.shape)]
    pointwise = operation.name in POINTWISE
    if not pointwise:
        signs += [generator.choice([-1.0, 1.0], shift.shape) for _ in range(_TRIALS)]
    largest = np.zeros(result.shape)
    rule = operator(operation.name)
    for sign in signs:
        moved = list(arrays)
        moved[position] = (arrays[position] + sign * shift).astype(np.float32)
        largest = np.maximum(largest, np.abs(rule.reference(operation.attributes, *moved) - result))
    # The trials show the size of the effect; the worst combination of signs is not among them.
    return largest if pointwise else 4 * largest
