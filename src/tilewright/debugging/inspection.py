"""What can be seen of a stopped run: registers, code, memory, values of the graph, who wrote a word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tilewright.errors import UsageError
from tilewright.graph import Graph
from tilewright.ipu21.simulator.classes import State, TileClass
from tilewright.ipu21.simulator.device import SimulatedDevice
from tilewright.ipu21.simulator.stops import context_name
from tilewright.ipu21.simulator.symbols import Symbols
from tilewright.ipu21.simulator.tile import OUTSIDE, Tile
from tilewright.ipu21.simulator.trace import fetch, instructions_text
from tilewright.package.program_info import ValueInfo
from tilewright.package.records import Package

from .cuts import tile_positions
from .kernel_source import kernel_line
from .operator_check import memory_of
from .pausing import Hit, PausingTiles
from .reference import OperatorReference, follow, package_graph, rounded
from .shards import Difference, compare, gather
from .step_order import StepOrder

_INSTRUCTION_BYTES = 8
"""Bytes of an instruction or bundle at most."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of the graph as it lies on the tiles.

    Attributes:
        array: gathered from all tiles, in the value's shape.
        state: empty if it is whole and nothing has overwritten it, else what is the matter.
        expected: what the graph gives in float32 for the same inputs, or None if that is not known.
        difference: the first element outside its operator's tolerance of that, or None.
        largest: the largest absolute difference, NaN if nothing is expected.
    """

    name: str
    array: NDArray[np.float64]
    state: str
    expected: NDArray[np.float32] | None
    difference: Difference | None
    largest: float


@dataclass(frozen=True)
class Writer:
    """Who wrote a word last.

    Attributes:
        who: a context, `from outside` (fabric, host or loader) or `not known`. address, symbol: of the
            instruction, if one did. buffer: name of the buffer that lies there now, or empty. step: the
            step that brings it, if it came from outside.
    """

    who: str
    address: int
    symbol: str
    buffer: str
    step: str


class Inspection:
    """The looking half of a debugger. Everything raises UsageError while the run is not stopped."""

    def __init__(
        self,
        package: Package,
        inputs: Mapping[str, ArrayLike],
        device: SimulatedDevice,
        engines: PausingTiles,
        graph: Graph | None,
    ) -> None:
        self.package = package
        self.inputs = inputs
        self._device = device
        self._engines = engines
        self._order = StepOrder(package)
        self._symbols = Symbols(package)
        self._graph = graph
        self._hits: list[Hit] = []

    def members(self, tile: Tile) -> list[int]:
        """Physical tiles that a simulated tile stands for."""
        group = next((group for group in self._device.chip.classes if group.tile is tile), None)
        return group.members.tolist() if group is not None else [tile.physical]

    def _stopped_now(self) -> None:
        if not self._hits:
            raise UsageError("the run is not stopped anywhere", hint="resume it first, to a breakpoint")

    def held(self, tile: int | None = None) -> Tile:
        """The held tile with a physical id, or the one that stopped. Raises UsageError."""
        self._stopped_now()
        if tile is None:
            return self._hits[0].tile
        for hit in self._hits:
            if tile in self.members(hit.tile):
                return hit.tile
        held = ", ".join(str(hit.tile.physical) for hit in self._hits[:6])
        raise UsageError(f"tile {tile} is not held", hint=f"held are {held}")

    def tile(self, physical: int | None = None) -> Tile:
        """The simulated tile with a physical id, or the one that stopped: registers, memory, clock."""
        self._stopped_now()
        if physical is None:
            return self._hits[0].tile
        for group in self._device.chip.classes:
            if physical in group.members and isinstance(group.tile, Tile):
                return group.tile
        raise UsageError(f"there is no tile {physical}")

    def state(self, physical: int) -> str:
        """What a tile does, in words."""
        self.tile(physical)
        group = next(group for group in self._device.chip.classes if physical in group.members)
        hit = next((hit for hit in self._hits if hit.tile is group.tile), None)
        if hit is not None:
            symbol = self.symbol(physical, hit.address)
            return f"is held in {context_name(hit.context)} at {hit.address:#x} <{symbol}>"
        return self._doing(group)

    @staticmethod
    def _doing(group: TileClass) -> str:
        return "runs" if group.state is State.RUNNABLE else group.doing()

    def symbol(self, tile: int, address: int) -> str:
        """Name of an address on a tile."""
        return self._symbols.name(tile, address) or "?"

    def registers(self, tile: int | None = None, context: int = 0) -> dict[str, int]:
        """M registers of a context (0 supervisor, 1..6 workers), and a worker's A registers."""
        found = self.tile(tile)
        if not 0 <= context <= 6:
            raise UsageError(f"there is no context {context}", hint="0 is the supervisor, 1..6 the workers")
        result = {f"$m{number}": int(found.m[context, number]) for number in range(12)}
        if context:
            result |= {f"$a{number}": int(found.a[context - 1, number]) for number in range(8)}
        return result

    def disassemble(self, tile: int | None = None, address: int | None = None, count: int = 8) -> list[str]:
        """Instructions from an address on (by default where the tile is), one line each; `>` marks that.

        Behind instructions of our own kernels their source line, with the label it stands at.
        """
        found = self.tile(tile)
        hit = next((hit for hit in self._hits if hit.tile is found), None)
        context = hit.context if hit is not None else 0
        here = found.pc if context == 0 else found.worker_pc(context - 1)
        at = here if address is None else address
        lines = []
        for _ in range(count):
            instructions = fetch(found, at)
            text = instructions_text(instructions, "worker" if context else "supervisor")
            mark = ">" if at == here else " "
            line = f"{mark} {at:#x} <{self.symbol(found.physical, at)}>  {text}"
            source = self._source(found, at)
            lines.append(f"{line:<72}  {source}".rstrip())
            at += 4 * max(sum(item.form.words for item in instructions), 1)
        return lines

    def _source(self, tile: Tile, address: int) -> str:
        """The source line of an instruction, if it is one of our kernels'."""
        found = self.package.lines.find(address)
        line = kernel_line(*found, tile.read(address, _INSTRUCTION_BYTES)) if found is not None else None
        if found is None or line is None:
            return ""
        return f"; {found[0]}:{line.number} {line.label + ': ' if line.label else ''}{line.text}"

    def memory(self, address: int, size: int, tile: int | None = None) -> bytes:
        """Bytes of a tile's memory. Raises UsageError outside of it."""
        return self.tile(tile).read(address, size)

    # Tensors ----------------------------------------------------------------------------------------------

    def values(self) -> list[str]:
        """Names of the values that the package can place, in order of the program."""
        program = self.package.program
        return list(dict.fromkeys(v.binding.name for v in program.values)) if program is not None else []

    def tensor(self, name: str) -> Tensor:
        """A value gathered from all tiles, compared with the graph in float32 for the same inputs.

        Raises UsageError for a value that the package cannot place.
        """
        self._stopped_now()
        value = self._value(name)
        memory = memory_of(self._device)
        array = gather(memory, value.binding)
        state, iteration = self._state_of(value)
        expected = self._expected(name, iteration)
        if expected is None:
            return Tensor(name, array, state, None, None, float("nan"))
        wanted, bound = expected
        found = compare(memory, value.binding, wanted, bound)
        with np.errstate(invalid="ignore"):
            largest = float(np.nanmax(np.abs(array - wanted))) if array.size else 0.0
        return Tensor(name, array, state, wanted, found.difference, largest)

    def _value(self, name: str) -> ValueInfo:
        program = self.package.program
        found = [v for v in program.values if v.binding.name == name] if program is not None else []
        if not found:
            known = ", ".join(self.values()[:8]) or "none"
            raise UsageError(f"the package does not say where {name!r} lies", hint=f"it knows {known}")
        return next((value for value in found if not value.copy), found[0])

    def _progress(self) -> tuple[int, int]:
        """Positions of the latest step that every tile has finished, and of the latest that any has begun."""
        at = tile_positions(self._device, self._order, self._engines.held)
        begun = tile_positions(self._device, self._order, {})
        tiles = np.concatenate([group.members for group in self._device.chip.classes if group.watched])
        return int(at[tiles].min()) - 1, int(begun[tiles].max())

    def _state_of(self, value: ValueInfo) -> tuple[str, int]:
        """What is the matter with a value now, and the loop iteration that made it."""
        done, begun = self._progress()
        places = [place for place in self._order.places.get(value.step, []) if place <= done]
        name = self.package.profile.steps[value.step].name
        if not places:
            return f"is not whole before step {name} is over", 0
        program = self.package.program
        assert program is not None
        loops = [loop for loop in program.loops if loop.first <= value.step <= loop.last]
        iteration = (len(places) - 1) % loops[-1].count if loops else 0
        arrow = f"-> {program.buffers[value.buffer].name} on"
        for position in range(places[-1] + 1, begun + 1):
            step = self._order.sequence[position]
            if arrow in program.steps[step].detail and step != value.step:
                part = "was" if position <= done else "may be in part"
                return f"{part} overwritten by step {self.package.profile.steps[step].name}", iteration
        rows = np.concatenate([group.buffers for group in program.classes])
        lives = rows[rows["buffer"] == value.buffer]
        now = self._order.sequence[begun]
        if len(lives) and not int(lives["first"].min()) <= now <= int(lives["last"].max()):
            last = self.package.profile.steps[int(lives["last"].max())].name
            return f"was needed until step {last}; its memory may hold something else", iteration
        return "", iteration

    def _expected(
        self, name: str, iteration: int
    ) -> tuple[NDArray[np.float32], float | NDArray[np.float64]] | None:
        graph, unknown = (self._graph, set[str]()) if self._graph is not None else package_graph(self.package)
        program = self.package.program
        reference = OperatorReference(graph, program.splits() if program is not None else {}, unknown)
        reference.begin()
        for key, array in self.inputs.items():
            given = np.asarray(array, np.float32)
            bound = rounded(given, "float16")
            reference.note(key, given, bound)
            if key == name:
                return given, bound
        found = follow(reference, name, iteration)
        return None if found is None else (found.array, found.bound)

    def writer(self, address: int, tile: int | None = None) -> Writer:
        """Who wrote the word at an address last. Stores of a supervisor alone on its tile are not tracked."""
        found = self.tile(tile)
        last = found.last_store(address)
        buffer, step = self._owner(found.physical, address)
        if last is None:
            return Writer("not known", 0, "", buffer, "")
        context, at = last
        if context == OUTSIDE:
            return Writer("from outside", 0, "", buffer, step)
        return Writer(context_name(context), at, self.symbol(found.physical, at), buffer, "")

    def _owner(self, tile: int, address: int) -> tuple[str, str]:
        """The buffer at an address now, and the step that brings it from elsewhere."""
        program = self.package.program
        if program is None:
            return "", ""
        position = int(tile_positions(self._device, self._order, self._engines.held)[tile])
        step = self._order.sequence[position]
        group = next((group for group in program.classes if tile in group.tiles), None)
        for row in group.buffers if group is not None else ():
            end = int(row["address"]) + int(row["size"]) + int(row["tail"])
            if int(row["address"]) <= address < end and int(row["first"]) <= step <= int(row["last"]):
                number = int(row["buffer"])
                brings = [v.step for v in program.values if v.buffer == number and v.copy]
                kind = {"weight": 0, "input": int(row["first"])}.get(program.buffers[number].role)
                source = brings[0] if brings else kind
                name = self.package.profile.steps[source].name if source is not None else ""
                return program.buffers[number].name, name
        return "", ""
