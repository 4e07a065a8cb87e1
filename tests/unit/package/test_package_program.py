"""Debug information about the program: kept whole, and refused when anything in it is out of bounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from package_sample import make_package

from tilewright.errors import PackageError
from tilewright.package import package_digest, read_package, validate, write_package
from tilewright.package.digest import debug_digest
from tilewright.package.program_info import BufferInfo, LoopInfo, OperationInfo, ProgramInfo

pytestmark = pytest.mark.unit


def program_of(package: object) -> ProgramInfo:
    program = package.debug.program  # type: ignore[attr-defined]
    assert program is not None
    return program


def test_a_package_without_it_has_the_digests_it_had_before_there_was_any() -> None:
    package = make_package()
    assert package.debug is not None
    with_program = package_digest(package), debug_digest(package)
    package.debug.program = None
    assert package_digest(package) == with_program[0]
    assert debug_digest(package) != with_program[1]
    read = read_package(write_package(package))
    assert read.debug is not None and read.debug.program is None


CHANGES: list[Callable[[ProgramInfo], None]] = [
    lambda p: setattr(p.buffers[0], "name", "z"),
    lambda p: setattr(p.buffers[0], "role", "weight"),
    lambda p: p.classes[0].tiles.__setitem__(0, 1),
    lambda p: p.classes[0].buffers["address"].__setitem__(0, 0x70008),
    lambda p: setattr(p.steps[1], "cycles", 124.0),
    lambda p: setattr(p.steps[1], "operation", "nn"),
    lambda p: setattr(p.operations[0], "splits", 3),
    lambda p: p.operations[0].plan.pop(),
    lambda p: setattr(p.values[0], "step", 2),
    lambda p: setattr(p.values[0], "copy", True),
    lambda p: setattr(p.constants[0], "shape", (16, 20)),
    lambda p: setattr(p.loops[0], "count", 4),
    lambda p: setattr(p.areas[0], "size", 8),
]


def test_every_part_is_under_the_debug_digest_and_none_under_the_packages() -> None:
    seen = {debug_digest(make_package())}
    for change in CHANGES:
        package = make_package()
        change(program_of(package))
        seen.add(debug_digest(package))
        assert package_digest(package) == package_digest(make_package())
    assert len(seen) == len(CHANGES) + 1


FAULTS: list[tuple[Callable[[ProgramInfo], object], str]] = [
    (lambda p: setattr(p.buffers[1], "role", "x" * 99), "unknown role 'xxxxxxxxxxxxxxxx'"),
    (lambda p: setattr(p.buffers[1], "name", ""), "buffer 1: name is empty"),
    (lambda p: setattr(p.buffers[1], "owner", "a\u202eb"), "cannot be printed"),
    (lambda p: setattr(p.buffers[1], "layout", "a\nb"), "cannot be printed"),
    (lambda p: setattr(p.buffers[1], "name", "n" * 5000), "longer than 4096"),
    (lambda p: setattr(p.classes[0], "tiles", np.array([0, 1472], "<u2")), "tiles are none, not of"),
    (lambda p: setattr(p.classes[0], "tiles", np.array([7, 7], "<u2")), "a tile twice"),
    (lambda p: setattr(p.classes[0], "tiles", np.array([], "<u2")), "tiles are none"),
    (lambda p: p.classes.append(dataclasses.replace(p.classes[0])), "in two classes"),
    (lambda p: p.classes[0].buffers["buffer"].__setitem__(0, 2), "does not exist"),
    (lambda p: p.classes[0].buffers["size"].__setitem__(0, 2**32 - 1), "leaves tile memory"),
    (lambda p: p.classes[0].buffers["last"].__setitem__(0, 3), "lives in steps that do not exist"),
    (lambda p: p.classes[0].buffers["first"].__setitem__(0, 2), "lives in steps that do not exist"),
    (lambda p: p.steps.pop(), "2 entries for 3 profile steps"),
    (lambda p: setattr(p.steps[0], "cycles", float("nan")), "nan predicted cycles"),
    (lambda p: setattr(p.steps[0], "cycles", -1.0), "predicted cycles"),
    (lambda p: setattr(p.operations[0], "splits", 2000), "splits 2000 is outside"),
    (lambda p: p.operations.append(OperationInfo("a", [""] * 5000)), "5000 lines"),
    (lambda p: setattr(p.values[0], "step", 3), "step 3 is outside"),
    (lambda p: setattr(p.values[0], "buffer", 2), "buffer 2 is outside"),
    (lambda p: p.values[0].binding.slices["address"].__setitem__(0, 0), "leaves the tile memory"),
    (lambda p: setattr(p.values[0].binding, "order", "zigzag"), "unknown element order"),
    (lambda p: setattr(p.values[0].binding, "blob", 0), "only weights have a blob"),
    (lambda p: setattr(p.constants[0], "shape", (-1,)), "extent -1 is outside"),
    (lambda p: setattr(p.loops[0], "last", 3), "steps 0..3 of 3"),
    (lambda p: setattr(p.loops[0], "count", 0), "0 times"),
    (lambda p: setattr(p.loops[0], "count", 2**32 - 1), "in one run"),
    (lambda p: p.loops.append(LoopInfo(0, 0, 2)), "overlap, or are not in order"),
    (lambda p: p.loops.append(LoopInfo(1, 2, 2)), "overlap, or are not in order"),
    (lambda p: p.loops.extend([LoopInfo(2, 2, 1)] * 2000), "2002 loops"),
    (lambda p: setattr(p.areas[0], "size", 0), "is empty or leaves"),
    (lambda p: p.buffers.insert(0, BufferInfo("x", "odd")), "unknown role 'odd'"),
]


@pytest.mark.parametrize(("change", "message"), FAULTS, ids=[text for _, text in FAULTS])
def test_faults_are_named(change: Callable[[ProgramInfo], object], message: str) -> None:
    package = make_package()
    validate(package)
    change(program_of(package))
    with pytest.raises(PackageError, match=message):
        validate(package)
