"""What a package says about its profile steps: operation, kernel, and what a person wants to read."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from tilewright.ipu21.isa.decode import InvalidInstruction, decode
from tilewright.package.program_info import StepInfo
from tilewright.package.records import NO_MARKS, Image, Package

from .products import METADATA, multiply_adds
from .records import Step

_OPERATION = re.compile(r"^\s*%(\S+) = (.*?)\s*$")
_RETURN = 10
"""Register that kernels return through: a `call` with it calls a kernel, others call the runtime."""
_LONGEST = 1 << 14
"""Bytes of one step that are looked at; its own code is little more than a few calls."""


def describe_steps(package: Package) -> list[Step]:
    """One Step per profile step of the package."""
    operations = _operations(package)
    kernels = _kernels(package)
    live = package.debug.live if package.debug is not None else []
    known = package.program
    products = _products(package)
    steps = []
    for number, step in enumerate(package.profile.steps):
        info = known.steps[number] if known is not None else StepInfo()
        operation = info.operation
        if not operation and step.kind != "host":
            operation = _owner(step.name, operations)
        metadata = []
        if operation in operations:
            metadata.append(("expression", operations[operation]))
        if info.cycles:
            metadata.append(("predicted", f"{info.cycles:,.0f}"))
        if info.detail:
            metadata.append(("detail", info.detail))
        if products[number]:
            metadata.append((METADATA, f"{products[number]:,}"))
        if number < len(live) and live[number]:
            metadata.append(("live", ", ".join(live[number])))
        kernel = "+".join(kernels[number]) if step.kind in ("compute", "copy") else step.kind
        kernel = kernel or info.kernel or step.kind
        steps.append(Step(step.name, step.kind, operation, kernel, tuple(_bounded(metadata))))
    return steps


def _products(package: Package) -> list[int]:
    """Multiply-adds of each step: an operation's are dealt out over its steps that multiply."""
    result = [0] * len(package.profile.steps)
    if package.debug is None or package.debug.program is None:
        return result
    program = package.debug.program
    steps = program.steps
    for operation, count in multiply_adds(package.debug.graph).items():
        doing = program.doing(operation)
        own = [
            number
            for number, step in enumerate(steps)
            if step.operation == doing and package.profile.steps[number].kind == "compute"
        ]
        chosen = [number for number in own if "gemm" in steps[number].kernel] or own[:1]
        for place, number in enumerate(chosen):
            result[number] += count * (place + 1) // len(chosen) - count * place // len(chosen)
    return result


def _bounded(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value if len(value) <= 500 else f"{value[:497]}...") for name, value in pairs]


def _operations(package: Package) -> dict[str, str]:
    """Lines of the graph's text by the name of what they compute."""
    if package.debug is None:
        return {}
    found = {}
    for line in package.debug.graph.splitlines():
        match = _OPERATION.match(line)
        if match:
            found[match[1]] = " ".join(match[2].split())
    return found


def _owner(step: str, operations: Mapping[str, str]) -> str:
    """The operation whose name, followed by a dot, a step's name begins with; the longest, if several do."""
    parts = step.split(".")
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        if name in operations:
            return name
    return parts[0]


def _kernels(package: Package) -> list[list[str]]:
    """Symbols that each step's code calls, read from the code between its mark and the next one."""
    names = {symbol.address: symbol.name for symbol in package.symbols}
    found: list[list[str]] = [[] for _ in package.profile.steps]
    missing = {
        number for number, step in enumerate(package.profile.steps) if step.kind in ("compute", "copy")
    }
    for image in package.images:
        if not missing:
            break
        if image.mark_table == NO_MARKS:
            continue
        marks = np.sort(package.profile.mark_tables[image.mark_table], order="address")
        for index, (address, step) in enumerate(marks.tolist()):
            if step not in missing:
                continue
            end = int(marks["address"][index + 1]) if index + 1 < len(marks) else address + _LONGEST
            called = _called(package, image, address, end, names)
            if called:
                found[step] = called
                missing.discard(step)
    return found


def _called(package: Package, image: Image, begin: int, end: int, names: Mapping[int, str]) -> list[str]:
    """Symbols called between two addresses of an image, each once, in order."""
    data = _code(package, image, begin, min(end, begin + _LONGEST))
    found: dict[str, None] = {}
    for word in np.frombuffer(data[: len(data) // 4 * 4], "<u4").tolist():
        try:
            instruction = decode(word)
        except InvalidInstruction:
            continue
        if instruction.form.mnemonic == "call" and instruction.operands[0] == _RETURN:
            name = names.get(instruction.operands[1])
            if name is not None:
                found[name] = None
    return list(found)


def _code(package: Package, image: Image, begin: int, end: int) -> bytes:
    for segment in image.segments:
        stop = segment.address + segment.file_size
        if segment.address <= begin < stop:
            data = package.segment_bytes(segment)
            return data[begin - segment.address : min(end, stop) - segment.address]
    return b""
