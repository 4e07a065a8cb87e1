"""Multiply-adds of a graph's operations, read from its text, for shares of the matrix units' peak."""

from __future__ import annotations

import re
from math import prod

PEAK = 64
"""Multiply-adds that a tile's matrix unit can do per cycle on float16 operands (known)."""
METADATA = "multiply-adds"
"""Name under which a step's metadata has them: those of all tiles, in one instance."""

_DEFINED = re.compile(r"^\s*(?:input |constant |carried |iterated )?((?:%\S+(?:, )?)+) (?:=|:) ")
_NAME = re.compile(r"%([A-Za-z0-9_.]+)")
_TYPE = re.compile(r"[a-z]+\d+\[([\d, ]*)\]")
_CALL = re.compile(r" = (\w+)\(([^()]*)\)")
_LONGEST = 1 << 16
_LARGEST = 1 << 62


def multiply_adds(graph: str) -> dict[str, int]:
    """Products per operation (named by its result) in one execution of it; only operations that have any."""
    shapes: dict[str, tuple[int, ...]] = {}
    found: dict[str, int] = {}
    for line in graph.splitlines():
        defined = _DEFINED.match(line[:_LONGEST])
        if defined is None:
            continue
        names = _NAME.findall(defined[1])
        call = _CALL.search(line)
        types = [
            tuple(int(extent) for extent in match.split(",") if extent.strip().isdigit())
            for match in _TYPE.findall(line[call.end() :] if call else line)
        ]
        shapes.update(zip(names, types, strict=False))
        if call is not None and types:
            operands = [shapes.get(name, ()) for name in _NAME.findall(call[2])]
            count = _products(call[1], operands, types[0])
            if 0 < count <= _LARGEST:
                found[names[0]] = count
    return found


def _products(operator: str, operands: list[tuple[int, ...]], result: tuple[int, ...]) -> int:
    if operator == "matmul" and len(operands) == 2 and operands[0]:
        return prod(result) * operands[0][-1]
    if operator == "attention" and len(operands) >= 3 and all(len(shape) >= 2 for shape in operands[:3]):
        query, keys, values = operands[:3]
        return prod(query[:-1]) * keys[-2] * (query[-1] + values[-1])
    return 0
