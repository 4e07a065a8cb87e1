"""Control registers, accumulators and weights that an instruction read or changed, for traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..isa.csrs import COUNT_L, COUNT_U, CTXT_STS, PC, PRNG_0_0, TAS, UPPER, csr_name
from ..isa.decode import Instruction

_FEW = 4
"""Accumulators or weights shown one by one; more appear as one range."""
_PRNG = range(PRNG_0_0, PRNG_0_0 + 4)
_LIVE = (PC, COUNT_L, COUNT_U, CTXT_STS)
_READS_TAS = ("f32v2axpy", "f16v4mix")


def named_csr(instruction: Instruction, context: int) -> tuple[str, int] | None:
    """Name and number of the control register that an instruction names, if it does."""
    for operand, value in zip(instruction.form.operands, instruction.operands, strict=True):
        if operand.names in ("csr", "upper_csr"):
            number = value + UPPER if operand.names == "upper_csr" else value
            return _name(number, context), number
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
    named = named_csr(instruction, context)
    if named is None or "put" in instruction.form.mnemonic:
        return []
    name, number = named
    return [(name, m[instruction.operands[0]] if number in _LIVE else int(csrs[number]))]


def changed_csrs(
    instructions: tuple[Instruction, ...], context: int, before: NDArray[np.int64], now: NDArray[np.int64]
) -> list[tuple[str, int]]:
    """The control registers that instructions put, changed or not, and every other that changed.

    The four words of the random numbers' state are one value.
    """
    named = {
        found[1]
        for instruction in instructions
        if "put" in instruction.form.mnemonic and (found := named_csr(instruction, context)) is not None
    }
    numbers = sorted({*np.flatnonzero(before != now).tolist(), *named})
    result = [(_name(number, context), int(now[number])) for number in numbers if number not in _PRNG]
    if any(number in _PRNG for number in numbers):
        words = [int(now[number]) for number in _PRNG]
        result.append(("$PRNG", sum(word << (32 * place) for place, word in enumerate(words))))
    return result


def changed_accumulators(before: NDArray[np.float32], now: NDArray[np.float32]) -> Iterator[tuple[str, int]]:
    """Accumulators whose bits changed."""
    bits = now.view(np.uint32)
    changed = np.flatnonzero(before.view(np.uint32) != bits).tolist()
    yield from _changed(changed, [int(value) for value in bits], 32, [f"AACC{index}" for index in range(32)])


def changed_weights(before: NDArray[np.uint64], now: NDArray[np.uint64]) -> Iterator[tuple[str, int]]:
    """Weights that changed."""
    names = [f"CWEI_{index >> 2}_{index & 3}" for index in range(64)]
    yield from _changed(np.flatnonzero(before != now).tolist(), [int(value) for value in now], 64, names)


def _changed(
    changed: list[int], values: list[int], width: int, names: list[str]
) -> Iterator[tuple[str, int]]:
    if len(changed) <= _FEW:
        yield from ((f"${names[index]}", values[index]) for index in changed)
        return
    first, last = changed[0], changed[-1]
    whole = sum(values[index] << (width * (index - first)) for index in range(first, last + 1))
    yield f"${names[first]}..{names[last]}", whole


def _name(number: int, context: int) -> str:
    name = csr_name(number, "worker" if context else "supervisor")
    return f"${name}" if name else f"${number:#x}"
