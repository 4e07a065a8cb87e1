"""What comes after a product, as far as it concerns where the product leaves its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...graph import Operation, Value
from .tasks import Product, Task

PASSED_ON = ("layer_norm", "gelu")
"""Operations that leave their result where their operand lies."""


@dataclass(frozen=True)
class Consumer:
    """The product that takes a value as its left operand, and the norms that are on the way."""

    product: Product
    norms: tuple[Operation, ...]


def consumer_of(
    tasks: Sequence[Task], position: int, value: Value, carried: Mapping[int, Value]
) -> Consumer | None:
    """The first product behind task `position` that takes the value, or what it is passed on as.

    Args:
        carried: the argument that a result of a loop's body comes back as, by id.
    """
    norms: list[Operation] = []
    for index in (*range(position + 1, len(tasks)), *range(position + 1)):
        if index == 0:
            # Around the loop, under another name.
            if value.id not in carried:
                return None
            value = carried[value.id]
        task = tasks[index]
        if isinstance(task, Product):
            if task.left is value:
                return Consumer(task, tuple(norms))
        elif task.operands and task.operands[0] is value and task.name in PASSED_ON:
            value = task.result
            norms += [task] if task.name == "layer_norm" else []
    return None
