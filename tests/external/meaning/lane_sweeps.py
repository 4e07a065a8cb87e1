"""One instruction over many operands on a simulated tile: what the compiled engine computes, as an array."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.isa import csrs
from tilewright.ipu21.simulator.single import run_function
from tilewright.ipu21.toolchain import LinkedImage, assemble, link

Words = NDArray[np.uint32]

INPUT, OUTPUT = 0x80000, 0xB0000
ROOM = OUTPUT - INPUT

_REGISTERS = {0: "", 1: "$a{0}", 2: "$a{0}:{1}", 4: "$a{0}:{3}"}
_LOADS = {1: "ld32step $a{0}, $m15, $m1+=, 1", 2: "ld64step $a{0}:{1}, $m15, $m1+=, 1"}
_STORES = {1: "st32step $a6, $m15, $m2+=, 1", 2: "st64step $a6:7, $m15, $m2+=, 1"}

_PROGRAM = """
.globl f
.type f, @function
f:  setzi $m0, worker
    run $m0, $m3, 0
    sync 2
    br $m10
.align 8
worker:
    ld32 $m0, $m13, $m15, 0
    setzi $m1, {input}
    setzi $m2, {output}
    {before}
loop:
    {loads}
    {instruction}
    {store}
    brnzdec $m0, loop
    exitz $m15
"""


def register(count: int, first: int) -> str:
    """The name of `count` A registers from `first` on."""
    return _REGISTERS[count].format(*range(first, first + 4))


@lru_cache(maxsize=256)
def _image(instruction: str, x: int, y: int, results: int, before: str) -> LinkedImage:
    wide = ["ld64step $a0:1, $m15, $m1+=, 1", "ld64step $a2:3, $m15, $m1+=, 1"]
    loads = wide if x == 4 else [_LOADS[x].format(0, 1)] if x else []
    loads += [_LOADS[y].format(4, 5)] if y else []
    text = instruction.format(d=register(results, 6), x=register(x, 0), y=register(y, 4))
    source = _PROGRAM.format(
        input=INPUT,
        output=OUTPUT,
        before=before,
        loads="\n    ".join(loads),
        instruction=text,
        store=_STORES[results],
    )
    return link([assemble(source)], roots=["f"])


def sweep(
    instruction: str,
    x: Words,
    y: Words | None = None,
    *,
    results: int = 1,
    control: int = 0,
    upper: Mapping[int, int] | None = None,
) -> Words:
    """Results [n, results] of an instruction for operands x [n, kx] and y [n, ky].

    `{d}`, `{x}` and `{y}` in the instruction are the destination and the operands. `control` is $FP_CTL;
    `upper` gives upper control registers values before the first instruction.
    """
    count, kx = x.shape
    ky = 0 if y is None else y.shape[1]
    settings = (upper or {}).items()
    before = "\n    ".join(
        f"ld32 $a0, $m13, $m15, {4 + i}\n    uput {n & 255}, $a0" for i, (n, _) in enumerate(settings)
    )
    image = _image(instruction, kx, ky, results, before)
    operands = x if y is None else np.concatenate([x, y], axis=1)
    per_run = ROOM // (4 * max(kx + ky, results)) & ~7
    parts = []
    for first in range(0, count, per_run):
        part = np.ascontiguousarray(operands[first : first + per_run])
        if kx == 1 and ky == 2:
            raise ValueError("operands would not be aligned")
        state = [len(part) - 1, 0, 0, 0, *(value for _, value in settings)]
        result = run_function(
            image,
            "f",
            {3: 0x5C000},
            {INPUT: part, 0x5C000: np.array(state, np.uint32)},
            csrs={csrs.FP_ICTL: control},
        )
        parts.append(result.read(OUTPUT, (len(part), results), np.uint32))
    return np.concatenate(parts)


def words_of_halves(halves: NDArray[np.uint16], lanes: int) -> Words:
    """Halves as records of `lanes` lanes."""
    return halves.view(np.uint32).reshape(-1, lanes // 2)


def halves_of(words: Words) -> NDArray[np.uint16]:
    return np.ascontiguousarray(words).view(np.uint16).reshape(-1)


ALL_HALVES = np.arange(65536, dtype=np.uint32).astype(np.uint16)
IS_NAN = (ALL_HALVES & 0x7FFF) > 0x7C00
ALL_VALUES = ALL_HALVES.view(np.float16)


def interesting_singles(seed: int, count: int) -> NDArray[np.float32]:
    """Singles of all magnitudes, near-integers and ties of the half grid; no NaN."""
    rng = np.random.default_rng(seed)
    quarter = count // 4
    bits = rng.integers(0, 2**32, quarter, dtype=np.uint64).astype(np.uint32).view(np.float32)
    moderate = (rng.normal(0, 1, quarter) * 2.0 ** rng.integers(-30, 18, quarter)).astype(np.float32)
    halves = rng.integers(0, 0x7BFF, quarter).astype(np.uint16)
    low, high = halves.view(np.float16).astype(np.float32), (halves + 1).view(np.float16).astype(np.float32)
    between = low + (high - low) * rng.choice(np.array([0.25, 0.5, 0.75], np.float32), quarter)
    edges = np.array(
        [
            0,
            -0.0,
            np.inf,
            -np.inf,
            65504,
            65519.996,
            65520,
            65536,
            2**-24,
            2**-25,
            2**-26,
            1e38,
            3.4028235e38,
        ],
        np.float32,
    )
    near = np.rint(moderate * 8) / np.float32(8)
    bits[np.isnan(bits)] = 1
    values = np.concatenate([bits, moderate, between, -between, near, edges, -edges])
    return values[: len(values) & ~3].astype(np.float32)
