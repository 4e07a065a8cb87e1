"""Run one supervisor function on one tile: the way kernels are tested and measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import SimulationError, UsageError
from ..machine.memory import TILE_BASE
from . import state as at
from .checks import SUPERVISOR_STACK, WORKER_STACK_BYTES, Checks
from .engine_registers import WORKER_BASE
from .stops import Stop, StopKind, context_name
from .tile import Tile

STACK_TOP = SUPERVISOR_STACK[1]
"""Supervisor stack pointer at entry; it grows down (known layout of the published runtime)."""
WORKER_STACKS = 0x580E0
"""Worker w's base register is WORKER_STACKS + w * WORKER_STACK_BYTES."""
RETURN_REGISTER, STACK_REGISTER = 10, 11


class SegmentLike(Protocol):
    """Anything with an address and bytes, such as a segment of a linked image."""

    @property
    def address(self) -> int: ...

    @property
    def data(self) -> bytes: ...


class FunctionError(SimulationError):
    """The function did not return.

    Beside the attributes of SimulationError (`tile` there is the physical id):

    Attributes:
        stop: why.
        simulated: the tile, left as it was then.
    """

    def __init__(self, stop: Stop, tile: Tile) -> None:
        super().__init__(
            stop.text or f"stopped with {stop.kind.name} at {stop.pc:#x}",
            category="unsupported" if stop.kind is StopKind.SYNC else stop.category,
            tile=tile.physical,
            context=context_name(stop.context),
            address=stop.pc,
            symbol=tile.symbol_at(stop.pc),
            cycle=stop.clock,
        )
        self.stop = stop
        self.simulated = tile


@dataclass(frozen=True)
class Result:
    """A finished call.

    Attributes:
        tile: the tile afterwards: memory, registers, counters.
        cycles: cycles from the first instruction's issue to the return branch's target, return included.
        slots: instructions or bundles issued by each worker, int64 [6].
        instructions: instructions issued by the supervisor.
    """

    tile: Tile
    cycles: int
    slots: NDArray[np.int64]
    instructions: int

    def read(self, address: int, shape: tuple[int, ...] | int, dtype: Any) -> NDArray[Any]:
        """An array out of the tile's memory (a copy), row-major."""
        kind = np.dtype(dtype)
        count = int(np.prod(shape))
        return np.frombuffer(self.tile.read(address, count * kind.itemsize), dtype=kind).reshape(shape).copy()


def _segments(image: Any) -> Iterable[tuple[int, bytes]]:
    """(address, bytes) of an image object, a list of segments, or a list of pairs."""
    for item in getattr(image, "segments", image):
        if isinstance(item, tuple):
            yield item[0], item[1]
        else:
            yield item.address, item.data


def _entry_address(image: Any, entry: str | int) -> int:
    if isinstance(entry, int):
        return entry
    symbols: Mapping[str, int] = getattr(image, "symbols", {})
    if entry not in symbols:
        known = ", ".join(sorted(symbols)) or "none"
        raise UsageError(f"no symbol {entry!r} in the image", hint=f"it has {known}")
    return symbols[entry]


def prepare(
    image: Any,
    entry: str | int,
    registers: Mapping[int, int] | None = None,
    memory: Mapping[int, bytes | NDArray[Any]] | None = None,
    *,
    checks: Checks | None = None,
    physical: int = 0,
    csrs: Mapping[int, int] | None = None,
) -> Tile:
    """A tile about to call a supervisor function; see `run_function`."""
    tile = Tile(physical, checks=checks)
    tile.symbols = dict(getattr(image, "symbols", {}))
    for address, data in _segments(image):
        tile.load(address, bytes(data), len(data))
    for address, operand in (memory or {}).items():
        data = operand if isinstance(operand, bytes) else np.ascontiguousarray(operand).tobytes()
        tile.load(address, data, len(data))
    for worker in range(6):
        tile.set_csr(WORKER_BASE + worker, WORKER_STACKS + worker * WORKER_STACK_BYTES)
    for number, value in (csrs or {}).items():
        tile.set_csr(number, value)
    tile.m[0, RETURN_REGISTER] = 0
    tile.m[0, STACK_REGISTER] = STACK_TOP
    for register, value in (registers or {}).items():
        if not 0 <= register < 12:
            raise UsageError(f"$m{register} cannot be set")
        tile.m[0, register] = value & 0xFFFFFFFF
    tile.pc = _entry_address(image, entry)
    if not tile.pc >= TILE_BASE:
        raise UsageError(f"entry {tile.pc:#x} is outside tile memory")
    return tile


def finish(tile: Tile, *, budget: int | None = None) -> Result:
    """Run a prepared tile until its function returns. Raises FunctionError if it stops in any other way."""
    begin, before = tile.clock, tile.counters
    stop = tile.run(budget=budget)
    if stop.kind is not StopKind.ENDED:
        raise FunctionError(stop, tile)
    issued = tile.counters - before
    return Result(tile, stop.clock + 6 - begin, issued[1 : at.CONTEXTS], int(issued[0]))


def run_function(
    image: Any,
    entry: str | int,
    registers: Mapping[int, int] | None = None,
    memory: Mapping[int, bytes | NDArray[Any]] | None = None,
    *,
    checks: Checks | None = None,
    physical: int = 0,
    csrs: Mapping[int, int] | None = None,
    budget: int | None = None,
) -> Result:
    """Call a supervisor function on one tile and let it return.

    $m10 holds a return address that ends the run, $m11 the top of the supervisor stack, WORKERn_BASE the
    workers' stacks of the published runtime.

    Args:
        image: an object with `segments` (address, data) and `symbols`, or a list of (address, bytes).
        entry: symbol or address of the function.
        registers: M register number to value, for arguments.
        memory: address to bytes or array, for operands.
        checks: optional checks; default `Checks()`.
        physical: tile id.
        csrs: supervisor control registers to set first.
        budget: instructions before the call is judged endless; default from `checks`.

    Raises:
        FunctionError: the function stopped without returning (exception, unsupported instruction, sync,
            budget).
    """
    tile = prepare(image, entry, registers, memory, checks=checks, physical=physical, csrs=csrs)
    return finish(tile, budget=budget)
