"""Runs kernels on one simulated tile whose every other byte and register is random, and checks that those
bytes stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.kernels import KERNELS, link_kernels, object_of
from tilewright.ipu21.kernels.kernel import STACK_BYTES
from tilewright.ipu21.machine.memory import IMAGE_BASE, TILE_BASE, TILE_BYTES
from tilewright.ipu21.simulator.single import Result, finish, prepare
from tilewright.ipu21.toolchain import LinkedImage, assemble, link

STACK_TOP = 0x586E0
DATA = 0x5C000
"""First byte of region 0 that tests use for data."""


@cache
def image_of(symbol: str) -> LinkedImage:
    return link_kernels([symbol], {})


@dataclass
class Outcome:
    """Memory after a run, and its cycles."""

    memory: NDArray[np.uint8]
    cycles: int
    tile: Any

    def array(self, address: int, like: NDArray[Any]) -> NDArray[Any]:
        """The array of this shape and type at an address."""
        begin = address - TILE_BASE
        return self.memory[begin : begin + like.nbytes].view(like.dtype).reshape(like.shape)


def background(seed: int, regions: Sequence[tuple[int, NDArray[Any]]]) -> NDArray[np.uint8]:
    """Tile memory with random bytes everywhere but in the given arrays."""
    memory = np.random.default_rng(seed).integers(0, 256, TILE_BYTES, dtype=np.uint8)
    for address, array in regions:
        begin = address - TILE_BASE
        memory[begin : begin + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memory


def run(
    symbol: str,
    arguments: Mapping[str, int],
    inputs: Sequence[tuple[int, NDArray[Any]]],
    outputs: Sequence[tuple[int, int]],
    *,
    seed: int = 1,
) -> Outcome:
    """Call one kernel and check that nothing but its outputs (address, bytes) and its stack frame changed."""
    image = image_of(symbol)
    registers = KERNELS[symbol].contract.registers(**arguments)
    return call(image, symbol, registers, inputs, outputs, seed=seed)


def call(
    image: LinkedImage,
    symbol: str,
    registers: Mapping[int, int],
    inputs: Sequence[tuple[int, NDArray[Any]]],
    outputs: Sequence[tuple[int, int]],
    *,
    seed: int = 1,
) -> Outcome:
    before = background(seed, inputs)
    code_end = max(segment.address + len(segment.data) for segment in image.segments)
    result = run_among_leftovers(
        image, symbol, registers, {code_end: before[code_end - TILE_BASE :].tobytes()}
    )
    after = np.array(result.tile.memory, dtype=np.uint8)
    allowed = np.zeros(TILE_BYTES, bool)
    allowed[: code_end - TILE_BASE] = True
    for begin, size in [*outputs, (STACK_TOP - STACK_BYTES, STACK_BYTES)]:
        allowed[begin - TILE_BASE : begin - TILE_BASE + size] = True
    stray = np.flatnonzero((after != before) & ~allowed)
    assert stray.size == 0, (
        f"{symbol} wrote {stray.size} bytes outside its outputs, first at {TILE_BASE + stray[0]:#x}"
    )
    return Outcome(after, int(result.cycles), result.tile)


def run_among_leftovers(
    image: LinkedImage, symbol: str, registers: Mapping[int, int], memory: Mapping[int, bytes]
) -> Result:
    """Call a function on a tile whose other registers and accumulators hold what earlier calls have left."""
    random = np.random.default_rng(11)
    tile = prepare(image, symbol, registers, memory)
    others = [number for number in range(10) if number not in registers]
    tile.m[0, others] = random.integers(0, 1 << 32, len(others), dtype=np.uint32)
    tile.m[1:, :12] = random.integers(0, 1 << 32, (6, 12), dtype=np.uint32)
    tile.a[:, :8] = random.integers(0, 1 << 32, (6, 8), dtype=np.uint32)
    tile.accumulators[...] = random.standard_normal((6, 32))
    return finish(tile)


def twice(symbol: str, calls: Sequence[Mapping[str, int]], more: Sequence[str] = ()) -> LinkedImage:
    """An image whose function `driver` makes the calls one after the other; `more` is linked too."""
    lines = [".globl driver", ".type driver, @function", "driver:"]
    lines += ["add $m11, $m11, -8", "st32 $m10, $m11, $mzero, 0"]
    for arguments in calls:
        for register, value in KERNELS[symbol].contract.registers(**arguments).items():
            lines.append(f"setzi $m{register}, {value & 0xFFFFF}")
            if value >> 20:
                lines.append(f"or $m{register}, $m{register}, {value & 0xFFF00000:#x}")
        lines.append(f"call $m10, {symbol}")
    lines += ["ld32 $m10, $m11, $mzero, 0", "add $m11, $m11, 8", "br $m10"]
    driver = assemble('.section .text.driver, "ax"\n' + "\n".join(lines) + "\n", filename="driver.S")
    objects = [object_of(symbol), *map(object_of, more), driver]
    return link(objects, intervals=((IMAGE_BASE, 0x50000),), roots=["driver", *more])


def halves(seed: int, *shape: int, scale: float = 1.0) -> NDArray[np.float16]:
    """Normal random halves."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float16)
