"""Calls of the root kernels, half or single precision, and what they must give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from guarded_runs import guarded
from kernel_runs import DATA, call, image_of, twice
from numpy.typing import NDArray

from tilewright.ipu21.kernels import KERNELS, link_kernels
from tilewright.ipu21.kernels.root import straight_of
from tilewright.ipu21.kernels.root_frame import Member
from tilewright.ipu21.kernels.root_source import is_wide
from tilewright.ipu21.machine.memory import REGION1_BASE
from tilewright.ipu21.toolchain import LinkedImage

WIDE = {
    "own": REGION1_BASE,
    "remote": REGION1_BASE + 0x20000,
    "bias": DATA,
    "residual": DATA + 0x1000,
    "out": REGION1_BASE + 0x10000,
}
PLAIN = {
    "own": DATA,
    "remote": DATA + 0x4008,
    "bias": REGION1_BASE + 0x4008,
    "residual": REGION1_BASE + 8,
    "out": DATA + 0x1F008,
}
WIDE_RESIDUAL = WIDE | {"residual": REGION1_BASE + 0x30000}
SHAPES = [(rows, panels) for rows in (1, 2, 3, 5, 6, 7, 9, 20) for panels in (1, 2, 3, 4, 7)]


class Case:
    """Operands of one call and what it must give; `straight`: code for its remote partials is linked."""

    def __init__(
        self,
        member: Member,
        rows: int,
        panels: int,
        count: int,
        places: dict[str, int],
        spare: int = 3,
        *,
        straight: bool = False,
    ) -> None:
        self.member, self.places = member, places
        self.straight = straight_of(member.symbol, count, rows, panels) if straight else []
        self.dtype = np.float16 if member.row_bytes == 32 else np.float32
        random = np.random.default_rng(100 * rows + panels)

        def values(*shape: int) -> NDArray[Any]:
            return random.standard_normal(shape).astype(self.dtype)

        self.own = values(panels, rows + spare, 16)
        self.remote = values(count, panels, rows, 16)
        self.bias = values(panels, 16)
        self.residual = values(panels, rows, 16)
        self.scalars = {
            "rows": rows,
            "panels": panels,
            "own_stride": member.row_bytes * (rows + spare),
            "remote_count": count,
            "remote_stride": member.row_bytes * rows * panels,
        }
        optional = {"bias": member.bias, "residual": member.residual}
        self.names = ["own", "remote", *(name for name in optional if optional[name])]
        self.inputs = [(places[name], getattr(self, name)) for name in self.names]
        addends = {name: getattr(self, name) for name in self.names[2:]}
        self.expected = KERNELS[member.symbol].reference(self.own[:, :rows], self.remote, **addends)

    @property
    def arguments(self) -> dict[str, int]:
        return {name: self.places[name] for name in ("out", *self.names)} | self.scalars

    @property
    def wide(self) -> bool:
        scalars = [self.scalars[name] for name in ("own_stride", "remote_stride", "remote_count")]
        return is_wide(self.places["own"], self.places["remote"], *scalars)

    @property
    def wide_residual(self) -> bool:
        return self.places["residual"] >= REGION1_BASE and self.places["residual"] % 16 == 0

    @property
    def image(self) -> LinkedImage:
        symbol = self.member.symbol
        return link_kernels([symbol, *self.straight], {}) if self.straight else image_of(symbol)

    @property
    def registers(self) -> dict[int, int]:
        return KERNELS[self.member.symbol].contract.registers(**self.arguments)

    @property
    def cycles(self) -> int:
        ways = {"wide": self.wide, "straight": bool(self.straight), "wide_residual": self.wide_residual}
        return int(KERNELS[self.member.symbol].cycles(**self.scalars, **ways))

    def check(self) -> None:
        """Result, cycles and stray bytes."""
        out, symbol = self.places["out"], self.member.symbol
        outcome = call(self.image, symbol, self.registers, self.inputs, [(out, self.expected.nbytes)])
        np.testing.assert_array_equal(outcome.array(out, self.expected), self.expected)
        assert outcome.cycles == self.cycles

    def check_thoroughly(self) -> None:
        """No races, and nothing unwritten is read."""
        result = guarded(self.member.symbol, self.arguments, self.inputs, self.image)
        found = result.read(self.places["out"], self.expected.shape, self.dtype)
        np.testing.assert_array_equal(found, self.expected)


def member_named(members: Sequence[Member], symbol: str) -> Member:
    return next(member for member in members if member.symbol == symbol)


def check_member(member: Member, places: dict[str, int], *, straight: bool = False) -> None:
    """A few shapes, with and without remote partials."""
    for rows, panels, count in ((1, 1, 0), (2, 1, 1), (9, 2, 3), (5, 4, 2), (1, 7, 5), (20, 3, 0)):
        Case(member, rows, panels, count, places, straight=straight).check()


def check_races(member: Member, *, straight: bool = False) -> None:
    for places in (WIDE, PLAIN):
        for rows, panels, count in ((7, 1, 2), (3, 5, 0), (7, 3, 0)):
            Case(member, rows, panels, count, places, straight=straight).check_thoroughly()


def check_over(member: Member, over: str, *, straight: bool = False) -> None:
    """The result takes the place of an operand."""
    if over == "residual" and not member.residual:
        return
    for rows, panels, count in ((7, 1, 2), (4, 5, 0), (1, 2, 1)):
        places = WIDE | {"out": WIDE[over]}
        case = Case(member, rows, panels, count, places, spare=0, straight=straight)
        case.check()
        case.check_thoroughly()


def check_no_work(member: Member, rows: int, panels: int) -> None:
    case = Case(member, rows, panels, 1, WIDE)
    outcome = call(case.image, member.symbol, case.registers, [], [])
    assert outcome.cycles == case.cycles


def check_two_calls(member: Member) -> None:
    """A call does not depend on the one before."""
    cases = [
        Case(member, rows, panels, count, {name: at + 0x800 * number for name, at in WIDE.items()})
        for number, (rows, panels, count) in enumerate([(7, 2, 2), (2, 3, 1)])
    ]
    image = twice(member.symbol, [case.arguments for case in cases])
    inputs = [item for case in cases for item in case.inputs]
    outputs = [(case.places["out"], case.expected.nbytes) for case in cases]
    outcome = call(image, "driver", {}, inputs, [*outputs, (0x585A0, 0x140)])
    for case in cases:
        np.testing.assert_array_equal(outcome.array(case.places["out"], case.expected), case.expected)
