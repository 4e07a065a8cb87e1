"""Run one tile's code: a supervisor function, or a vertex on some workers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SimulationError, UsageError
from tilewright.ipu21.isa.build import br, runall, setzi, sync
from tilewright.ipu21.isa.csrs import FP_CTL, PRNG_0_0, PRNG_SEED, WORKER0_BASE, csr
from tilewright.ipu21.isa.encode import encode
from tilewright.ipu21.isa.enums import ENUMS
from tilewright.ipu21.isa.meaning.prng import seeded
from tilewright.ipu21.isa.registers import MAIN_ZERO
from tilewright.ipu21.machine.memory import TILE_BASE, TILE_END
from tilewright.ipu21.machine.timing import WORKER_SLOTS
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.choice import REFERENCE, make_engines
from tilewright.ipu21.simulator.doubts import warn_of_rounding_down
from tilewright.ipu21.simulator.stops import Stop, StopKind, context_name
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.simulator.trace import Step, steps

from .memory import Buffer, Space, VertexField, dtype_of, state_bytes, word_of
from .program import STACK_BYTES, STACK_TOP, STACKS, TileProgram, stacks_size, worker_base

RETURN, STACK = 10, 11
_STUB_BYTES = 8 * (WORKER_SLOTS + 4)
_EXIT = encode("exitz $mSrc0", MAIN_ZERO)[0]
_LOCAL = ENUMS["TileSyncZone"]["TEXCH_SYNCZONE_LOCAL"]
_TEXT = re.compile(r"^.*? at 0x[0-9a-f]+(?: \((?P<instruction>.*?)\))?: (?P<what>.*)$", re.DOTALL)
_PLACE = re.compile(r"([A-Za-z_.$][\w.$]*)\s*(?:([+-])\s*(\w+))?$")

Value = int | Buffer | str
Trace = Callable[[Step], None]


@dataclass(frozen=True)
class RunResult:
    """What a run left behind.

    Attributes:
        cycles: from the first instruction's issue until the call has returned; for a vertex from the launch
            to the end of the barrier after it.
        instructions: issued by the supervisor.
        slots: instructions and bundles issued by each worker, int64 [6].
        m: uint32 [7, 16], row 0 the supervisor. a: uint32 [6, 16].
    """

    cycles: int
    instructions: int
    slots: NDArray[np.int64]
    m: NDArray[np.uint32]
    a: NDArray[np.uint32]
    _bench: TileBench = field(repr=False)

    def array(self, name: str | Buffer) -> NDArray[Any]:
        """Elements of a buffer as they are in the tile now."""
        return self._bench.array(name)


class TileBench:
    """One tile with a program, named operands, and its stacks.

    Memory and worker registers live on between runs, as on the machine. After a run that ended in an error
    the memory can still be read.
    """

    def __init__(
        self,
        program: TileProgram,
        *,
        checks: Checks | None = None,
        physical: int = 0,
        stack: int = 0,
        engines: str = REFERENCE,
    ) -> None:
        """`stack` is the least number of bytes for every stack.

        `engines` are `reference`, which is there at once, or `translated`, worth its compilation from some
        millions of instructions on. They give the same.
        """
        self.program = program
        self.buffers: dict[str, Buffer] = {}
        self._stopped = False
        image = program.image
        self.space = Space((segment.address, segment.end) for segment in image.segments)
        usual = stack <= STACK_BYTES and self.space.is_free(STACK_TOP - STACKS, STACKS)
        size = STACK_BYTES if usual else -(-max(stack, STACK_BYTES) // 8) * 8
        total = stacks_size(size)
        top = self._stack_top = STACK_TOP if usual else self.space.find(total, region=0, spread=False) + total
        self.space.take(top - total, total)
        # The stack check must know these stacks, which are not those of the published runtime.
        checks = replace(checks or Checks(), worker_stack=size, supervisor_stack=(top - size, top))
        self._engines = make_engines(engines, checks)
        self.tile = Tile(physical, checks=checks)
        for segment in image.segments:
            self.tile.load(segment.address, segment.data, len(segment.data))
        for number in range(WORKER_SLOTS):
            self.tile.set_csr(WORKER0_BASE + number, worker_base(top, size, number))
        self._stub = self.space.find(_STUB_BYTES, region=0, spread=False)
        self._exit = self._stub + _STUB_BYTES - 4

    # ---- operands

    def put(self, name: str, array: Any, *, at: Value | None = None, region: int | None = None) -> Buffer:
        """Copy an array into the tile, to an address or symbol, or where there is room. Raises UsageError."""
        data = np.ascontiguousarray(array)
        item = self.reserve(name, data.dtype, data.shape, at=at, region=region)
        self.tile.write(item.address, data.tobytes())
        return item

    def reserve(
        self,
        name: str,
        dtype: str | np.dtype[Any],
        shape: int | Sequence[int],
        *,
        at: Value | None = None,
        region: int | None = None,
    ) -> Buffer:
        """Name memory without writing it; `dtype` is a NumPy type or `f16`, `u32`, ... Raises UsageError."""
        if name in self.buffers:
            raise UsageError(f"there is a buffer {name} already")
        kind = dtype_of(dtype) if isinstance(dtype, str) else np.dtype(dtype)
        sizes = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
        if any(size < 0 for size in sizes) or np.prod(sizes, dtype=np.float64) * kind.itemsize > TILE_END:
            raise UsageError(f"{name}: {sizes} elements of {kind} do not fit a tile")
        item = Buffer(name, 0, kind, sizes)
        if at is None:
            address = self.space.find(item.size, region=region)
        else:
            address = self.value(at)
            if not TILE_BASE <= address <= TILE_END - item.size:
                raise UsageError(f"{name}: {item.size} bytes at {address:#x} are outside tile memory")
            self.space.take(address, item.size)
        item = Buffer(name, address, kind, sizes)
        self.buffers[name] = item
        return item

    def array(self, name: str | Buffer) -> NDArray[Any]:
        """Elements of a buffer as they are in the tile now. Raises UsageError."""
        item = name if isinstance(name, Buffer) else self.buffers.get(name)
        if item is None:
            raise UsageError(
                f"there is no buffer {name}", hint=f"there are {', '.join(self.buffers) or 'none'}"
            )
        return item.array(self.tile.read(item.address, item.size))

    def value(self, value: Value) -> int:
        """The number of a register or pointer: a number, a buffer's address, or `name+offset` of a buffer or
        symbol. Raises UsageError.
        """
        if isinstance(value, Buffer):
            return value.address
        if not isinstance(value, str):
            return int(value)
        try:
            return int(value, 0)
        except ValueError:
            pass
        match = _PLACE.match(value.strip())
        if match is None:
            raise UsageError(
                f"{value!r} is neither a number nor a name", hint="write 12, 0x50000, in or in+16"
            )
        name, sign, offset = match.groups()
        base = self.buffers[name].address if name in self.buffers else self.program.address(name)
        try:
            return base + (int(offset, 0) * (-1 if sign == "-" else 1) if offset else 0)
        except ValueError:
            raise UsageError(f"{offset!r} is no number", where=value) from None

    def vertex_state(self, *fields: Value | tuple[str, float | int] | VertexField) -> Buffer:
        """Lay out a vertex state and place it: plain numbers and buffers are 32-bit words, a pair gives the
        type, such as `("u16", 64)`. Fields stand in order at their natural alignment.
        """
        items = [self._field(item) for item in fields]
        data = np.frombuffer(state_bytes(items), dtype=np.uint8)
        name = next(name for name in _names("state") if name not in self.buffers)
        return self.put(name, data, region=0)

    def _field(self, item: Value | tuple[str, float | int] | VertexField) -> VertexField:
        if isinstance(item, VertexField):
            return item
        if isinstance(item, tuple):
            return VertexField(dtype_of(item[0]), item[1])
        return VertexField(dtype_of("u32"), word_of(self.value(item), "a field"))

    # ---- runs

    def call(
        self,
        entry: str | int,
        registers: Mapping[int | str, Value] | None = None,
        *,
        csrs: Mapping[str | int, int] | None = None,
        budget: int | None = None,
        trace: Trace | None = None,
    ) -> RunResult:
        """Call a supervisor function: $m10 the return address, $m11 the stack, the rest from `registers`.

        Args:
            registers: `m2` or 2 to value.
            csrs: supervisor control registers to set before, by name or number.
            budget: instructions before the run is judged endless; default that of the checks.
            trace: called with every step (see `tilewright.ipu21.simulator.trace`).

        Raises:
            SimulationError: it stopped in any other way than by returning.
        """
        tile = self.tile
        tile.m[0, RETURN], tile.m[0, STACK] = 0, self._stack_top
        for name, value in (registers or {}).items():
            file, number = _register(name)
            if file != "m" or number >= STACK:
                raise UsageError(f"register {name} cannot be set for a supervisor function")
            tile.m[0, number] = word_of(self.value(value), f"register {name}")
        return self._run(self.value(entry), csrs, budget, trace)

    def run_vertex(
        self,
        entry: str | int,
        states: Buffer | Sequence[Buffer] = (),
        *,
        workers: int | None = None,
        registers: Mapping[int | str, Value] | None = None,
        csrs: Mapping[str | int, int] | None = None,
        budget: int | None = None,
        trace: Trace | None = None,
    ) -> RunResult:
        """Run worker code on workers 0, 1, ... and wait for all of them.

        Args:
            states: vertex states. One state is shared by all workers, as for a multi-worker vertex; else
                worker w gets state w.
            workers: how many; by default one per state. All six start together (`runall`), fewer are started
                one after the other (`run`).
            registers: set in every worker before, `m0`..`m11` and `a0`..`a7`.
            csrs: as `call`; those of workers, such as `PRNG_SEED` or `TAS`, are set in every one that is
                started. `FP_CTL` is not among them: a launch copies `FP_ICTL` to it.

        Raises:
            SimulationError: as `call`.
        """
        given = [states] if isinstance(states, Buffer) else list(states)
        count = len(given) or 1 if workers is None else workers
        if not 1 <= count <= WORKER_SLOTS:
            raise UsageError(f"{count} workers", hint=f"a tile has {WORKER_SLOTS}")
        if len(given) not in (0, 1, count):
            raise UsageError(f"{len(given)} vertex states for {count} workers", hint="give one, or one each")
        bases = [item.address for item in given] * (count if len(given) == 1 else 1) or [0] * count
        self.tile.write(self._exit, _words([_EXIT]))
        for number in range(count):
            # What a plain function needs: where to return, and a stack. A vertex uses neither.
            self.tile.m[1 + number, RETURN] = self._exit
            self.tile.m[1 + number, STACK] = self.tile.csr(WORKER0_BASE + number)
        for name, value in (registers or {}).items():
            file, number = _register(name)
            bank = self.tile.m[1 : count + 1] if file == "m" else self.tile.a[:count]
            bank[:, number] = word_of(self.value(value), f"register {name}")
        own: dict[str | int, int] = {}
        for name, value in (csrs or {}).items():
            if isinstance(name, str) and _is_workers(name):
                for context in range(1, count + 1):
                    _set_worker_csr(self.tile, context, name, word_of(value, f"control register {name}"))
            else:
                own[name] = value
        self.tile.write(self._stub, _words(_launcher(self.value(entry), bases)))
        self.tile.m[0, RETURN], self.tile.m[0, STACK] = 0, self._stack_top
        return self._run(self._stub, own, budget, trace)

    def _run(
        self, address: int, csrs: Mapping[str | int, int] | None, budget: int | None, trace: Trace | None
    ) -> RunResult:
        tile = self.tile
        if self._stopped:
            raise UsageError(
                "an earlier run on this tile did not end",
                hint="its memory can be read; for another run make a new TileBench",
            )
        for name, value in (csrs or {}).items():
            tile.set_csr(_supervisor_csr(name), word_of(value, f"control register {name}"))
        tile.pc = address
        if not TILE_BASE <= address < TILE_END:
            raise UsageError(f"entry {address:#x} is outside tile memory")
        begin, before = tile.clock, tile.counters
        stop: Stop | None = None
        if trace is None:
            stop = self._engines.run([tile], tile.checks.budget if budget is None else budget)[0]
        else:
            for item in steps(tile, budget=budget):
                if isinstance(item, Stop):
                    stop = item
                else:
                    trace(item)
        assert stop is not None
        if tile.doubts:
            warn_of_rounding_down()
        if stop.kind is not StopKind.ENDED:
            self._stopped = True
            raise self.error(stop)
        issued = tile.counters - before
        return RunResult(
            stop.clock + 6 - begin, int(issued[0]), issued[1:], tile.m.copy(), tile.a.copy(), self
        )

    def error(self, stop: Stop) -> SimulationError:
        """What a stop that is no return means."""
        what, category = stop.text, "program"
        match = _TEXT.match(stop.text)
        if match:
            what = match["what"]
            if match["instruction"]:
                what += f", in `{match['instruction']}`"
        if stop.kind is StopKind.UNSUPPORTED:
            category = "unsupported"
        elif stop.kind is StopKind.BUDGET:
            what = "still running after the instruction budget"
        elif stop.kind is StopKind.SYNC:
            what = f"`sync {stop.zone}` waits for other tiles, and there are none here"
            category = "unsupported"
        elif not what:
            what = f"stopped: {stop.kind.name}"
        symbol = self.program.symbol_at(stop.pc)
        if self._stub <= stop.pc < self._stub + _STUB_BYTES:
            symbol = "launch"
        source = self.program.source_at(stop.pc)
        if source is not None:
            symbol = f"{symbol or '?'}, {source[0]}:{source[1]}"
        return SimulationError(
            what,
            category=category,
            context=context_name(stop.context),
            address=stop.pc,
            symbol=symbol,
            cycle=stop.clock,
        )


def _names(stem: str) -> Any:
    number = 0
    while True:
        yield f"{stem}{number}"
        number += 1


def _register(name: int | str) -> tuple[str, int]:
    """File and number of `2`, `m2`, `$m2` or `a0`. Raises UsageError."""
    if isinstance(name, int):
        file, number = "m", name
    else:
        match = re.fullmatch(r"\$?([ma])(\d{1,2})", name)
        if match is None:
            raise UsageError(f"{name!r} is no register", hint="write m0..m11 or a0..a7")
        file, number = match[1], int(match[2])
    if number >= (12 if file == "m" else 8):
        raise UsageError(f"${file}{number} cannot be set", hint="m0..m11 and a0..a7 hold values")
    return file, number


def _supervisor_csr(name: str | int) -> int:
    """Number of a control register that the supervisor has. Raises UsageError."""
    if isinstance(name, int):
        return name
    found = csr(name)
    if found is None:
        raise UsageError(f"there is no control register {name}")
    if found.context == "worker":
        raise UsageError(f"control register {name} is the workers'", hint="it can be set for a vertex")
    return found.number


def _is_workers(name: str) -> bool:
    """Whether a control register is one that workers have and the supervisor has not."""
    found = csr(name)
    return found is not None and found.context == "worker"


def _set_worker_csr(tile: Tile, context: int, name: str, value: int) -> None:
    """Set a worker's control register as `uput` would. Raises UsageError for $FP_CTL."""
    found = csr(name)
    assert found is not None
    if found.number == FP_CTL:
        raise UsageError(
            f"control register {name} is set by every launch", hint="$FP_ICTL is copied to it: set that"
        )
    if found.number == PRNG_SEED:
        for place in range(4):
            tile.set_csr(PRNG_0_0 + place, seeded(value, place), context)
    tile.set_csr(found.number, value, context)


def _launcher(entry: int, bases: Sequence[int]) -> list[int]:
    """Supervisor code that starts workers at `entry` with these vertex bases and waits for them."""
    words = [setzi(0, entry)]
    stride = (bases[1] - bases[0]) // 4 if len(bases) > 1 else 0
    even = all(base == bases[0] + 4 * stride * index for index, base in enumerate(bases))
    if len(bases) == WORKER_SLOTS and even and 0 <= stride < 1 << 16:
        words += [setzi(1, bases[0]), runall(0, 1, stride)]
    else:
        for base in bases:
            words += [setzi(1, base), encode("run $mEntry0, $mVBase0, zimm16", 0, 1, 0)[0]]
    return [*words, sync(_LOCAL), br(RETURN)]


def _words(words: Sequence[int]) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words)
