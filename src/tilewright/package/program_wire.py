"""`ProgramInfo` to its part of a message and back; knows nothing of its meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import PackageError

from .binding_wire import get_binding, get_blob, put_binding, put_blob, read_numbers, read_rows, read_table
from .blobs import Budget
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
from .records import SLICE, no_slices

_U16 = np.dtype("<u2")
_EXTENTS = ("shape", "rows", "columns", "broadcast")
"""Lists of numbers of a constant."""


def put_program(item: Any, program: ProgramInfo) -> None:
    """Fill a message's `Program`."""

    def lists(name: str, records: list[Any]) -> zip[tuple[Any, Any]]:
        return zip(item.init(name, len(records)), records, strict=True)

    for entry, buffer in lists("buffers", program.buffers):
        entry.name, entry.role, entry.owner = buffer.name, buffer.role, buffer.owner
        entry.layout = buffer.layout
    end = 0
    for entry, group in lists("classes", program.classes):
        end += len(group.buffers)
        entry.tiles, entry.placedEnd = group.tiles.astype(_U16).tobytes(), end
    _put_rows(item.init("placed"), [group.buffers for group in program.classes])
    for entry, step in lists("steps", program.steps):
        entry.operation, entry.kernel = step.operation, step.kernel
        entry.cycles, entry.detail = float(step.cycles), step.detail
    for entry, operation in lists("operations", program.operations):
        entry.name, entry.plan, entry.splits = operation.name, operation.plan, int(operation.splits)
        entry.partOf = operation.part_of
    end = 0
    for entry, value in lists("values", program.values):
        end += len(value.binding.slices)
        put_binding(entry.init("binding"), replace(value.binding, slices=no_slices()))
        entry.sliceEnd, entry.step, entry.buffer = end, int(value.step), int(value.buffer)
        entry.owner, entry.copy = value.owner, bool(value.copy)
    _put_rows(item.init("slices"), [value.binding.slices for value in program.values])
    for entry, constant in lists("constants", program.constants):
        entry.binding, entry.constant = constant.binding, constant.constant
        entry.iterations, entry.transposed = int(constant.iterations), bool(constant.transposed)
        for name in _EXTENTS:
            setattr(entry, name, read_numbers(getattr(constant, name)))
    for entry, loop in lists("loops", program.loops):
        entry.first, entry.last, entry.count = int(loop.first), int(loop.last), int(loop.count)
    for entry, area in lists("areas", program.areas):
        entry.name, entry.address, entry.size = area.name, int(area.address), int(area.size)


def _put_rows(item: Any, tables: list[NDArray[np.void]]) -> None:
    put_blob(item, b"".join(table.tobytes() for table in tables))


def _get_rows(
    item: Any, ends: list[int], dtype: np.dtype[np.void], budget: Budget, where: str
) -> list[NDArray[np.void]]:
    """The tables that end at `ends`."""
    rows = read_table(get_blob(item, budget, where), dtype, where)
    if ends != sorted(ends) or (ends[-1] if ends else 0) != len(rows):
        raise PackageError("the ends of its parts do not cut it into parts", where=where)
    return [rows[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def get_program(item: Any, budget: Budget) -> ProgramInfo:
    """The record in a message's `Program`; its rules are not checked here. Raises PackageError."""
    placed = _get_rows(
        item.placed, [int(e.placedEnd) for e in item.classes], PLACED, budget, "placed buffers"
    )
    slices = _get_rows(item.slices, [int(e.sliceEnd) for e in item.values], SLICE, budget, "slices of values")
    return ProgramInfo(
        buffers=[
            BufferInfo(str(entry.name), str(entry.role), str(entry.owner), str(entry.layout))
            for entry in item.buffers
        ],
        classes=[
            ClassInfo(read_rows(bytes(entry.tiles), _U16, f"tiles of class {number}"), rows)
            for number, (entry, rows) in enumerate(zip(item.classes, placed, strict=True))
        ],
        steps=[
            StepInfo(str(entry.operation), str(entry.kernel), float(entry.cycles), str(entry.detail))
            for entry in item.steps
        ],
        operations=[
            OperationInfo(
                str(entry.name), [str(line) for line in entry.plan], int(entry.splits), str(entry.partOf)
            )
            for entry in item.operations
        ],
        values=[
            ValueInfo(
                replace(get_binding(entry.binding), slices=rows),
                int(entry.step),
                int(entry.buffer),
                str(entry.owner),
                bool(entry.copy),
            )
            for entry, rows in zip(item.values, slices, strict=True)
        ],
        constants=[
            ConstantInfo(
                str(entry.binding),
                str(entry.constant),
                iterations=int(entry.iterations),
                transposed=bool(entry.transposed),
                **{name: tuple(read_numbers(getattr(entry, name))) for name in _EXTENTS},
            )
            for entry in item.constants
        ],
        loops=[LoopInfo(int(entry.first), int(entry.last), int(entry.count)) for entry in item.loops],
        areas=[AreaInfo(str(entry.name), int(entry.address), int(entry.size)) for entry in item.areas],
    )
