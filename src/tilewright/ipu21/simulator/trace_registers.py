"""Control registers, accumulators and weights that an instruction read or changed, for traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..isa.csrs import COUNT_L, COUNT_U, CTXT_STS, PC, PRNG_0_0, TAS, UPPER, csr_name
from ..isa.decode import Instruction

_Word = TypeVar("_Word", np.uint32, np.uint64)
_FEW = 4
"""Accumulators or weights shown one by one; more appear as one range."""
_PRNG = range(PRNG_0_0, PRNG_0_0 + 4)
_LIVE = (PC, COUNT_L, COUNT_U, CTXT_STS)
_READS_TAS = ("f32v2axpy", "f16v4mix")


def named_csr(instruction: Instruction) -> int | None:
    """Number of the control register that an instruction names, if it does."""
    for operand, value in zip(instruction.form.operands, instruction.operands, strict=True):
        if operand.names in ("csr", "upper_csr"):
            return value + UPPER if operand.names == "upper_csr" else value
    return None


def read_csrs(
    instruction: Instruction, context: int, csrs: NDArray[np.int64], m: Sequence[int]
) -> list[tuple[str, int]]:
    """Control registers that an instruction reads: the one it names unless it writes that, and $TAS.

    Args:
        csrs: the context's stored registers before it issued. m: its M registers afterwards, where what `get`
            read of a register that is not stored is found.
    """
    if instruction.form.mnemonic in _READS_TAS:
        return [("$TAS", int(csrs[TAS]))]
    number = named_csr(instruction)
    if number is None or "put" in instruction.form.mnemonic:
        return []
    value = m[instruction.operands[0]] if number in _LIVE else int(csrs[number])
    return [(_name(number, context), value)]


def changed_csrs(
    instructions: tuple[Instruction, ...], context: int, before: NDArray[np.int64], now: NDArray[np.int64]
) -> list[tuple[str, int]]:
    """The control registers that instructions put, changed or not, and every other that changed.

    The four words of the random numbers' state are one value.
    """
    named = {
        number
        for instruction in instructions
        if "put" in instruction.form.mnemonic and (number := named_csr(instruction)) is not None
    }
    numbers = sorted({*np.flatnonzero(before != now).tolist(), *named})
    result = [(_name(number, context), int(now[number])) for number in numbers if number not in _PRNG]
    if any(number in _PRNG for number in numbers):
        words = [int(now[number]) for number in _PRNG]
        result.append(("$PRNG", sum(word << (32 * place) for place, word in enumerate(words))))
    return result


def changed_accumulators(before: NDArray[np.float32], now: NDArray[np.float32]) -> Iterator[tuple[str, int]]:
    """Accumulators whose bits changed."""
    yield from _changed(before.view(np.uint32), now.view(np.uint32), lambda index: f"AACC{index}")


def changed_weights(before: NDArray[np.uint64], now: NDArray[np.uint64]) -> Iterator[tuple[str, int]]:
    """Weights that changed."""
    yield from _changed(before, now, lambda index: f"CWEI_{index >> 2}_{index & 3}")


def _changed(
    before: NDArray[_Word], now: NDArray[_Word], name: Callable[[int], str]
) -> Iterator[tuple[str, int]]:
    changed = np.flatnonzero(before != now).tolist()
    if len(changed) <= _FEW:
        yield from ((f"${name(index)}", int(now[index])) for index in changed)
        return
    first, last = changed[0], changed[-1]
    yield f"${name(first)}..{name(last)}", int.from_bytes(now[first : last + 1].tobytes(), "little")


def _name(number: int, context: int) -> str:
    name = csr_name(number, "worker" if context else "supervisor")
    return f"${name}" if name else f"${number:#x}"
