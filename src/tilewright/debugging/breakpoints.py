"""Places at which a debugger stops, named as people name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from tilewright.errors import UsageError
from tilewright.ipu21.isa.decode import InvalidInstruction, decode
from tilewright.ipu21.machine import sync_zones
from tilewright.ipu21.machine.memory import REGION1_BASE, TILE_BASE
from tilewright.package.records import Package, Segment

BreakpointKind = Literal["operator", "phase", "kernel", "address"]
KINDS: tuple[BreakpointKind, ...] = ("operator", "phase", "kernel", "address")
_PLACE = re.compile(r"(?P<symbol>[A-Za-z_.$][\w.$]*)?(?P<offset>[+]?(0x[0-9a-fA-F]+|\d+))?")


@dataclass(frozen=True)
class Breakpoint:
    """One place.

    Attributes:
        kind, name: as given. tile: physical id of the only tile meant, or None.
        steps: profile steps before which all tiles are held (operator, phase).
        calls: profile steps that call a kernel: a tile is held where it begins one. The compiler has executed
            what comes first in a kernel, so nobody may ever come to the kernel's own beginning.
        address: instruction before which a tile is held (address, and kernels no step calls), else 0.
    """

    kind: BreakpointKind
    name: str
    tile: int | None = None
    steps: tuple[int, ...] = ()
    calls: tuple[int, ...] = ()
    address: int = 0

    def addresses(self, marks: Mapping[int, int]) -> list[int]:
        """Where a tile is to be held that begins steps at these addresses."""
        return [self.address] if self.address else [marks[step] for step in self.calls if step in marks]

    def __str__(self) -> str:
        where = f" on tile {self.tile}" if self.tile is not None else ""
        return f"{self.kind} {self.name}{where}"


def breakpoint_at(package: Package, kind: str, name: str, tile: int | None = None) -> Breakpoint:
    """The place that is meant. Raises UsageError for anything that does not exist, naming what is alike."""
    if kind not in KINDS:
        raise UsageError(f"there is no breakpoint {kind!r}", hint=f"there are {', '.join(KINDS)}")
    if tile is not None and not 0 <= tile < len(package.tiles):
        raise UsageError(f"there is no tile {tile}", hint=f"tiles are 0..{len(package.tiles) - 1}")
    if kind == "operator":
        return Breakpoint(kind, name, tile, (_first_step(package, name),))
    if kind == "phase":
        return Breakpoint(kind, name, tile, (step_number(package, name),))
    if kind == "kernel":
        symbols = {symbol.name: symbol.address for symbol in package.symbols}
        if name not in symbols:
            raise UsageError(f"there is no kernel {name!r}", hint=_alike(name, list(symbols)))
        calls = _calls(package, name)
        return Breakpoint(kind, name, tile, calls=calls, address=0 if calls else symbols[name])
    address = place(package, name)
    _check_place(package, address, tile)
    return Breakpoint("address", name, tile, address=address)


def place(package: Package, text: str) -> int:
    """An address from `0x5c010`, `gemm_f16` or `gemm_f16+0x10`. Raises UsageError."""
    match = _PLACE.fullmatch(text.strip())
    if not match or not text.strip():
        raise UsageError(f"{text!r} is no address", hint="0x5c010, or a symbol, or symbol+0x10")
    offset = int(match["offset"].lstrip("+"), 0) if match["offset"] else 0
    if match["symbol"] is None:
        return offset
    symbols = {symbol.name: symbol.address for symbol in package.symbols}
    if match["symbol"] not in symbols:
        raise UsageError(
            f"there is no symbol {match['symbol']!r}", hint=_alike(match["symbol"], list(symbols))
        )
    return symbols[match["symbol"]] + offset


def step_number(package: Package, name: str) -> int:
    """A profile step by name or number. Raises UsageError."""
    names = [step.name for step in package.profile.steps]
    if name.isascii() and name.isdigit() and len(name) < 7 and int(name) < len(names):
        return int(name)
    if name not in names:
        raise UsageError(f"there is no step {name!r}", hint=_alike(name, names))
    return names.index(name)


def operation_of(package: Package, step: int) -> str:
    """The operation that a profile step belongs to, or an empty text."""
    program = package.program
    return program.steps[step].operation if program is not None else ""


def _calls(package: Package, kernel: str) -> tuple[int, ...]:
    """The profile steps that call a kernel."""
    program = package.program
    steps = program.steps if program is not None else []
    return tuple(number for number, step in enumerate(steps) if step.kernel == kernel)


def _first_step(package: Package, name: str) -> int:
    program = package.program
    name = program.doing(name) if program is not None else name
    operations = [operation_of(package, step) for step in range(len(package.profile.steps))]
    if name not in operations or not name:
        known = list(dict.fromkeys(filter(None, operations)))
        raise UsageError(f"no step belongs to operator {name!r}", hint=_alike(name, known))
    return operations.index(name)


def _alike(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, 5, 0.4) or known[:5]
    return f"there are {', '.join(close)}{', ...' if len(known) > len(close) else ''}" if known else "none"


def _check_place(package: Package, address: int, tile: int | None) -> None:
    """No breakpoint in an exchange row or right before one: what comes there is timed to the cycle."""
    if address % 4 or not TILE_BASE <= address < REGION1_BASE:
        raise UsageError(f"{address:#x} is no address of an instruction")
    for region in package.regions:
        inside = region.address <= address < region.address + region.size
        if inside and region.name.endswith(".row") and tile in (None, region.physical_tile):
            raise UsageError(
                f"{address:#x} lies in an exchange row ({region.name} of tile {region.physical_tile}), "
                "which runs by the cycle",
                hint="break at the phase instead",
            )
    for image in package.images:
        for part in image.segments:
            inside = part.address <= address - 4 and address < part.address + part.file_size
            if inside and _syncs(package, part, address - 4):
                raise UsageError(
                    f"{address:#x} follows a `sync {sync_zones.INTERNAL}`, after which every cycle counts",
                    hint="break at the phase instead",
                )


def _syncs(package: Package, part: Segment, address: int) -> bool:
    data = package.segment_bytes(part)[address - part.address :][:4]
    try:
        instruction = decode(int.from_bytes(data, "little"))
    except InvalidInstruction:
        return False
    return instruction.form.mnemonic == "sync" and instruction.operands[0] == sync_zones.INTERNAL
