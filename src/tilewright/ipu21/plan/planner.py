"""From a graph to a plan: one pass over the operations, each choosing the cheapest way for what it finds.

The right choice for one operation hardly depends on the others, because every value is stored once, in A16
records, on the tiles that computed it; operations couple through memory only. That coupling is the `price`:
cycles one is ready to pay for a byte per tile. The pipeline raises it until the placer finds room.
"""

from __future__ import annotations

import numpy as np

from ...arithmetic import ceil_div
from ...errors import UnsupportedError
from ...graph import Graph, Operation, Value
from ..kernels.elementwise import add_cycles, add_row_cycles, gelu_cycles
from ..kernels.gemm import ACCESS_TAIL, MAXIMUM_ROWS
from . import cost
from . import matmul as products
from .layout import Axis, Layout, spread
from .steps import Buffer, Compute, Exchange, Gather, Plan, Retile, WeightUse
from .support import check_supported, computed_operand, constant_values, is_row, matrix_view


def plan_graph(graph: Graph, *, tiles: int, price: float = 0.0) -> Plan:
    """Plan a graph on logical tiles 0..tiles-1.

    Args:
        price: cycles worth one byte of tile memory; larger prices give smaller, slower plans.

    Raises UnsupportedError listing everything that has no plan.
    """
    check_supported(graph)
    planner = _Planner(graph, tiles, price)
    for operation in graph.operations:
        planner.operation(operation)
    for name, value in graph.outputs:
        planner.plan.outputs[name] = planner.buffer_of(value).name
    for value in graph.inputs:
        # An input nobody uses still arrives: the caller gives it at every run.
        planner.buffer_of(value)
    return planner.plan


class _Planner:
    def __init__(self, graph: Graph, tiles: int, price: float) -> None:
        self.graph = graph
        self.price = price
        self.plan = Plan(tiles=tiles)
        self.constants = constant_values(graph)
        self.inputs = {value.id for value in graph.inputs}
        self.holder: dict[int, str] = {}
        self.bindings: dict[str, int] = {}
        self.last_use = self._last_uses()
        self.position = 0

    def _last_uses(self) -> dict[int, int]:
        uses: dict[int, int] = {}
        for index, operation in enumerate(self.graph.operations):
            for value in operation.operands:
                uses[value.id] = index
        for _, value in self.graph.outputs:
            uses[value.id] = len(self.graph.operations)
        return uses

    # --- values and buffers ---

    def add(self, buffer: Buffer) -> Buffer:
        if buffer.name in self.plan.buffers:
            raise AssertionError(f"buffer {buffer.name} planned twice")
        self.plan.buffers[buffer.name] = buffer
        return buffer

    def buffer_of(self, value: Value) -> Buffer:
        """The buffer that holds a value; an input nobody has placed yet is spread over all tiles."""
        if value.id not in self.holder:
            rows, columns = matrix_view(value.type.shape)
            self.place_input(value, spread(rows, columns, self.plan.tiles))
        return self.plan.buffers[self.holder[value.id]]

    def place_input(self, value: Value, layout: Layout, **options: object) -> Buffer:
        if value.id not in self.inputs:
            raise AssertionError(f"{value.name} is used before it is computed")
        buffer = self.add(Buffer(value.name, layout, "input", value.name, **options))  # type: ignore[arg-type]  # memory, tail
        self.holder[value.id] = buffer.name
        self.plan.inputs[value.name] = buffer.name
        return buffer

    def weight(
        self, value: Value, layout: Layout, owner: str, shape: tuple[int, ...], memory: str = "any"
    ) -> Buffer:
        """A buffer for a constant as one operation wants it (or for an input used as a right operand)."""
        interleaved = memory == "interleaved"
        if value.id in self.inputs:
            return self.place_input(value, layout, memory="interleaved" if interleaved else "any")
        count = self.bindings.get(value.name, 0) + 1
        self.bindings[value.name] = count
        binding = value.name if count == 1 else f"{value.name}@{count}"
        buffer = Buffer(binding, layout, "weight", owner, memory="interleaved" if interleaved else "any")
        self.plan.weights[binding] = WeightUse(value.name, binding, shape)
        return self.add(buffer)

    def can_overwrite(self, value: Value) -> bool:
        """True if nobody needs the value after the operation being planned."""
        return self.last_use.get(value.id, -1) <= self.position

    # --- operations ---

    def operation(self, operation: Operation) -> None:
        handlers = {"matmul": self.matmul, "add": self.add_operation, "gelu": self.gelu}
        handler = handlers.get(operation.name)
        if handler is None:
            raise UnsupportedError(f"no plan for operator {operation.name}", where=operation.result.name)
        handler(operation)
        self.position += 1

    def pointwise_followers(self, value: Value) -> int:
        """How many element-wise operations follow a value before the next product."""
        count = 0
        for operation in self.graph.operations[self.position + 1 :]:
            if value.id not in {operand.id for operand in operation.operands} or operation.name == "matmul":
                break
            count += 1
            value = operation.result
        return count

    def matmul(self, operation: Operation) -> None:
        left, right = operation.operands
        name = operation.result.name
        m, k = matrix_view(left.type.shape)
        shape = products.Shape(m, k, right.type.shape[-1])
        choice = products.candidates(
            shape, self.plan.tiles, pointwise=self.pointwise_followers(operation.result)
        )
        grid = choice.best(self.price)
        if ceil_div(m, grid.r) > MAXIMUM_ROWS:
            raise UnsupportedError(
                f"{m} rows over {grid.r} tiles are more than the {MAXIMUM_ROWS} rows a kernel call can do",
                where=name,
                hint="use more tiles or a smaller batch",
            )
        self.plan.grids[name] = grid.describe()
        predicted = products.stages(shape, *(np.asarray([n]) for n in (grid.r, grid.c, grid.k)))

        wanted = products.left_layout(shape, grid)
        if left.id in self.inputs and left.id not in self.holder:
            self.place_input(left, products.stored_left_layout(shape, grid))
        source = self.buffer_of(left)
        if source.layout == wanted:
            # Read where it lies; the kernel reads a little past the end.
            operand = self._with_tail(source)
        else:
            operand = self.add(Buffer(f"{name}.left", wanted, "scratch", name, tail=ACCESS_TAIL))
            self.plan.steps.append(
                Exchange(f"{name}.receive", (Retile(source.name, operand.name),), float(predicted.receive[0]))
            )
        weights = self.weight(
            right, products.weight_layout(shape, grid), name, right.type.shape, "interleaved"
        )
        partial_name = name if grid.k == 1 else f"{name}.partial"
        partial = self.add(
            Buffer(
                partial_name,
                products.partial_layout(shape, grid),
                "value" if grid.k == 1 else "scratch",
                name,
                memory="interleaved",
                tail=ACCESS_TAIL,
            )
        )
        self.plan.steps.append(
            Compute(
                f"{name}.multiply",
                "gemm_f16",
                partial.name,
                (operand.name, weights.name),
                float(predicted.gemm[0]),
                apart=((partial.name, operand.name),),
            )
        )
        self.holder[operation.result.id] = partial.name
        if grid.k > 1:
            self._reduce(operation, shape, grid, partial, predicted)

    def _reduce(
        self,
        operation: Operation,
        shape: products.Shape,
        grid: products.Grid,
        partial: Buffer,
        predicted: products.Stages,
    ) -> None:
        name = operation.result.name
        layout = products.result_layout(shape, grid)
        gathered = self.add(
            Buffer(f"{name}.gathered", layout, "scratch", name, memory="interleaved", slots=grid.k - 1)
        )
        result = self.add(Buffer(name, layout, "value", name))
        self.plan.steps.append(
            Exchange(
                f"{name}.partials",
                (Gather(partial.name, gathered.name, result.name, grid.k, grid.c),),
                float(predicted.partials[0]),
            )
        )
        self.plan.steps.append(
            Compute(
                f"{name}.reduce",
                "reduce_f16",
                result.name,
                (partial.name, gathered.name),
                float(predicted.reduce[0]),
                parameters={"remote": grid.k - 1},
            )
        )
        self.holder[operation.result.id] = result.name

    def _with_tail(self, buffer: Buffer) -> Buffer:
        grown = Buffer(
            buffer.name,
            buffer.layout,
            buffer.role,
            buffer.owner,
            buffer.memory,
            buffer.slots,
            max(buffer.tail, ACCESS_TAIL),
        )
        self.plan.buffers[buffer.name] = grown
        return grown

    def pointwise_output(self, operation: Operation, operand: Value, source: Buffer) -> Buffer:
        """In place if the operand is not needed any more, otherwise a new buffer of the same layout."""
        if self.can_overwrite(operand):
            self.holder[operation.result.id] = source.name
            return source
        buffer = self.add(
            Buffer(operation.result.name, source.layout, "value", operation.result.name, source.memory)
        )
        self.holder[operation.result.id] = buffer.name
        return buffer

    def gelu(self, operation: Operation) -> None:
        operand = operation.operands[0]
        source = self.buffer_of(operand)
        output = self.pointwise_output(operation, operand, source)
        words = int(source.layout.bytes.max()) // 8
        self.plan.steps.append(
            Compute(
                f"{operation.result.name}.gelu",
                "gelu_f16",
                output.name,
                (source.name,),
                float(gelu_cycles(words)),
            )
        )

    def add_operation(self, operation: Operation) -> None:
        value, other = computed_operand(operation, self.constants)
        name = operation.result.name
        source = self.buffer_of(value)
        shape = operation.result.type.shape
        words = int(source.layout.bytes.max()) // 8
        if other.id in self.constants and is_row(other.type.shape, shape):
            row = Layout("row16", Axis(1), source.layout.column, source.layout.tiles)
            bias = self.weight(other, row, name, other.type.shape)
            output = self.pointwise_output(operation, value, source)
            rows = source.layout.row.largest()
            cycles = float(add_row_cycles(rows, source.layout.column.largest() // 16))
            self.plan.steps.append(
                Compute(f"{name}.add", "add_row_f16", output.name, (source.name, bias.name), cycles)
            )
            return
        second = self._same_layout(operation, other, source)
        output = self.pointwise_output(operation, value, source)
        self.plan.steps.append(
            Compute(
                f"{name}.add", "add_f16", output.name, (source.name, second.name), float(add_cycles(words))
            )
        )

    def _same_layout(self, operation: Operation, other: Value, source: Buffer) -> Buffer:
        """The second operand of an addition in the layout of the first."""
        name = operation.result.name
        if other.id in self.constants:
            return self.weight(other, source.layout, name, operation.result.type.shape)
        if other.id in self.inputs and other.id not in self.holder:
            return self.place_input(other, source.layout)
        second = self.buffer_of(other)
        if second.layout == source.layout:
            return second
        moved = self.add(Buffer(f"{name}.right", source.layout, "scratch", name))
        words = int(source.layout.bytes.max()) // 4
        self.plan.steps.append(
            Exchange(f"{name}.receive", (Retile(second.name, moved.name),), float(cost.exchange(words, 8)))
        )
        return moved
