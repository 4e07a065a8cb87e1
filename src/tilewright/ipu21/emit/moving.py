"""Words in memory that change from one iteration of a loop to the next by equal steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..isa import build
from .lines import Line, constant, constants, load, store
from .prepared import Moving

_BASE, _STEP, _FIRST = 1, 9, 2
_BATCH = _STEP - _FIRST
"""Registers for words: loads of a batch are over before the first addition needs one."""
_REACH = 4 * 0xFFF
"""Bytes behind a base register that an access can name."""


def reset_lines(moving: Sequence[Moving], area: int) -> list[Line]:
    """Give the words their values of the first iteration. `area`: what their offsets count from."""
    lines = []
    for base, words in _within_reach(moving, area):
        lines += constant(_BASE, base)
        for some in _batches(words):
            named = list(enumerate(some, _FIRST))
            lines += constants({register: word.first for register, word in named})
            lines += [store(register, _BASE, area + word.offset - base) for register, word in named]
    return lines


def move_lines(moving: Sequence[Moving], area: int) -> list[Line]:
    """Give the words their values of the next iteration."""
    lines = []
    for base, words in _within_reach(moving, area):
        lines += constant(_BASE, base)
        small = [word for word in words if _immediate(word.step) is not None]
        for some in _batches(small):
            lines += _moved(some, area - base, None)
        for step in sorted({word.step for word in words if _immediate(word.step) is None}):
            lines += constant(_STEP, step)
            for some in _batches([word for word in words if word.step == step]):
                lines += _moved(some, area - base, _STEP)
    return lines


def _moved(some: Sequence[Moving], from_base: int, step: int | None) -> list[Line]:
    """Load, add the step in a register or each word's own, store; registers enough for nobody to wait."""
    named = list(enumerate(some, _FIRST))
    lines = [load(register, _BASE, from_base + word.offset) for register, word in named]
    for register, word in named:
        if step is None:
            added = build.add_imm(register, register, _immediate(word.step) or 0)
            lines.append(Line(added, register, (register,)))
        else:
            lines.append(Line(build.add(register, register, step), register, (register, step)))
    return lines + [store(register, _BASE, from_base + word.offset) for register, word in named]


def _immediate(step: int) -> int | None:
    """The step as an immediate operand, if it is one."""
    signed = step - (1 << 32) if step >> 31 else step
    return signed if -0x8000 <= signed < 0x8000 else None


def _within_reach(moving: Sequence[Moving], area: int) -> Iterator[tuple[int, list[Moving]]]:
    """(address for the base register, the words it reaches)."""
    rest = sorted(moving, key=lambda word: word.offset)
    while rest:
        base = area + rest[0].offset
        near = [word for word in rest if area + word.offset - base <= _REACH]
        yield base, near
        rest = rest[len(near) :]


def _batches(words: Sequence[Moving]) -> Iterator[Sequence[Moving]]:
    for begin in range(0, len(words), _BATCH):
        yield words[begin : begin + _BATCH]
