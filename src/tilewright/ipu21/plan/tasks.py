"""What the planner plans: operations of the graph, with those that one set of stages computes joined into
one task.

A product takes with it what its root kernel does for nothing: the addition of a row, an activation, the
addition of a matrix of its own shape. Products of one left operand are one product.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ...graph import Operation, Region, Value
from ...graph.uses import regions
from ...operators.parameter import flag


@dataclass(frozen=True)
class Product:
    """left @ rights, each plus its bias, then an activation, then plus a residual.

    Attributes:
        results: the values it leaves, one per right operand.
        activation: "", "tanh" or "exact".
        transposed: the right operands are stored as [N, K].
    """

    results: tuple[Value, ...]
    left: Value
    rights: tuple[Value, ...]
    biases: tuple[Value | None, ...]
    activation: str = ""
    residual: Value | None = None
    transposed: bool = False
    location: str = ""

    @property
    def name(self) -> str:
        return self.results[0].name


Task = Product | Operation


def name_of(task: Task) -> str:
    """The name of a task's first result."""
    return task.name if isinstance(task, Product) else task.results[0].name


def count_uses(region: Region) -> Counter[int]:
    """How often each value is used, by id; results of regions are uses."""
    uses: Counter[int] = Counter()
    for inside in regions(region):
        for operation in inside.operations:
            uses.update(value.id for value in operation.operands)
        uses.update(value.id for value in inside.results)
    return uses


def activation_of(gelu: Operation) -> str:
    """The activation of root kernels that a gelu is: "tanh" or "exact"."""
    return "tanh" if gelu.attributes["approximate"] == "tanh" else "exact"


def is_row(shape: tuple[int, ...], result: tuple[int, ...]) -> bool:
    """True if a tensor broadcasts along every axis but the last, which it has in full."""
    return bool(shape) and shape[-1] == result[-1] and all(extent == 1 for extent in shape[:-1])


def tasks_of(region: Region, constants: set[int], weights: set[int], iterated: set[int]) -> list[Task]:
    """The tasks of a region in an order of execution.

    Args:
        constants: ids of values known before the program runs, slices of iterated constants included.
        weights: ids of values that can be stored as a product wants its right operand.
        iterated: ids of those constants that are another slice in every iteration.
    """
    uses = count_uses(region)
    fused: dict[int, Product] = {}
    skipped: set[int] = set()
    for index, operation in enumerate(region.operations):
        if operation.name == "matmul" and _is_product(operation, weights):
            taken = skipped | fused.keys()
            product, members = _with_followers(region.operations, index, uses, constants, taken)
            # The task stands where its last member stood, when all its operands are there.
            fused[members[-1]] = product
            skipped.update(members[:-1])
    ordered: list[Task] = []
    for index, operation in enumerate(region.operations):
        if index in fused:
            ordered.append(fused[index])
        elif index not in skipped:
            ordered.append(operation)
    return _joined(ordered, constants, iterated)


def _is_product(operation: Operation, weights: set[int]) -> bool:
    left, right = operation.operands
    return right.id in weights and len(right.type.shape) == 2 and left.id not in weights


def _with_followers(
    operations: list[Operation], index: int, uses: Counter[int], constants: set[int], taken: set[int]
) -> tuple[Product, list[int]]:
    first = operations[index]
    left, right = first.operands
    transposed = flag(first.attributes, "transpose_b")
    product = Product(
        (first.result,), left, (right,), (None,), transposed=transposed, location=first.location
    )
    members = [index]
    while True:
        value = product.results[0]
        if uses[value.id] != 1:
            break
        user = next(
            (i for i in range(members[-1] + 1, len(operations)) if value in operations[i].operands), None
        )
        if user is None or user in taken:
            break
        extended = _extend(product, operations[user], value, constants)
        if extended is None:
            break
        product = extended
        members.append(user)
    return product, members


def _extend(product: Product, user: Operation, value: Value, constants: set[int]) -> Product | None:
    """The product with one more operation at its root, or None if it cannot take it."""
    results = (user.result,)
    if user.name == "gelu" and not product.activation and product.residual is None:
        return replace(product, results=results, activation=activation_of(user))
    if user.name != "add" or product.residual is not None or user.result.type.shape != value.type.shape:
        return None
    other = user.operands[1] if user.operands[0] is value else user.operands[0]
    if other.id in constants:
        row = is_row(other.type.shape, value.type.shape)
        if row and product.biases == (None,) and not product.activation:
            return replace(product, results=results, biases=(other,))
        return None
    if other.type.shape == value.type.shape:
        return replace(product, results=results, residual=other)
    return None


def _joined(tasks: list[Task], constants: set[int], iterated: set[int]) -> list[Task]:
    """Products of the same left operand that need nothing else become one, where the first of them stands.

    Their weights are stored together, and their biases: all walk through the iterations, or none.
    """
    groups: dict[tuple[object, ...], list[tuple[int, Product]]] = {}
    for index, task in enumerate(tasks):
        if (
            isinstance(task, Product)
            and task.residual is None
            and all(right.id in constants for right in task.rights)
        ):
            (right,), (bias,) = task.rights, task.biases
            walks = [value.id in iterated for value in (right, bias or right)]
            key = (task.left.id, task.activation, task.transposed, *walks)
            groups.setdefault(key, []).append((index, task))
    joined: dict[int, Product] = {}
    gone: set[int] = set()
    for members in groups.values():
        place, first = members[0]
        products = [product for _, product in members]
        joined[place] = replace(
            first,
            results=tuple(value for product in products for value in product.results),
            rights=tuple(value for product in products for value in product.rights),
            biases=tuple(value for product in products for value in product.biases),
        )
        gone.update(index for index, _ in members[1:])
    return [joined.get(index, task) for index, task in enumerate(tasks) if index not in gone]
