"""`ProgramInfo` to its part of a message and back; knows nothing of its meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from .binding_wire import get_binding, put_binding, read_numbers, read_rows, read_table
from .program_info import (
    PLACED,
    AreaInfo,
    BufferInfo,
    ClassInfo,
    ConstantInfo,
    LoopInfo,
    OperationInfo,
    ProgramInfo,
    StepInfo,
    ValueInfo,
)

_U16 = np.dtype("<u2")


def put_program(item: Any, program: ProgramInfo) -> None:
    """Fill a message's `Program`."""

    def lists(name: str, records: list[Any]) -> zip[tuple[Any, Any]]:
        return zip(item.init(name, len(records)), records, strict=True)

    for entry, buffer in lists("buffers", program.buffers):
        entry.name, entry.role, entry.owner = buffer.name, buffer.role, buffer.owner
        entry.layout = buffer.layout
    for entry, group in lists("classes", program.classes):
        entry.tiles = group.tiles.astype(_U16).tobytes()
        entry.placed = group.buffers.tobytes()
    for entry, step in lists("steps", program.steps):
        entry.operation, entry.kernel = step.operation, step.kernel
        entry.cycles, entry.detail = float(step.cycles), step.detail
    for entry, operation in lists("operations", program.operations):
        entry.name, entry.plan, entry.splits = operation.name, operation.plan, int(operation.splits)
    for entry, value in lists("values", program.values):
        put_binding(entry.init("binding"), value.binding)
        entry.step, entry.buffer = int(value.step), int(value.buffer)
        entry.owner, entry.copy = value.owner, bool(value.copy)
    for entry, constant in lists("constants", program.constants):
        entry.binding, entry.constant = constant.binding, constant.constant
        entry.shape = read_numbers(constant.shape)
    for entry, loop in lists("loops", program.loops):
        entry.first, entry.last, entry.count = int(loop.first), int(loop.last), int(loop.count)
    for entry, area in lists("areas", program.areas):
        entry.name, entry.address, entry.size = area.name, int(area.address), int(area.size)


def get_program(item: Any) -> ProgramInfo:
    """The record in a message's `Program`; its rules are not checked here. Raises PackageError."""
    return ProgramInfo(
        buffers=[
            BufferInfo(str(entry.name), str(entry.role), str(entry.owner), str(entry.layout))
            for entry in item.buffers
        ],
        classes=[
            ClassInfo(
                read_rows(bytes(entry.tiles), _U16, f"tiles of class {number}"),
                read_table(entry.placed, PLACED, f"buffers of class {number}"),
            )
            for number, entry in enumerate(item.classes)
        ],
        steps=[
            StepInfo(str(entry.operation), str(entry.kernel), float(entry.cycles), str(entry.detail))
            for entry in item.steps
        ],
        operations=[
            OperationInfo(str(entry.name), [str(line) for line in entry.plan], int(entry.splits))
            for entry in item.operations
        ],
        values=[
            ValueInfo(
                get_binding(entry.binding),
                int(entry.step),
                int(entry.buffer),
                str(entry.owner),
                bool(entry.copy),
            )
            for entry in item.values
        ],
        constants=[
            ConstantInfo(str(entry.binding), str(entry.constant), tuple(read_numbers(entry.shape)))
            for entry in item.constants
        ],
        loops=[LoopInfo(int(entry.first), int(entry.last), int(entry.count)) for entry in item.loops],
        areas=[AreaInfo(str(entry.name), int(entry.address), int(entry.size)) for entry in item.areas],
    )
