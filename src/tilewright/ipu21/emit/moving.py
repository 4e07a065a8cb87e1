"""Words in memory that change from one iteration of a loop to the next by equal steps.

Words of one step keep their distance from each other. So one of them is loaded and moved on, and the others
follow from it; equal ones, as workers' frames have them, are only stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..isa import build
from .lines import Line, constant, constants, load, store
from .prepared import Moving

_BASE, _STEP, _FIRST = 1, 9, 2
_BATCH = _STEP - _FIRST
"""Registers for words."""
_LEADS = 3
"""Of these, those for words that others follow from."""
_REACH = 4 * 0xFFF
"""Bytes behind a base register that an access can name."""
_DISTANCE = 0x7FFF
"""The most that an instruction adds."""


@dataclass(frozen=True)
class _Family:
    """Words of one step whose values are near each other.

    Attributes:
        offsets: of its words, by their distance from the least value, rising.
    """

    step: int
    offsets: dict[int, list[int]]

    @property
    def immediate(self) -> int | None:
        """The step as an immediate operand, if it is one."""
        signed = self.step - (1 << 32) if self.step >> 31 else self.step
        return signed if -_DISTANCE - 1 <= signed <= _DISTANCE else None


def reset_lines(moving: Sequence[Moving], area: int) -> list[Line]:
    """Give the words their values of the first iteration. `area`: what their offsets count from."""
    lines = []
    for base, words in _within_reach(moving, area):
        lines += constant(_BASE, base)
        for begin in range(0, len(words), _BATCH):
            named = list(enumerate(words[begin : begin + _BATCH], _FIRST))
            lines += constants({register: word.first for register, word in named})
            lines += [store(register, _BASE, area + word.offset - base) for register, word in named]
    return lines


def move_lines(moving: Sequence[Moving], area: int) -> list[Line]:
    """Give the words their values of the next iteration."""
    lines = []
    for base, words in _within_reach(moving, area):
        lines += constant(_BASE, base)
        for families in _batches(_families(words)):
            lines += _moved(families, area - base)
    return lines


def _families(words: Sequence[Moving]) -> list[_Family]:
    families: list[_Family] = []
    least = 0
    for word in sorted(words, key=lambda word: (word.step, word.first, word.offset)):
        if not families or families[-1].step != word.step or word.first - least > _DISTANCE:
            families.append(_Family(word.step, {}))
            least = word.first
        families[-1].offsets.setdefault(word.first - least, []).append(word.offset)
    return families


def _batches(families: Sequence[_Family]) -> Iterator[list[_Family]]:
    """As many together as there are registers for, at most one step among them that is no immediate."""
    batch: list[_Family] = []
    for family in families:
        large = {other.step for other in [*batch, family] if other.immediate is None}
        if len(batch) == _LEADS or len(large) > 1:
            yield batch
            batch = []
        batch.append(family)
    yield batch


def _moved(families: Sequence[_Family], from_base: int) -> list[Line]:
    """Load the least of each family, add the step, derive the others, store all."""
    leads = list(enumerate(families, _FIRST))
    large = [family.step for family in families if family.immediate is None]
    lines = constant(_STEP, large[0]) if large else []
    lines += [load(register, _BASE, from_base + family.offsets[0][0]) for register, family in leads]
    for register, family in leads:
        if family.immediate is None:
            lines.append(Line(build.add(register, register, _STEP), register, (register, _STEP)))
        else:
            lines.append(Line(build.add_imm(register, register, family.immediate), register, (register,)))
    # Values wait for their stores in turn, so that registers have them when these are issued.
    waiting = deque((register, family.offsets[0]) for register, family in leads)
    spare = range(_FIRST + len(families), _FIRST + _BATCH)

    def stores() -> list[Line]:
        register, offsets = waiting.popleft()
        return [store(register, _BASE, from_base + offset) for offset in offsets]

    derived = [(lead, *item) for lead, family in leads for item in list(family.offsets.items())[1:]]
    for number, (lead, distance, offsets) in enumerate(derived):
        register = spare[number % len(spare)]
        if len(waiting) == len(spare):
            lines += stores()
        lines.append(Line(build.add_imm(register, lead, distance), register, (lead,)))
        waiting.append((register, offsets))
    while waiting:
        lines += stores()
    return lines


def _within_reach(moving: Sequence[Moving], area: int) -> Iterator[tuple[int, list[Moving]]]:
    """(address for the base register, the words it reaches)."""
    rest = sorted(moving, key=lambda word: word.offset)
    while rest:
        base = area + rest[0].offset
        near = [word for word in rest if area + word.offset - base <= _REACH]
        yield base, near
        rest = rest[len(near) :]
