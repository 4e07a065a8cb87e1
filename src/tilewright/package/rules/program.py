"""Debug information about the program: everything it names exists, and nothing in it is out of bounds."""

from __future__ import annotations

import math

import numpy as np

from tilewright.errors import PackageError

from ..program_info import BUFFER_ROLES, PLACED, ClassInfo, LoopInfo, ProgramInfo, ValueInfo
from ..records import NO_BLOB, Package
from ..target import TILE_BASE, TILE_END, TILES
from .bindings import check_slices, check_type
from .values import U32, column, first, table, text, unsigned

MAX_INSTANCES = 1 << 22
"""Steps of one run, repetitions counted."""
MAX_LOOPS = 1 << 10
MAX_LINES = 1 << 12
"""Lines about one operation."""
_MAX_ROLE = 16


def check_program(package: Package, program: ProgramInfo) -> None:
    """Raises PackageError naming the record at fault."""
    steps = len(package.profile.steps)
    for number, buffer in enumerate(program.buffers):
        where = f"debug, buffer {number}"
        text(buffer.name, "name", where)
        if buffer.role not in BUFFER_ROLES:
            known = f"known: {', '.join(BUFFER_ROLES)}"
            raise PackageError(f"unknown role {buffer.role[:_MAX_ROLE]!r}", where=where, hint=known)
        text(buffer.owner, "owner", where, empty=True)
        text(buffer.layout, "layout", where, empty=True)
    _classes(program, steps)
    if len(program.steps) != steps:
        raise PackageError(f"{len(program.steps)} entries for {steps} profile steps", where="debug, steps")
    for number, step in enumerate(program.steps):
        where = f"debug, step {number}"
        for name in ("operation", "kernel", "detail"):
            text(getattr(step, name), name, where, empty=True)
        if not (math.isfinite(step.cycles) and step.cycles >= 0):
            raise PackageError(f"{step.cycles} predicted cycles", where=where)
    for number, operation in enumerate(program.operations):
        where = f"debug, operation {number}"
        text(operation.name, "name", where)
        unsigned(operation.splits, "splits", where, maximum=TILES)
        text(operation.part_of, "operation it is part of", where, empty=True)
        if len(operation.plan) > MAX_LINES:
            raise PackageError(f"{len(operation.plan)} lines are over the limit of {MAX_LINES}", where=where)
        for line in operation.plan:
            text(line, "line", where, empty=True)
    for number, value in enumerate(program.values):
        _value(value, f"debug, value {number}", steps, len(program.buffers))
    for number, constant in enumerate(program.constants):
        where = f"debug, constant {number}"
        text(constant.binding, "binding", where)
        text(constant.constant, "name", where)
        unsigned(constant.iterations, "iterations", where)
        for extents in (constant.shape, constant.rows, constant.columns, constant.broadcast):
            for extent in extents:
                unsigned(extent, "extent", where)
        if any(len(extents) not in (0, 4) for extents in (constant.rows, constant.columns)):
            raise PackageError("its rows or columns are not four numbers", where=where)
    _loops(program.loops, steps)
    for number, area in enumerate(program.areas):
        where = f"debug, area {number}"
        text(area.name, "name", where)
        unsigned(area.address, "address", where)
        unsigned(area.size, "size", where)
        if area.size == 0 or area.address < TILE_BASE or area.address + area.size > TILE_END:
            raise PackageError(f"{area.name!r} is empty or leaves tile memory", where=where)


def _classes(program: ProgramInfo, steps: int) -> None:
    seen = np.zeros(TILES, np.bool_)
    for number, group in enumerate(program.classes):
        where = f"debug, class {number}"
        tiles = group.tiles
        if not isinstance(tiles, np.ndarray) or tiles.dtype != np.dtype("<u2") or tiles.ndim != 1:
            raise PackageError("its tiles are no array of 16-bit numbers", where=where)
        if not len(tiles) or int(tiles.max()) >= TILES or seen[tiles].any():
            raise PackageError(f"its tiles are none, not of 0..{TILES - 1}, or in two classes", where=where)
        if len(np.unique(tiles)) < len(tiles):
            raise PackageError("names a tile twice", where=where)
        seen[tiles] = True
        _placed(group, where, len(program.buffers), steps)


def _placed(group: ClassInfo, where: str, buffers: int, steps: int) -> None:
    table(group.buffers, PLACED, "table of buffers", where)
    rows = group.buffers
    begin, last = column(rows, "address"), column(rows, "last")
    end = begin + column(rows, "size") + column(rows, "tail")
    for mask, what in (
        (column(rows, "buffer") >= buffers, "is a buffer that does not exist"),
        ((begin < TILE_BASE) | (end > TILE_END), "leaves tile memory"),
        ((last < column(rows, "first")) | (last >= steps), "lives in steps that do not exist"),
    ):
        hit = first(mask)
        if hit is not None:
            raise PackageError(f"entry {hit} {what}", where=where)


def _value(value: ValueInfo, where: str, steps: int, buffers: int) -> None:
    text(value.binding.name, "name", where)
    where = f"{where} ({value.binding.name[:80]!r})"
    unsigned(value.step, "step", where, maximum=max(steps - 1, 0))
    unsigned(value.buffer, "buffer", where, maximum=max(buffers - 1, 0))
    text(value.owner, "owner", where, empty=True)
    if value.binding.blob != NO_BLOB:
        raise PackageError("only weights have a blob", where=where)
    check_type(value.binding, where)
    check_slices(value.binding, where, once=False)


def _loops(loops: list[LoopInfo], steps: int) -> None:
    """Loops in order, each inside the one around it or after the one before it."""
    if len(loops) > MAX_LOOPS:
        raise PackageError(f"{len(loops)} loops are over the limit of {MAX_LOOPS}", where="debug, loops")
    instances = float(steps)
    for number, loop in enumerate(loops):
        where = f"debug, loop {number}"
        unsigned(loop.count, "count", where)
        unsigned(loop.first, "first step", where)
        unsigned(loop.last, "last step", where)
        if not loop.first <= loop.last < steps or loop.count == 0:
            raise PackageError(f"{loop.count} times steps {loop.first}..{loop.last} of {steps}", where=where)
        around = math.prod(o.count for o in loops if o is not loop and o.first <= loop.first <= o.last)
        instances += (loop.last - loop.first + 1) * around * float(min(loop.count, U32))
    if instances > MAX_INSTANCES:
        raise PackageError(f"more than {MAX_INSTANCES} steps in one run", where="debug, loops")
    open_ends: list[int] = []
    previous = (-1, 0)
    for loop in loops:
        while open_ends and open_ends[-1] < loop.first:
            open_ends.pop()
        ends_inside = not open_ends or loop.last <= open_ends[-1]
        if (loop.first, -loop.last) < previous or not ends_inside:
            raise PackageError("two loops overlap, or are not in order", where="debug, loops")
        previous = (loop.first, -loop.last)
        open_ends.append(loop.last)
