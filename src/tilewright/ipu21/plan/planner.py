"""From a graph to a plan: one pass over the operations, each choosing the cheapest way for what it finds.

The right choice for one operation hardly depends on the others, because every value is stored once, in A16
records, on the tiles that computed it; operations couple through memory only. That coupling is the `price`:
cycles one is ready to pay for a byte per tile. The pipeline raises it until the placer finds room.
"""

from __future__ import annotations

from dataclasses import replace

from ...arithmetic import ceil_div
from ...errors import UnsupportedError
from ...graph import Graph, Operation, Value
from ..kernels import KERNELS
from ..kernels.gemm import MAXIMUM_ROWS
from . import cost
from . import matmul as products
from .layout import MICRO, Axis, Layout, spread
from .movement import load_of, retile
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

    def place_input(self, value: Value, layout: Layout) -> Buffer:
        if value.id not in self.inputs:
            raise AssertionError(f"{value.name} is used before it is computed")
        buffer = self.add(Buffer(value.name, layout, "input", value.name))
        self.holder[value.id] = buffer.name
        self.plan.inputs[value.name] = buffer.name
        return buffer

    def weight(self, value: Value, layout: Layout, owner: str, shape: tuple[int, ...]) -> Buffer:
        """A buffer for a constant as one operation wants it (or for an input used as a right operand)."""
        if value.id in self.inputs:
            return self.place_input(value, layout)
        count = self.bindings.get(value.name, 0) + 1
        self.bindings[value.name] = count
        binding = value.name if count == 1 else f"{value.name}@{count}"
        self.plan.weights[binding] = WeightUse(value.name, binding, shape)
        return self.add(Buffer(binding, layout, "weight", owner))

    def call(
        self, name: str, kernel: str, output: str, inputs: tuple[str, ...], cycles: float, **parameters: int
    ) -> None:
        """Append a kernel call, and give its buffers what the kernel's contract asks for."""
        contract = KERNELS[kernel].contract
        operands = [operand for operand in contract.operands if operand.role != "unused"]
        buffers = dict(zip((operand.name for operand in operands), (output, *inputs), strict=True))
        for operand in operands:
            buffer = self.plan.buffers[buffers[operand.name]]
            self.plan.buffers[buffer.name] = replace(
                buffer,
                memory="interleaved" if operand.interleaved or operand.prefers_interleaved else buffer.memory,
                tail=max(buffer.tail, operand.access_tail),
            )
        apart = tuple((buffers[one], buffers[other]) for one, other in contract.apart)
        self.plan.steps.append(Compute(name, kernel, output, inputs, cycles, apart, parameters))

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
        placed = left.id not in self.inputs or left.id in self.holder
        source = self.buffer_of(left).layout if placed else None
        pointwise = self.pointwise_followers(operation.result)
        grid = products.choose(shape, self.plan.tiles, source=source, pointwise=pointwise, price=self.price)
        if ceil_div(m, grid.r) > MAXIMUM_ROWS:
            raise UnsupportedError(
                f"{m} rows over {grid.r} tiles are more than the {MAXIMUM_ROWS} rows a kernel call can do",
                where=name,
                hint="use more tiles or a smaller batch",
            )
        self.plan.grids[name] = grid.describe()
        predicted = products.grid_stages(shape, grid, source)
        wanted = products.left_layout(shape, grid)
        if not placed:
            self.place_input(left, products.stored_left_layout(shape, grid))
        operand = self.buffer_of(left)
        if not operand.layout.same_shards(wanted):
            held, operand = operand, self.add(Buffer(f"{name}.left", wanted, "scratch", name))
            self.plan.steps.append(
                Exchange(f"{name}.receive", (Retile(held.name, operand.name),), float(predicted.receive))
            )
        weights = self.weight(right, products.weight_layout(shape, grid), name, right.type.shape)
        layout = products.partial_layout(shape, grid)
        if grid.k == 1:
            partial = self.add(Buffer(name, layout, "value", name))
        else:
            partial = self.add(Buffer(f"{name}.partial", layout, "scratch", name))
        inputs = (operand.name, weights.name)
        self.call(f"{name}.multiply", "gemm_f16", partial.name, inputs, float(predicted.gemm))
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
        gathered = self.add(Buffer(f"{name}.gathered", layout, "scratch", name, slots=grid.k - 1))
        result = self.add(Buffer(name, layout, "value", name))
        move = Gather(partial.name, gathered.name, result.name, grid.k, grid.c)
        self.plan.steps.append(Exchange(f"{name}.partials", (move,), float(predicted.partials)))
        inputs = (partial.name, gathered.name)
        self.call(
            f"{name}.reduce", "reduce_f16", result.name, inputs, float(predicted.reduce), remote=grid.k - 1
        )
        self.holder[operation.result.id] = result.name

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
        cycles = cost.CALL + float(KERNELS["gelu_f16"].cycles(largest_words(source)))
        self.call(f"{operation.result.name}.gelu", "gelu_f16", output.name, (source.name,), cycles)

    def add_operation(self, operation: Operation) -> None:
        value, other = computed_operand(operation, self.constants)
        name = operation.result.name
        source = self.buffer_of(value)
        shape = operation.result.type.shape
        if other.id in self.constants and is_row(other.type.shape, shape):
            row = Layout("row16", Axis(1), source.layout.column, source.layout.tiles)
            second = self.weight(other, row, name, other.type.shape)
            kernel = "add_row_f16"
            extents: tuple[int, ...] = (source.layout.row.largest(), source.layout.column.largest() // MICRO)
        else:
            second = self._same_layout(operation, other, source)
            kernel = "add_f16"
            extents = (largest_words(source),)
        output = self.pointwise_output(operation, value, source)
        cycles = cost.CALL + float(KERNELS[kernel].cycles(*extents))
        self.call(f"{name}.add", kernel, output.name, (source.name, second.name), cycles)

    def _same_layout(self, operation: Operation, other: Value, source: Buffer) -> Buffer:
        """The second operand of an addition in the layout of the first."""
        name = operation.result.name
        if other.id in self.constants:
            return self.weight(other, source.layout, name, operation.result.type.shape)
        if other.id in self.inputs and other.id not in self.holder:
            return self.place_input(other, source.layout)
        second = self.buffer_of(other)
        if second.layout.same_shards(source.layout):
            return second
        moved = self.add(Buffer(f"{name}.right", source.layout, "scratch", name))
        traffic = retile(second.layout, source.layout)
        cycles = cost.move(load_of(traffic, max(second.layout.tiles, source.layout.tiles)))
        self.plan.steps.append(Exchange(f"{name}.receive", (Retile(second.name, moved.name),), cycles))
        return moved


def largest_words(buffer: Buffer) -> int:
    """64-bit words of the largest shard of a buffer."""
    return int(buffer.layout.bytes.max()) // 8
