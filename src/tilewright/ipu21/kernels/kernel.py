"""What a kernel is: its text, its contract, its cycles and its meaning, in one record.

Call convention of all kernels (known: the published runtime uses it): the supervisor calls with `$m10` as
return address and `$m11` as stack pointer (grows down; a kernel uses up to `STACK_BYTES` below it and leaves
it as it was); operand addresses and scalars are in $m2, $m3, ... in the order of the contract. A kernel may
clobber $m0..$m9 and all worker state, and returns only when all its workers have exited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import PlacementError, UnsupportedError
from ..machine.memory import TILE_BASE, TILE_END, effective_elements, is_interleaved

FIRST_ARGUMENT = 2
"""Register number of the first argument."""
STACK_BYTES = 288
"""Bytes below `$m11` a kernel may overwrite."""


@dataclass(frozen=True)
class Operand:
    """One array operand.

    Attributes:
        name: as in the kernel's reference.
        order: element order, see `package.orders`; "words" for plain 8-byte words.
        role: "in", "out", or "unused" for a register the kernel ignores: no argument of `registers`.
        alignment: of the first byte, in bytes.
        interleaved: must lie in region 1.
        prefers_interleaved: may lie anywhere, and the call takes longer outside region 1.
        access_tail: bytes past the last that are read (never written) and must exist; their value is
            irrelevant.
    """

    name: str
    order: str
    role: str
    alignment: int = 8
    interleaved: bool = False
    access_tail: int = 0
    prefers_interleaved: bool = False


@dataclass(frozen=True)
class Scalar:
    """One integer argument, minimum <= value <= maximum."""

    name: str
    meaning: str
    minimum: int = 0
    maximum: int = (1 << 31) - 1
    multiple: int = 1

    def check(self, value: int) -> None:
        """Raise UnsupportedError for a value outside the range or no multiple of the unit."""
        if not self.minimum <= value <= self.maximum:
            raise UnsupportedError(
                f"{self.name} = {value} is outside {self.minimum}..{self.maximum}: {self.meaning}"
            )
        if value % self.multiple:
            raise UnsupportedError(f"{self.name} = {value} is no multiple of {self.multiple}")


@dataclass(frozen=True)
class Contract:
    """What a caller must keep.

    Attributes:
        operands, scalars: in register order, operands first.
        packed: (low, high, shift): scalar `high` has no register but lies in that of scalar `low`, from bit
            `shift` on.
        apart: pairs of operands that must not share an effective memory element.
        faster_apart: pairs that had better share none: the call takes longer otherwise.
        apart_in_standard: pairs that must not share one either, unless both lie in interleaved memory.
        may_alias: pairs (output, input) that may be the same bytes; all other overlap with an output is
            forbidden.
        notes: what else a reader should know, with evidence tags.
    """

    operands: tuple[Operand, ...]
    scalars: tuple[Scalar, ...]
    apart: tuple[tuple[str, str], ...] = ()
    may_alias: tuple[tuple[str, str], ...] = ()
    notes: str = ""
    packed: tuple[tuple[str, str, int], ...] = ()
    apart_in_standard: tuple[tuple[str, str], ...] = ()
    faster_apart: tuple[tuple[str, str], ...] = ()

    def registers(self, **values: int) -> dict[int, int]:
        """Main register number -> value, from operand addresses and scalars by name.

        Raises UnsupportedError for a scalar out of range, PlacementError for a misaligned or misplaced
        operand.
        """
        used = [operand for operand in self.operands if operand.role != "unused"]
        names = [operand.name for operand in used] + [scalar.name for scalar in self.scalars]
        if set(values) != set(names):
            raise UnsupportedError(f"arguments {sorted(values)} given, {names} wanted")
        self.check_scalars(**{scalar.name: values[scalar.name] for scalar in self.scalars})
        for operand in used:
            self._check_address(operand, values[operand.name])
        words = dict(values)
        for low, high, shift in self.packed:
            words[low] |= words.pop(high) << shift
        in_order = [operand.name for operand in self.operands]
        in_order += [scalar.name for scalar in self.scalars if scalar.name in words]
        return {FIRST_ARGUMENT + index: words.get(name, 0) for index, name in enumerate(in_order)}

    def check_scalars(self, **values: int) -> None:
        """Raise UnsupportedError if a scalar is outside its range or no multiple of its unit."""
        for scalar in self.scalars:
            scalar.check(values[scalar.name])

    def _check_address(self, operand: Operand, address: int) -> None:
        if address % operand.alignment:
            raise PlacementError(
                f"{operand.name} at {address:#x} is not aligned to {operand.alignment} bytes"
            )
        if operand.interleaved and not is_interleaved(address):
            raise PlacementError(f"{operand.name} at {address:#x} must lie in interleaved memory")

    def check_placement(self, spans: Mapping[str, tuple[int, int]]) -> None:
        """Raise PlacementError unless the byte spans (begin, end) of the operands keep the contract.

        Checks room (with access tails), alignment, region, overlap, and elements that must differ.
        """
        for operand in (operand for operand in self.operands if operand.role != "unused"):
            begin, end = spans[operand.name]
            self._check_address(operand, begin)
            if begin < TILE_BASE or end + operand.access_tail > TILE_END:
                raise PlacementError(f"{operand.name} at {begin:#x}..{end:#x} lies outside tile memory")
        pairs = [
            pair
            for pair in self.apart_in_standard
            if not all(is_interleaved(spans[name][0]) for name in pair)
        ]
        for one, other in (*self.apart, *pairs):
            if set(effective_elements(*spans[one])) & set(effective_elements(*spans[other])):
                raise PlacementError(f"{one} and {other} share a memory element")
        for output in (operand.name for operand in self.operands if operand.role == "out"):
            for name, (begin, end) in spans.items():
                if name == output or ((output, name) in self.may_alias and spans[output] == (begin, end)):
                    continue
                if begin < spans[output][1] and spans[output][0] < end:
                    raise PlacementError(f"{output} overlaps {name}")


@dataclass(frozen=True)
class Kernel:
    """One kernel family member.

    Attributes:
        symbol: entry point.
        source: makes the assembly text.
        contract: see Contract.
        cycles: supervisor cycles from the entry's first instruction to the instruction after the return, as a
            function of the scalars by name; works on integers and on NumPy arrays alike.
        reference: NumPy arrays in, NumPy array out, with the kernel's own rounding steps.
        goal: cycles the kernel should not exceed, same arguments as `cycles`; None where no goal is set.
        way: further arguments of `cycles` that say which way a call takes, from all its arguments by name;
            None where there is one way.
    """

    symbol: str
    source: Callable[[], str]
    contract: Contract
    cycles: Callable[..., Any]
    reference: Callable[..., Any]
    goal: Callable[..., Any] | None = field(default=None)
    way: Callable[[Mapping[str, int]], dict[str, bool]] | None = field(default=None)
