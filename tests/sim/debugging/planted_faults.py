"""The digits network on a few tiles, whole or with one fault planted in the package's own bytes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tilewright.compiler.pipeline import compile_graph
from tilewright.debugging import Debugger
from tilewright.graph import Graph
from tilewright.ipu21.isa.decode import Instruction, InvalidInstruction, decode
from tilewright.ipu21.isa.encode import encode
from tilewright.models import digits, digits_reference
from tilewright.package import Package
from tilewright.package.program_info import ProgramInfo
from tilewright.package.records import EXECUTE, Segment

IMAGES, TILES = 48, 16


@cache
def parameters() -> digits_reference.Parameters:
    generator = np.random.default_rng(5)
    shapes = list(pairwise(digits_reference.LAYERS))
    weights = [generator.normal(0, 0.1, shape).astype(np.float32) for shape in shapes]
    biases = [generator.normal(0, 0.1, columns).astype(np.float32) for _, columns in shapes]
    return digits_reference.Parameters(weights, biases)


@cache
def graph() -> Graph:
    return digits.network(parameters(), batch=IMAGES).graph()


@cache
def package() -> Package:
    return compile_graph(graph(), tiles=TILES)


def images() -> NDArray[np.float32]:
    return np.random.default_rng(6).random((IMAGES, 64), np.float32)


def code_words(
    found: Package, begin: int, end: int, image: int | None = None
) -> Iterator[tuple[Segment, int]]:
    """Segments and addresses of executable words between two addresses."""
    for number, item in enumerate(found.images):
        if image is not None and number != image:
            continue
        for segment in item.segments:
            if segment.flags & EXECUTE:
                low, high = max(begin, segment.address), min(end, segment.address + segment.file_size)
                for address in range(low, high, 4):
                    yield segment, address


def word(found: Package, segment: Segment, address: int) -> int:
    return int.from_bytes(found.segment_bytes(segment)[address - segment.address :][:4], "little")


def with_words(found: Package, segment: Segment, changes: dict[int, int]) -> Package:
    """The package with other words at some addresses of a segment, wherever its bytes are used."""
    result = copy.copy(found)
    data = bytearray(found.blobs[segment.blob])
    for address, value in changes.items():
        at = segment.blob_offset + address - segment.address
        data[at : at + 4] = value.to_bytes(4, "little")
    result.blobs = [*found.blobs]
    result.blobs[segment.blob] = bytes(data)
    return result


SIBLINGS = {
    "f16v4add": "f16v4sub",
    "f16v4sub": "f16v4add",
    "f32v2add": "f32v2sub",
    "f16v4mul": "f16v4add",
    "f32v2mul": "f32v2add",
}
"""Arithmetic instructions and others that take the same operands."""


def known_program() -> ProgramInfo:
    debug = package().debug
    assert debug is not None and debug.program is not None
    return debug.program


def step_of(operation: str, kernel: str) -> int:
    """The profile step in which an operation runs a kernel whose name begins so."""
    steps = known_program().steps
    return next(n for n, s in enumerate(steps) if s.operation == operation and s.kernel.startswith(kernel))


@cache
def executed(symbol: str) -> list[int]:
    """Addresses of the instructions of a kernel that one call on one tile issues, in order."""
    with Debugger(package(), {"x": images()}) as debugger:
        debugger.break_at("kernel", symbol)
        stopped = debugger.resume()
        assert stopped is not None
        return list(dict.fromkeys(step.address for step in debugger.step(count=3000)))


def wrong_kernel(symbol: str) -> Package:
    """The first arithmetic instruction that a kernel really executes replaced by a sibling."""
    found = package()
    for address in executed(symbol):
        for segment, place in code_words(found, address, address + 8, found.tiles[0].image):
            try:
                instruction = decode(word(found, segment, place))
            except InvalidInstruction:
                continue
            sibling = SIBLINGS.get(instruction.form.mnemonic)
            if sibling is not None:
                text = instruction.form.text.replace(instruction.form.mnemonic, sibling)
                (planted,) = encode(text, *instruction.operands, coissue=instruction.coissue)
                return with_words(found, segment, {place: planted})
    raise AssertionError(f"no arithmetic in {symbol}")


def swapped_in_row(
    step: str, alike: Callable[[Instruction], object], which: Callable[[Instruction], int]
) -> Package:
    """The first two instructions of some tile's row for a step that `alike` calls the same exchanged.

    `alike` gives None for instructions of no interest; `which` what the two must differ in.
    """
    found = package()
    for region in found.regions:
        if region.name != f"{step}.row":
            continue
        image = found.tiles[region.physical_tile].image
        seen: dict[object, tuple[int, Instruction]] = {}
        skip = False
        for segment, address in code_words(found, region.address, region.address + region.size, image):
            if skip:
                skip = False
                continue
            instruction = decode(word(found, segment, address))
            skip = instruction.form.words == 2
            key = alike(instruction)
            if key is None:
                continue
            if key in seen and which(seen[key][1]) != which(instruction):
                first = seen[key][0]
                one, other = (word(found, segment, place) for place in (first, address))
                return with_words(found, segment, {first: other, address: one})
            seen.setdefault(key, (address, instruction))
    raise AssertionError(f"nothing to swap in {step}")
